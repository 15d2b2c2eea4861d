"""A market with an agent that runs, one that does not, and people who use the market by hand."""

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import tests.quiet_web3  # noqa: F401
from tests.market.command import Trainyard
from trainyard.chain.calls import Call, MarketCalls
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.journal import State
from trainyard.chain.outbox import Outbox
from trainyard.chain.reading import read_market
from trainyard.chain.store import Store
from trainyard.devnet.agents import Agent, make_home, run_command, start_agent
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import DEVNET_PARAMS, ETHER, Options
from trainyard.devnet.ports import free_port
from trainyard.protocol.commitments import Market
from trainyard.protocol.ledger.book import Book
from trainyard.protocol.market import Policy, Terms

WAIT_S = 60.0
CLASS = b"c" * 32
NOBODY = "0x" + "9" * 40


def wait_until(is_so: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := is_so()):
        assert time.monotonic() < deadline, f"not so after {WAIT_S:.0f} s"
        time.sleep(0.05)
    return found


@dataclass
class Scene:
    devnet: Devnet
    folder: Path
    parts: ExitStack
    command: Trainyard

    def person(self, name: str) -> "Person":
        return Person(self, name)

    def home(self, name: str, **settings: object) -> Path:
        return make_home(
            self.devnet, name, {key.replace("__", "."): value for key, value in settings.items()}
        )

    def agent(self, name: str, *options: str, **settings: object) -> Agent:
        """A running agent, with more options of `trainyard worker run`."""
        self.home(name, **settings)
        agent = start_agent(self.devnet, name, command=lambda home: [*run_command(home), *options])
        self.parts.callback(agent.stop)
        return agent

    def worker(self, what: str, home: Path, *more: str) -> Any:
        """What a command of `trainyard worker` prints with --json."""
        return self.command.document("worker", what, "--home", home, *more)

    def text(self, what: str, home: Path, *more: str) -> str:
        code, out, err = self.command.run("worker", what, "--home", home, *more)
        assert (code, err) == (0, "")
        return out


class Person:
    """Somebody who sends calls by hand."""

    def __init__(self, scene: Scene, name: str) -> None:
        net, account = scene.devnet, scene.devnet.accounts[name]
        self.address = str(account.address)
        self.market = Market(net.chain_id, net.market)
        self.calls = MarketCalls(net.market)
        self._net = net
        self._endpoints = Endpoints([net.url], chain_id=net.chain_id)
        path = scene.folder / f"{name}.sqlite"
        store = Store(path, chain_id=net.chain_id, market=net.market)
        scene.parts.callback(store.close)
        self._outbox = Outbox(self._endpoints, store, account, confirmations=1)

    def book(self) -> Book:
        return read_market(self._endpoints, self._net.market, self._net.start_block).book

    def send(self, call: Call) -> None:
        """Until it is in a block."""
        key = secrets.token_hex(8)
        self._outbox.submit(key, call)
        wait_until(lambda: self._is_done(key))
        assert self._outbox.entry(key).state is State.DONE, self._outbox.entry(key).why

    def post(self, **terms: Any) -> int:
        """The number of a task that is posted."""
        offered = replicate(**terms)
        self.send(self.calls.post(offered, value=offered.escrow))
        return len(self.book().tasks)

    def train(self, task: int) -> None:
        """All that the worker of a replicated task of one slot does, and its pay."""
        salt, result, root = bytes(32), b"r" * 32, b"t" * 32
        self.send(self.calls.join(task, b"p" * 32, value=ETHER))
        commitment = self.market.claim_commitment(task, self.address, salt, result, root)
        self.send(self.calls.commit(task, 0, commitment))
        self.send(self.calls.reveal(task, 0, salt, result, root))
        self.send(self.calls.settle(task))

    def _is_done(self, key: str) -> bool:
        self._outbox.step()
        return self._outbox.entry(key).state.is_final


def replicate(**given: Any) -> Terms:
    kept: dict[str, Any] = {
        "manifest": b"m" * 32,
        "env_class": CLASS,
        "policy": Policy.REPLICATE,
        "reward": ETHER // 10,
        "stake": ETHER,
        "join_for": 600,
        "train_for": 600,
        "answer_for": 600,
    }
    return Terms(**kept | given)


@contextmanager
def scene(folder: Path, *, block_time_s: int = 1, workers: int = 2) -> Iterator[Scene]:
    options = Options(
        chain="anvil", block_time_s=block_time_s, workers=workers, auditors=0, agent_settings=()
    )
    command = Trainyard(folder)
    with (
        pytest.MonkeyPatch.context() as patch,
        Devnet(options=options) as devnet,
        ExitStack() as parts,
    ):
        # What agents remember of their keys goes with the test.
        patch.setenv("XDG_STATE_HOME", command.environment["XDG_STATE_HOME"])
        yield Scene(devnet, folder, parts, command)


def bonded() -> dict[str, object]:
    return {"policy__bond": DEVNET_PARAMS.seat_bond}


__all__ = ["NOBODY", "Person", "Scene", "bonded", "free_port", "replicate", "scene", "wait_until"]
