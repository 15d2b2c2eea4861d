"""A market of real processes for tests: a devnet, agents that come and go, tasks, and money."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests.engine.nets import NETS, RECORDS
from tests.market.leftovers import leaving_nothing
from trainyard.chain.cursor import Seen
from trainyard.content.settings import open_content
from trainyard.datasets import add_arrays
from trainyard.demo.watching import Requester
from trainyard.devnet.agents import Agent, start_agent
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import ETHER, Options
from trainyard.engine.classes import find_class
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, TaskState, Terms
from worker_agent.joining import publish_block

POLL_S = 0.1
# Far more than anything takes: it is there for what would never end.
_LONGEST_S = 300.0
ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
# An agent that trains and is drawn for nothing, and one that is only drawn.
TRAINER = {"policy.bond": 0}
AUDITOR = {"policy.bond": ETHER // 2, "policy.concurrency": 0}


class Market:
    """One devnet for all tests of a module, each with tasks and agents of its own."""

    def __init__(self, devnet: Devnet, folder: Path) -> None:
        self.devnet, self.folder = devnet, folder
        self.env_class = bytes.fromhex(find_class().id)
        self.content = open_content(devnet.content_settings)
        self.requester = Requester(devnet, devnet.accounts["requester"], folder / "seen.sqlite")
        self._names = (f"worker-{number + 1}" for number in range(devnet.options.workers))
        self._posted = 0

    def close(self) -> None:
        self.requester.close()
        self.content.close()

    def name(self) -> str:
        """An account that nobody has used yet."""
        return next(self._names)

    def address(self, name: str) -> str:
        return str(self.devnet.accounts[name].address)

    @contextmanager
    def agent(self, name: str, settings: Mapping[str, object], **more: Any) -> Iterator[Agent]:
        """An agent by the real command, until the end of the block."""
        agent = start_agent(self.devnet, name, settings, **more)
        try:
            yield agent
        finally:
            agent.stop()

    def look(self) -> None:
        for _ in self.requester.look():
            pass

    def wait(self, is_so: Callable[[], object], *agents: Agent) -> None:
        """Until it is so; an agent that ends by itself before that is a failure."""
        deadline = time.monotonic() + _LONGEST_S
        while True:
            self.look()
            if is_so():
                return
            for agent in agents:
                assert not agent.child.ended.is_set(), agent.child.epitaph()
            said = [agent.child.tail() for agent in agents]
            assert time.monotonic() < deadline, f"it is not so after {_LONGEST_S:.0f} s: {said}"
            time.sleep(POLL_S)

    def wait_for_workers(self, *agents: Agent) -> None:
        """Until they are registered, and those with a bond in the pool."""
        wanted = {self.address(agent.name) for agent in agents}
        self.wait(lambda: wanted <= self.requester.book.workers.keys(), *agents)

    def task(self, number: int) -> Task | None:
        return self.requester.book.tasks.get(number)

    def state(self, number: int) -> TaskState | None:
        task = self.task(number)
        return None if task is None else task.state

    def wait_for(self, number: int, *states: TaskState, agents: tuple[Agent, ...] = ()) -> Task:
        self.wait(lambda: self.state(number) in (*states, *ENDED), *agents)
        task = self.task(number)
        assert task is not None
        assert task.state in states, f"task {number} ended as {task.state.name}"
        return task

    def settle(self, number: int, *agents: Agent) -> Task:
        return self.wait_for(number, TaskState.SETTLED, agents=agents)

    def next_number(self) -> int:
        """What the next task will be called."""
        self.look()
        return max(self.requester.book.tasks, default=0) + 1

    def post(self, manifest: Manifest, **terms: Any) -> int:
        """Post a task and wait until it is there; its number."""
        self.look()
        known = set(self.requester.book.tasks)
        self._posted += 1
        posted = self.terms(manifest, **terms)
        call = self.requester.calls.post(posted, value=posted.escrow)
        self.requester.send(f"post {self._posted}", call)
        self.wait(lambda: set(self.requester.book.tasks) - known)
        [number] = set(self.requester.book.tasks) - known
        return number

    def terms(self, manifest: Manifest, **more: Any) -> Terms:
        slots = manifest.training.workers
        given: dict[str, Any] = {
            "policy": Policy.AUDIT,
            "slots": slots,
            "quorum": (slots + 1) // 2,
            "segments": manifest.plan.segments,
            "reward": ETHER,
            "stake": ETHER,
            "audit_fee": ETHER // 100,
            "join_for": 300,
            "train_for": 600,
            "audit_for": 120,
            "answer_for": 60,
            "challenge_for": 1,
        }
        return Terms(manifest=manifest.digest, env_class=self.env_class, **given | more)

    def manifest(
        self,
        *,
        mode: str = "single",
        workers: int = 1,
        segments: int = 8,
        seed: int = 3,
        **training: Any,
    ) -> Manifest:
        """A small network; another seed is another task."""
        source = self._source()
        manifest = Manifest.of(
            {
                "version": 1,
                "model": {
                    "inputs": [{"name": "image", "shape": [12, 12, 1], "dtype": "uint8"}],
                    "layers": NETS["lenet"],
                    "outputs": ["out"],
                },
                "data": {"train": source},
                "training": {
                    "mode": mode,
                    "workers": workers,
                    "threads": 1,
                    "batch": 16,
                    "until": {"steps": segments * 5},
                    "steps_per_segment": 5,
                    "seed": seed,
                    "optimizer": {"type": "Adam", "learning_rate": 0.001},
                    "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
                    **training,
                },
            }
        )
        publish_block(self.content, manifest.canonical)
        return manifest

    def _source(self) -> dict[str, Any]:
        numbers = np.random.default_rng(1)
        arrays = {
            "image": numbers.integers(0, 256, (RECORDS, 12, 12, 1), np.uint8),
            "label": numbers.integers(0, 10, RECORDS).astype(np.int64),
        }
        return {
            "kind": "npz",
            "path": f"ipfs://{add_arrays(self.content, arrays).cid}",
            "records": RECORDS,
            "features": {
                "image": {"dtype": "uint8", "shape": [12, 12, 1]},
                "label": {"dtype": "int64", "shape": []},
            },
            "inputs": ["image"],
            "target": "label",
        }

    # What happened

    def events(self, number: int) -> list[Seen]:
        """All events of a task, as they stand in the chain."""
        return [seen for seen in self.requester.seen if seen.event.args.get("id") == number]

    def wealth(self, *names: str) -> dict[str, int]:
        """What accounts have, fees for gas not counted: those are not the market's."""
        found = {}
        for name in names:
            address = self.address(name)
            found[name] = self.requester.wealth(address) + self._spent(address)
        return found

    def _spent(self, address: str) -> int:
        """What all transactions of an account cost since the devnet began."""
        hashes, who = set[bytes](), address.lower()
        for number in range(self.devnet.start_block, self.devnet.chain.head().ref.number + 1):
            block = self.devnet.chain.request("eth_getBlockByNumber", hex(number), True)
            for one in block["transactions"]:
                if one["from"].lower() == who:
                    hashes.add(bytes.fromhex(one["hash"][2:]))
        return sum(cost for _, cost in self.requester.gas(hashes).values())

    def nonce(self, name: str) -> int:
        found = self.devnet.chain.request("eth_getTransactionCount", self.address(name), "latest")
        return int(found, 16)


@contextmanager
def market(**options: Any) -> Iterator[Market]:
    """A devnet on anvil in a folder of its own, and nothing of it afterwards."""
    given: dict[str, Any] = {"chain": "anvil", "workers": 24, "auditors": 1, "agent_settings": ()}
    with ExitStack() as parts:
        folder = Path(parts.enter_context(TemporaryDirectory(prefix="trainyard-market-")))
        # What an agent remembers of its key lies beside its home.
        before = os.environ.get("XDG_STATE_HOME")
        os.environ["XDG_STATE_HOME"] = str(folder / "state")
        parts.callback(_put_back, "XDG_STATE_HOME", before)
        parts.enter_context(leaving_nothing(folder))
        devnet = parts.enter_context(Devnet(folder / "net", Options(**given | options)))
        one = Market(devnet, folder)
        parts.callback(one.close)
        yield one


def _put_back(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


# What is in an agent's home


def kill(agent: Agent) -> None:
    """As if the power of its machine had failed."""
    agent.child.process.send_signal(signal.SIGKILL)
    agent.child.ended.wait()


def live_of(agent: Agent, task: int) -> dict[str, Any]:
    """What its runner shows of a task."""
    try:
        found: dict[str, Any] = json.loads(
            (agent.home / "tasks" / str(task) / "live.json").read_text()
        )
    except (FileNotFoundError, ValueError):
        return {}
    return found


def root_of(agent: Agent, task: int) -> str:
    """The root of the trace that it claims."""
    claim = json.loads((agent.home / "tasks" / str(task) / "claim.json").read_text())
    return str(claim["root"])
