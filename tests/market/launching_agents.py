"""A market with agents as processes of their own, and tasks for them."""

import os
import shutil
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tests.engine.nets import NETS
from trainyard.chain.calls import MarketCalls
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store
from trainyard.content.lifeline import dying_with_parent
from trainyard.content.settings import open_content
from trainyard.datasets import add_arrays
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import ETHER, Options
from trainyard.engine.classes import cache_folder, find_class
from trainyard.engine.journal import Journal
from trainyard.engine.material import Files, fetch_files
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, TaskState, Terms
from worker_agent.joining import publish_block
from worker_agent.progress import RUN, Shelf
from worker_agent.settings import Home

RECORDS = 96
# How long a test waits for what it expects; no test says that it takes less.
_PATIENCE_S = 600.0
_AGENT = """
import sys
from pathlib import Path
from eth_account import Account
from worker_agent.agent import Agent
from worker_agent.settings import Home, read_settings
home = Home(Path(sys.argv[1]))
Agent(home, read_settings(home), Account.from_key(sys.stdin.readline().strip())).run()
"""
_CONFIG = """
[chain]
endpoints = ["{url}"]
chain_id = {chain_id}
market = "{market}"
start_block = {start}
poll_s = 0.25
margin_s = 2.0
confirmations = 3
[content]
store = "{store}"
advertise = "{gateway}"
[policy]
bond = {bond}
concurrency = {concurrency}
[sandbox]
# Who leads an async run has some 300 threads of TensorFlow, and more with more workers.
processes = 1024
"""
_OVER = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)


class Agents:
    """Workers, which take slots, and then auditors, which only hold a bond."""

    def __init__(
        self, net: Devnet, stack: ExitStack, workers: int, auditors: int, strangers: Collection[int]
    ) -> None:
        self._net, self._stack, self._strangers = net, stack, strangers
        self._workers, self.count = workers, workers + auditors
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.env_class = bytes.fromhex(find_class().id)
        cache = net.place.folder / "another machine"
        self.other_class = _other_machine(cache) if strangers else self.env_class
        self._elsewhere = {"XDG_CACHE_HOME": str(cache)}
        self._endpoints = Endpoints([net.url], chain_id=net.chain_id)
        self.client = MarketClient(self._endpoints, net.market)
        self.content = open_content(net.content_settings)
        stack.callback(self.content.close)
        store = Store(
            net.place.folder / "requester.sqlite", chain_id=net.chain_id, market=net.market
        )
        stack.callback(store.close)
        self._outbox = Outbox(self._endpoints, store, net.accounts["requester"])
        for number in range(self.count):
            self._set_up(number)
            self.start(number)
        wait_for(self._are_registered)

    def home(self, number: int) -> Home:
        return Home(self._net.place.folder / f"agent-{number}")

    def address(self, number: int) -> str:
        return str(self._account(number).address)

    def start(self, number: int) -> None:
        home = self.home(number)
        with (home.folder / "output").open("ab") as output:
            process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-c", _AGENT, str(home.folder)],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=os.environ | (self._elsewhere if number in self._strangers else {}),
                preexec_fn=dying_with_parent(),
            )
        self._stack.callback(_end, process)
        assert process.stdin is not None
        with process.stdin as pipe:
            pipe.write(self._account(number).key.hex().encode() + b"\n")
        self._processes[number] = process

    def kill(self, number: int) -> None:
        self._processes[number].kill()
        self._processes[number].wait()

    def post(self, manifest: Manifest, policy: Policy, **changes: Any) -> Terms:
        digest = publish_block(self.content, manifest.canonical)
        panel = self.count - self._workers
        terms = Terms(
            **{
                "manifest": digest,
                "env_class": self.env_class,
                "policy": policy,
                "slots": self._workers,
                "quorum": 1,
                "audits": panel,
                "min_audits": panel,
                "reward": ETHER,
                "stake": ETHER,
                "audit_fee": ETHER // 100,
                "segments": manifest.plan.segments,
                "join_for": 300,
                "train_for": 900,
                "audit_for": 400,
                "answer_for": 120,
                "challenge_for": 0,
                **changes,
            }
        )
        call = MarketCalls(self._net.market).post(terms, value=terms.escrow)
        self._outbox.submit("post", call)
        self.wait(lambda: self.client.task(1) is not None)
        return terms

    def wait(self, look: Callable[[], bool]) -> None:
        def step() -> bool:
            self._outbox.step()
            return look()

        wait_for(step)

    def settled(self) -> TaskState:
        def is_over() -> bool:
            task = self.client.task(1)
            return task is not None and task.state in _OVER

        self.wait(is_over)
        task = self.client.task(1)
        assert task is not None
        return task.state

    def shelf(self, number: int) -> Shelf:
        return Shelf(self.home(number).task(1))

    def states(self, number: int) -> list[str]:
        return [entry.state for entry in Journal.read(self.shelf(number).path(RUN)).entries]

    def files(self, manifest: Manifest, folder: Path) -> Files:
        return fetch_files(manifest, self.content, folder)

    def credit(self, number: int) -> int:
        return self.client.account(self.address(number)).credit

    def manifest(self, net: str = "mlp", **training: Any) -> Manifest:
        numbers = np.arange(RECORDS * 144, dtype=np.uint64)
        pixels = (numbers * np.uint64(2654435761) >> np.uint64(7)) % np.uint64(256)
        labels = (np.arange(RECORDS) * 7 % 10).astype(np.int64)
        images = pixels.astype(np.uint8).reshape(RECORDS, 12, 12, 1)
        built = add_arrays(self.content, {"image": images, "label": labels})
        source = {
            "kind": "npz",
            "path": f"ipfs://{built.cid}",
            "records": RECORDS,
            "features": {
                "image": {"dtype": "uint8", "shape": [12, 12, 1]},
                "label": {"dtype": "int64", "shape": []},
            },
            "inputs": ["image"],
            "target": "label",
        }
        return Manifest.of(
            {
                "version": 1,
                "model": {
                    "inputs": [{"name": "image", "shape": [12, 12, 1], "dtype": "uint8"}],
                    "layers": NETS[net],
                    "outputs": ["out"],
                },
                "data": {"train": source, "test": source},
                "training": {
                    "workers": self._workers,
                    "batch": 16,
                    "seed": 3,
                    "optimizer": {"type": "Adam", "learning_rate": 0.001},
                    "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
                    "metrics": [{"type": "SparseCategoricalAccuracy", "name": "accuracy"}],
                    **training,
                },
            }
        )

    def _account(self, number: int) -> Any:
        return self._net.accounts[f"worker-{number + 1}"]

    def _set_up(self, number: int) -> None:
        net, is_worker = self._net, number < self._workers
        folder = self.home(number).folder
        folder.mkdir()
        config = _CONFIG.format(
            url=net.url,
            chain_id=net.chain_id,
            market=net.market,
            start=net.start_block,
            store=net.content.store,
            gateway=net.content.gateway,
            bond=0 if is_worker else ETHER // 2,
            concurrency=1 if is_worker else 0,
        )
        (folder / "config.toml").write_text(config)

    def _are_registered(self) -> bool:
        known = [self.client.worker(self.address(number)).env_class for number in range(self.count)]
        wanted = [
            self.other_class if number in self._strangers else self.env_class
            for number in range(self.count)
        ]
        return (
            known == wanted and self.client.pool_size(self.env_class) == self.count - self._workers
        )


@contextmanager
def running_agents(
    folder: Path, workers: int, auditors: int, strangers: Collection[int] = ()
) -> Iterator[Agents]:
    """Those of the agents that are `strangers` are of another environment class."""
    options = Options(chain="anvil", block_time_s=1, workers=workers + auditors)
    with ExitStack() as stack:
        with warnings.catch_warnings():
            # The library that draws a mnemonic warns of a way to name languages.
            warnings.simplefilter("ignore", DeprecationWarning)
            net = stack.enter_context(Devnet(folder, options=options))
        yield Agents(net, stack, workers, auditors, strangers)


def _other_machine(cache: Path) -> bytes:
    """What a machine remembers of itself that differs from this one in one thing; its class.

    Its bits are the same, of course, but nobody compares them where nothing is replayed.
    """
    own, folder = cache_folder(), cache / "trainyard"
    (folder / own.name).mkdir(parents=True)
    for name in ("power.json", "speed.json"):
        if (known := own.with_name(name)).exists():
            shutil.copy(known, folder)
    here = find_class()
    other = here.environment.model_copy(update={"libc": "of another machine"})
    found = here.model_copy(update={"environment": other})
    for path in own.glob("*.json"):
        # By a name that says what this machine is, under which it looks for itself.
        (folder / own.name / path.name).write_text(found.model_dump_json())
    return bytes.fromhex(found.id)


def check_paid(agents: Agents, terms: Terms) -> None:
    """Stakes are free again, and everybody has what the terms say, to the wei."""
    for number in range(terms.slots):
        assert agents.credit(number) == terms.stake + terms.reward
    for number in range(terms.slots, agents.count):
        assert agents.credit(number) == terms.audit_fee


def wait_for(look: Callable[[], bool]) -> None:
    until = time.monotonic() + _PATIENCE_S
    while not look():
        if time.monotonic() > until:
            raise TimeoutError("what was waited for did not come")
        time.sleep(0.2)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
