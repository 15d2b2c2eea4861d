"""A market on a real chain with real agents, honest and not, and what came of each task."""

import itertools
import json
import os
import secrets
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eth_account.signers.local import LocalAccount

from benchmarks.gauntlet_nets import arrays, manifest_of
from trainyard.chain.calls import Call, MarketCalls
from trainyard.chain.client import MarketClient
from trainyard.chain.cursor import Cursor, Found
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.keystore import create_keystore
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store
from trainyard.chain.views import BookView
from trainyard.content.lifeline import dying_with_parent
from trainyard.content.settings import open_content
from trainyard.datasets import add_arrays
from trainyard.devnet.agents import as_root
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import ETHER, Options
from trainyard.devnet.ports import free_port
from trainyard.engine.classes import find_class
from trainyard.protocol.ledger import Event
from trainyard.protocol.ledger.book import Book, Task
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, TaskState, Terms
from trainyard.protocol.money import Money
from worker_agent.joining import publish_block

ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
PEOPLE = 48
SEGMENTS, STEPS_PER_SEGMENT = 8, 2
STEPS = SEGMENTS * STEPS_PER_SEGMENT
STAKE = REWARD = ETHER
FEE = ETHER // 100
# Before a deadline; as long as an agent may take to act on two busy cores.
MARGIN_S = 10
_PATIENCE_S = 600.0
# As little as scrypt can do: there is nothing to protect.
_WORK = 2
_HONEST = ("trainyard", "worker", "run", *as_root())
_CONFIG = """
[chain]
endpoints = ["{url}"]
chain_id = {chain_id}
market = "{market}"
start_block = {start}
poll_s = {poll_s}
margin_s = {margin}
confirmations = 3
[content]
store = "{store}"
advertise = "{gateway}"
{serving}
[policy]
bond = {bond}
concurrency = {concurrency}
{turns}
allow_requesters = {requesters}
self_audits = {self_audits}
"""
_SERVING = """
listen = "127.0.0.1:{port}"
boards = ["{board}"]
"""


@dataclass(frozen=True, slots=True)
class Player:
    """Somebody with an agent of its own."""

    account: LocalAccount
    home: Path
    process: "subprocess.Popen[bytes]"

    @property
    def address(self) -> str:
        return str(self.account.address)

    def said(self) -> list[dict[str, Any]]:
        """Its log."""
        return [json.loads(line) for line in (self.home / "agent.log").read_text().splitlines()]

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Arena:
    """A devnet, everybody who plays in it, and the market's book."""

    def __init__(self, net: Devnet, parts: ExitStack) -> None:
        self.net, self._parts = net, parts
        self.content = open_content(net.content_settings)
        parts.callback(self.content.close)
        self.calls = MarketCalls(net.market)
        self.env_class = bytes.fromhex(find_class().id)
        self.folder = net.place.folder / "players"
        self.folder.mkdir()
        self._password = self.folder / "password"
        self._password.write_text(secrets.token_hex(8))
        self._password.chmod(0o600)
        self._endpoints = Endpoints([net.url], chain_id=net.chain_id, timeout_s=_PATIENCE_S)
        self._store = self._open_store("looking")
        cursor = Cursor(self._endpoints, self._store, net.market, start=net.start_block)
        self._cursor, self._view = cursor, BookView()
        self._people = itertools.count(1)
        self._outboxes: dict[str, Outbox] = {}
        self.players: dict[str, Player] = {}
        self.events: list[Event] = []
        self._train = f"ipfs://{add_arrays(self.content, arrays()).cid}"

    # People

    def person(self) -> LocalAccount:
        """Somebody with money whom nobody knows yet."""
        return self.net.accounts[f"worker-{next(self._people)}"]

    def start(
        self,
        name: str,
        *cheat: str,
        account: LocalAccount | None = None,
        bond: int = 0,
        takes: Sequence[str] = (),
        trains: bool = True,
        self_audits: int = 1,
        at_once: int = 4,
        turns: int | None = None,
        poll_s: float = 0.5,
        serves: bool = False,
    ) -> Player:
        """Start an agent, honest or with a `cheat`, that knows some requesters only.

        One that `serves` has a gateway of its own, beside that of the devnet.
        """
        account = account or self.person()
        home = self.folder / name
        home.mkdir()
        create_keystore(home / "keystore.json", account.key, self._password.read_text(), work=_WORK)
        config = _CONFIG.format(
            url=self.net.url,
            chain_id=self.net.chain_id,
            market=self.net.market,
            start=self.net.start_block,
            store=self.net.content.store,
            gateway=self.net.content.gateway,
            margin=float(MARGIN_S),
            bond=bond,
            concurrency=at_once if takes and trains else 0,
            serving=_SERVING.format(port=free_port(), board=self.net.content.gateway)
            if serves
            else "",
            turns="" if turns is None else f"turns = {turns}",
            poll_s=poll_s,
            requesters=json.dumps(list(takes)),
            self_audits=self_audits,
        )
        (home / "config.toml").write_text(config)
        command = ["worker_agent.cheating", *cheat] if cheat else _HONEST
        return self._run(name, account, home, command)

    def restart(self, name: str) -> Player:
        """Start an honest agent again that was stopped."""
        before = self.players[name]
        return self._run(name, before.account, before.home, _HONEST)

    def _run(self, name: str, account: LocalAccount, home: Path, command: Sequence[str]) -> Player:
        environment = os.environ | {"XDG_STATE_HOME": str(self.folder / "state")}
        with (self.folder / f"{name}.out").open("wb") as out:
            process = subprocess.Popen(
                [
                    *(sys.executable, "-m", *command),
                    *("--home", str(home), "--password-file", str(self._password)),
                ],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                preexec_fn=dying_with_parent(),
            )
        player = self.players[name] = Player(account, home, process)
        self._parts.callback(player.stop)
        return player

    def wait_for_members(self, *players: Player) -> None:
        """Until they can be drawn: who is called in the same second is not."""
        self.wait(
            "members",
            lambda book: all(
                (known := book.workers.get(one.address)) is not None
                and known.pool_index
                and known.since < self.now
                for one in players
            ),
        )

    def register(self, account: LocalAccount) -> None:
        """Put a member into the pool whose agent comes later."""
        bond = self.net.params.seat_bond
        self.send(account, self.calls.register(b"p" * 32, self.env_class, bond, value=bond))
        since = self.book().workers[account.address].since
        self.wait("the next second", lambda _: self.now > since)

    # The chain

    @property
    def now(self) -> int:
        return self.net.chain.head().timestamp

    def book(self) -> Book:
        for batch in self._cursor.batches():
            self._view.take(batch)
            if isinstance(batch, Found):
                self.events += [seen.event for seen in batch.events]
        return self._view.book

    def wait(
        self, what: str, is_so: Callable[[Book], bool], patience_s: float = _PATIENCE_S
    ) -> Book:
        deadline = time.monotonic() + patience_s
        while not is_so(book := self.book()):
            for name, player in self.players.items():
                if player.process.poll() not in (None, 0, -15):
                    out = (self.folder / f"{name}.out").read_text()[-800:]
                    raise AssertionError(f"{name} has ended: {out}")
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}: {self._last_words()}")
            time.sleep(0.2)
        return book

    def wait_for(self, number: int, *states: TaskState) -> Task:
        names = "/".join(state.name for state in states)
        book = self.wait(f"task {number} {names}", lambda book: book.tasks[number].state in states)
        return book.tasks[number]

    def advance_to(self, second: int) -> None:
        self.net.advance_chain_clock(max(0, second - self.now))

    def send(self, account: LocalAccount, call: Call) -> None:
        """Send it for somebody who has no agent, and wait until it is mined."""
        outbox = self._outboxes.get(account.address)
        if outbox is None:
            store = self._open_store(account.address)
            outbox = self._outboxes[account.address] = Outbox(self._endpoints, store, account)
        key = f"{time.monotonic_ns()}"
        outbox.submit(key, call)
        deadline = time.monotonic() + 30
        while outbox.entry(key).mined is None:
            assert time.monotonic() < deadline, "it was not mined"
            time.sleep(0.1)
            outbox.step()
        self.book()

    def solvency(self) -> tuple[int, int]:
        """What the market holds, and what it owes."""
        return MarketClient(self._endpoints, self.net.market).solvency()

    # Tasks

    def manifest(self, *, seed: int, workers: int = 1, local_steps: int | None = None) -> Manifest:
        """Sixteen steps of a small network; each seed is another task.

        They make eight segments, or as many rounds as have so many `local_steps`.
        """
        return manifest_of(
            "mlp",
            seed,
            SEGMENTS,
            STEPS_PER_SEGMENT,
            address=self._train,
            workers=workers,
            local_steps=local_steps,
        )

    def predicting(self, *, seed: int) -> Manifest:
        """The same network as it begins, which predicts for all records in as many segments."""
        document = json.loads(self.manifest(seed=seed).canonical)
        training = {"mode": "predict", "seed": seed, "until": {"epochs": 1}, "threads": 1}
        records = document["data"]["train"]["records"]
        batch = -(-records // (SEGMENTS * STEPS_PER_SEGMENT))
        length = {"batch": batch, "steps_per_segment": STEPS_PER_SEGMENT}
        return Manifest.of({**document, "training": {**training, **length}})

    def post(
        self,
        requester: LocalAccount,
        *,
        workers: int = 1,
        local_steps: int | None = None,
        predicts: bool = False,
        **changes: Any,
    ) -> int:
        """Post a task, and say its number."""
        number = len(self.book().tasks) + 1
        manifest = self.manifest(seed=number, workers=workers, local_steps=local_steps)
        if predicts:
            manifest = self.predicting(seed=number)
        publish_block(self.content, manifest.canonical)
        given: dict[str, Any] = {
            "manifest": manifest.digest,
            "env_class": self.env_class,
            "policy": Policy.AUDIT,
            "slots": workers,
            "audits": 1,
            "min_audits": changes.get("audits", 1),
            "reward": REWARD,
            "stake": STAKE,
            "audit_fee": FEE,
            "segments": manifest.plan.segments,
            # Long, for busy machines: nothing waits for them but what a test puts the clock past.
            "join_for": 3600,
            "train_for": 3600,
            "audit_for": 1800,
            "answer_for": 300,
            "challenge_for": 0,
        }
        terms = Terms(**given | changes)
        self.send(requester, self.calls.post(terms, value=terms.escrow))
        return number

    # What came of it

    def paid(self, number: int) -> dict[str, int]:
        """What was credited for a task, by whom."""
        found = Counter[str]()
        for event in self.events:
            if event.name == "Credited" and event.args["id"] == number:
                found[event.args["account"]] += event.args["amount"]
        return dict(found)

    def slashed(self, number: int) -> dict[str, int]:
        """What members lost of their bonds by a task."""
        found = Counter[str]()
        for event in self.events:
            if event.name == "SeatClosed" and event.args["id"] == number:
                found[event.args["member"]] += event.args["slashed"]
        return dict(found)

    def before_end(self, number: int) -> Money:
        """The money in a task when nobody had got anything back yet."""
        book, money = self.book(), Money()
        task = book.tasks[number]
        params = book.params[task.params_id]
        money.deposit(task.requester, task.terms.escrow)
        money.post(number, task.requester, task.terms, params)
        for slot in task.slots:
            assert slot.worker is not None
            money.deposit(slot.worker, task.terms.stake)
            money.join(number, slot.worker)
        for panel in task.panels.values():
            for seat in panel.seats:
                money.deposit(seat.member, params.seat_bond)
                money.bond(seat.member, params.seat_bond)
                money.pledge(number, seat.member)
        for segment, dispute in task.disputes.items():
            if not dispute.audit_seat:
                assert dispute.accuser is not None
                money.deposit(dispute.accuser, params.seat_bond)
                money.challenge(number, segment, dispute.accuser)
        return money

    def check(self, number: int, money: Money) -> None:
        """Everybody got and lost what the model says, to the wei, and nothing is left over."""
        book, bond = self.book(), self.net.params.seat_bond
        task = book.tasks[number]
        paid, due = self.paid(number), {who: n for who, n in money.credits.items() if n}
        assert paid == due, f"{paid} was paid, and {due} was due"
        seats = Counter(seat.member for panel in task.panels.values() for seat in panel.seats)
        lost = {who: bond * count - money.bonds[who] for who, count in seats.items()}
        assert self.slashed(number) == lost
        assert (task.locked, money.tasks[number].locked) == (0, 0)
        assert not money.pledged.total()
        assert not money.accusations

    def _open_store(self, name: str) -> Store:
        path = self.folder / f"{name}.sqlite"
        store = Store(path, chain_id=self.net.chain_id, market=self.net.market)
        self._parts.callback(store.close)
        return store

    def _last_words(self) -> str:
        said = []
        for name, player in self.players.items():
            log = player.home / "agent.log"
            if log.exists():
                said.append(f"{name}: " + " | ".join(log.read_text().splitlines()[-3:]))
        return "\n".join(said)


@contextmanager
def running_arena(people: int = PEOPLE, folder: Path | None = None) -> Iterator[Arena]:
    """In `folder`, or in one of its own that goes with it."""
    options = Options(chain="anvil", block_time_s=1, workers=people, auditors=0)
    with Devnet(folder, options=options) as net, ExitStack() as parts:
        yield Arena(net, parts)
