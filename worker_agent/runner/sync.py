"""A slot of a synchronous run: all workers in one TensorFlow cluster, over the peer plane.

TensorFlow cannot replace a lost worker, so all begin anew from the last state that all of them
have. They agree on that by counting *generations*: whoever has to begin anew counts one up, whoever
hears of a higher one joins it, and all start when all wait in the same one. Nobody leads.
"""

import asyncio
import contextlib
import json
import secrets
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.engine.errors import StateError
from trainyard.engine.journal import Entry, Journal, held
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.plain_files import open_plain
from trainyard.engine.state import State
from trainyard.protocol.errors import PermanentError, TrainyardError
from worker_agent.joining import card_port
from worker_agent.peers.errors import OwnDiskError, PeerError
from worker_agent.peers.identity import own_identity
from worker_agent.peers.inner import Config, sync_ports
from worker_agent.peers.plane import PeerPlane
from worker_agent.progress import PEER
from worker_agent.runner.child import LostPeerError, LostWorkerError, Worker
from worker_agent.runner.live import WAITING
from worker_agent.runner.losing import Losses
from worker_agent.runner.task import SOCKETS, Task

_POLL_S = 0.25
_ASK_S = 5.0
_CONFIG = "peers.json"
# There while states are taken from another, and none of ours lie before them.
_ADOPTING = "adopting"


class Standing(BaseModel):
    """Where a worker of the run is, as it says: nothing in it is larger than it can be."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    generation: int = Field(ge=0, lt=1 << 31)
    # "waiting" for the others, "running", or "ended" with all states.
    phase: Literal["waiting", "running", "ended"]
    # How many states it had when it began to wait.
    states: int = Field(ge=0, lt=1 << 31)
    # Another one each time that its process starts, and whom it began this generation with.
    name: str = Field(max_length=64)
    met: dict[int, Annotated[str, Field(max_length=64)]] = Field(max_length=64)

    @classmethod
    def parse(cls, data: bytes) -> "Standing":
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise PermanentError("a peer says what no peer says") from error

    def waits_for(self, slot: int, name: str) -> bool:
        """Whether it is there for the worker of this name: waiting, or begun with it already."""
        return self.phase == "waiting" or self.met.get(slot) == name


class _UnfitSourceError(LostPeerError):
    """A peer from which states were to be taken, and that sent none or others."""

    def __init__(self, slot: int, why: str) -> None:
        super().__init__(f"worker {slot}: {why}")
        self.slot = slot


class _FalseStateError(PermanentError):
    """What a peer sent is no state of its run. All else that fails on the way is no lie."""


async def run_sync(task: Task) -> None:
    await _SyncRun(task).run()


class _SyncRun:
    def __init__(self, task: Task) -> None:
        self._task = task
        self._slot = task.job.slot
        self._generation = 0
        self._phase: Literal["waiting", "running", "ended"] = "waiting"
        # How many states the whole run has, and who said in vain that it has them.
        self._whole = task.manifest.plan.segments + 1
        self._liars: set[str] = set()
        self._name = secrets.token_hex(8)
        self._met: dict[int, str] = {}
        if self._task.shelf.path(_ADOPTING).exists():
            self._forget_all()
        self._kept = self._count()
        self._heard: dict[int, Standing] = {}
        self._losses = Losses()

    @property
    def _others(self) -> list[int]:
        return [slot for slot in range(self._task.workers) if slot != self._slot]

    async def run(self) -> None:
        task = self._task
        identity = own_identity(task.shelf.path(PEER), task.job.me)
        sockets = task.shelf.path(SOCKETS)
        peers = task.settings.peers
        plane = PeerPlane(
            identity,
            self._slot,
            folder=sockets,
            answer=self._answer,
            host=peers.host,
            port=0 if peers.relay else card_port(task.shelf),
            relay=peers.relay,
        )
        config = sockets / _CONFIG
        async with plane:
            Config(
                folder=str(sockets.absolute()), slot=self._slot, ports=sync_ports(task.workers)
            ).write(config)
            hearing = asyncio.create_task(self._hear_peers(plane))
            computing = asyncio.create_task(self._compute_and_stay(plane, config))
            try:
                # Without hearing the others nothing can go on: if that ends, all of it does.
                await asyncio.wait({hearing, computing}, return_when=asyncio.FIRST_COMPLETED)
                for one in (computing, hearing):
                    if one.done():
                        one.result()
            finally:
                for one in (computing, hearing):
                    one.cancel()
                    with contextlib.suppress(asyncio.CancelledError, Exception):
                        await one

    async def _compute_and_stay(self, plane: PeerPlane, config: Path) -> None:
        await self._compute(plane, config)
        # The others may still need our states; the agent ends this when they do not.
        await asyncio.Event().wait()

    async def _compute(self, plane: PeerPlane, config: Path) -> None:
        losses = 0
        while not self._task.has_ended:
            began = time.monotonic()
            self._wait_anew()
            try:
                if await self._gather(plane):
                    break
                self._phase = "running"
                self._task.live.lost_s += time.monotonic() - began if losses else 0.0
                self._task.live.enter("training")
                await self._train(plane, config)
                break
            except (LostPeerError, PeerError) as error:
                blamed = self._restless() | (
                    {error.slot} if isinstance(error, _UnfitSourceError) else set()
                )
                is_own = isinstance(error, LostWorkerError)
                losses = self._losses.note(self._count(), blamed, is_own=is_own)
                structlog.get_logger().warning(
                    "begin anew", reason=str(error), losses=losses, slots=sorted(blamed)
                )
                if self._losses.is_hopeless:
                    raise PermanentError(
                        f"the worker was lost {self._losses.own} times without a state between, "
                        f"while the others were there: {error}"
                    ) from error
                # At once when the others moved on; a little later when something is broken here.
                await asyncio.sleep(min(0.25 * losses, 5.0))
        self._phase = "ended"
        self._kept = self._count()
        self._task.end()

    def _restless(self) -> set[int]:
        """Those with whom this generation began, and who are not in it any more."""
        return {
            slot
            for slot in self._others
            if not _is_with(self._heard.get(slot), self._generation, self._met.get(slot))
        }

    def _wait_anew(self) -> None:
        self._phase, self._kept, self._met = "waiting", self._count(), {}
        self._generation += 1
        self._task.live.generation = self._generation
        self._task.live.enter(WAITING)

    async def _gather(self, plane: PeerPlane) -> bool:
        """Wait until all wait in this generation, at the same state; or take all from who ended."""
        since = time.monotonic()
        while True:
            ended = next((s for s, one in self._heard.items() if self._has_all(one)), None)
            if ended is not None and await self._take_all(plane, ended):
                return True
            for one in self._heard.values():
                is_ours = one.waits_for(self._slot, self._name)
                # Those that run without us have to begin anew, and so in a later generation.
                self._generation = max(self._generation, one.generation + (not is_ours))
            here = {
                slot: one.name
                for slot, one in self._heard.items()
                if one.generation == self._generation and one.waits_for(self._slot, self._name)
            }
            # The market is to ask who keeps the others waiting, as if it were silent.
            absent = [slot for slot in self._others if slot not in here]
            self._task.live.restless = dict.fromkeys(absent, since) | self._losses.restless
            if not absent:
                self._met = here
                await self._align(plane)
                return False
            await asyncio.sleep(_POLL_S)

    async def _align(self, plane: PeerPlane) -> None:
        """Have the states that all have, and no more. Who came new takes them from another."""
        counts = {slot: one.states for slot, one in self._heard.items() if one.states}
        if self._kept:
            counts[self._slot] = self._kept
        if not counts:
            return
        kept = min(counts.values())
        if not self._kept:
            believed = [one for one in counts if self._heard[one].name not in self._liars]
            source = min(believed or counts)
            name = self._heard[source].name
            try:
                await self._adopt_from_the_first(plane, source, kept)
            except PeerError as error:
                raise _UnfitSourceError(source, str(error)) from error
            except _FalseStateError as error:
                self._liars.add(name)
                raise _UnfitSourceError(source, str(error)) from error
            return
        with self._journal() as journal:
            if len(journal.entries) > kept:
                journal.rewind(kept)

    def _has_all(self, one: Standing) -> bool:
        """Whether it has the whole run, and was not found to say so in vain."""
        is_whole = one.phase == "ended" and one.states == self._whole
        return is_whole and one.name not in self._liars

    async def _take_all(self, plane: PeerPlane, slot: int) -> bool:
        """Take the rest of the run from who has ended; False if what it sends is none."""
        name = self._heard[slot].name
        try:
            await self._adopt(plane, slot, self._whole)
        except _FalseStateError as error:
            structlog.get_logger().warning("not believed", slot=slot, reason=str(error))
            self._liars.add(name)
            return False
        return self._count() == self._whole

    async def _adopt_from_the_first(self, plane: PeerPlane, slot: int, count: int) -> None:
        """Take all of these states or none: the others would go back to as few as we have."""
        self._task.shelf.path(_ADOPTING).touch()
        try:
            await self._adopt(plane, slot, count)
        except BaseException:
            self._forget_all()
            raise
        self._task.shelf.path(_ADOPTING).unlink()

    def _forget_all(self) -> None:
        with self._journal() as journal:
            journal.rewind(0)
        self._task.shelf.path(_ADOPTING).unlink()

    async def _adopt(self, plane: PeerPlane, slot: int, count: int) -> None:
        """Take the states that are missing here from the worker of `slot`."""
        most = most_state_bytes(self._task.manifest)
        with self._journal() as journal:
            for number in range(len(journal.entries), count):
                body = json.dumps(number).encode()
                entry = _entry_of(await plane.ask(slot, "entry", body, timeout_s=_ASK_S))
                path = self._task.shelf.path(f"adopted-{number}")
                try:
                    await plane.fetch(slot, "state", body, path, most_bytes=most)
                    state = _state_in(path, slot)
                finally:
                    path.unlink(missing_ok=True)
                if state.hash.hex() != entry.state or entry.number != number:
                    raise _FalseStateError(f"worker {slot} sent another state than it named")
                try:
                    journal.append(entry, state)
                except StateError as error:
                    raise OwnDiskError(str(error)) from error
        self._kept = self._count()

    async def _train(self, plane: PeerPlane, config: Path) -> None:
        """Run the worker; when another one began anew, it is of no use any more."""
        addresses = tuple(f"127.0.0.1:{ports[0]}" for ports in sync_ports(self._task.workers))
        prefix = [sys.executable, "-m", "worker_agent.peers.inner", str(config.absolute()), "--"]
        worker = Worker(
            self._task.engine_job(addresses), self._task.sandbox, prefix, config.parent.absolute()
        )
        training = asyncio.create_task(worker.run(self._task.live.take))
        moving = asyncio.create_task(self._until_they_move())
        try:
            await asyncio.wait({training, moving}, return_when=asyncio.FIRST_COMPLETED)
            if training.done():
                training.result()
                return
            raise LostPeerError("another worker began anew")
        finally:
            for one in (training, moving):
                one.cancel()
                with contextlib.suppress(asyncio.CancelledError, TrainyardError):
                    await one

    async def _until_they_move(self) -> None:
        while not any(
            one.generation > self._generation and one.phase != "ended"
            for one in self._heard.values()
        ):
            await asyncio.sleep(_POLL_S)

    async def _hear_peers(self, plane: PeerPlane) -> None:
        """Know who holds the slots, and ask each where it is, over and over."""
        while True:
            before = self._task.job.holders
            if self._task.was_told_anew():
                plane.know(self._task.job.peer_cards())
                # Who is gone is not waited for, and who comes instead was not silent yet.
                for slot in [
                    one for one in before if self._task.job.holders.get(one) != before[one]
                ]:
                    self._heard.pop(slot, None)
                    self._task.live.silent.pop(slot, None)
                    self._task.live.restless.pop(slot, None)
                    self._losses.leave(slot)
            await asyncio.gather(*(self._hear(plane, slot) for slot in self._others))
            self._task.live.write()
            await asyncio.sleep(_POLL_S)

    async def _hear(self, plane: PeerPlane, slot: int) -> None:
        silent = self._task.live.silent
        try:
            said = Standing.parse(await plane.ask(slot, "standing", timeout_s=_ASK_S))
            if said.states > self._whole:
                raise PermanentError("a peer has more states than the run")
            self._heard[slot] = said
            silent.pop(slot, None)
        except TrainyardError:
            # What it said last is of a time that is over: it may come back as another.
            self._heard.pop(slot, None)
            silent.setdefault(slot, time.monotonic())

    async def _answer(self, slot: int, kind: str, body: bytes) -> bytes | Path:
        if kind == "standing":
            standing = Standing(
                generation=self._generation,
                phase=self._phase,
                states=self._kept,
                name=self._name,
                met=self._met,
            )
            return standing.model_dump_json().encode()
        number = int(json.loads(body))
        journal = Journal.read(self._task.run)
        if not 0 <= number < len(journal.entries):
            raise PermanentError(f"there is no state {number} here")
        if kind == "entry":
            return journal.entries[number].model_dump_json().encode()
        if kind == "state":
            return journal.path_of(number)
        raise PermanentError(f"nobody asks for {kind!r}")

    @contextlib.contextmanager
    def _journal(self) -> Iterator[Journal]:
        with held(self._task.run):
            yield Journal.open(self._task.run, self._task.manifest.canonical)

    def _count(self) -> int:
        try:
            return len(Journal.read(self._task.run).entries)
        except TrainyardError:
            return 0


def _is_with(said: Standing | None, generation: int, name: str | None) -> bool:
    """Whether a peer is where it was when all began together."""
    return said is not None and (said.generation, said.name) == (generation, name)


def _entry_of(data: bytes) -> Entry:
    try:
        return Entry.model_validate_json(data)
    except ValidationError as error:
        raise _FalseStateError("a peer sent no entry of a journal") from error


def _state_in(path: Path, slot: int) -> State:
    with open_plain(path) as file:
        data = file.read()
    try:
        return State.decode(data, f"what worker {slot} sent")
    except StateError as error:
        raise _FalseStateError(str(error)) from error
