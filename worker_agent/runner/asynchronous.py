"""A slot of an async run: one leads and keeps the weights, all others compute what it sends.

The lowest slot that is held leads, as the chain says. With the leader's process the weights are
lost, so whenever it begins anew, from its last state, all workers do: it has another *name* then.
The others keep a copy of its states as they come, to submit the same claim and to lead on if they
have to.
"""

import asyncio
import contextlib
import json
import secrets
import sys
import time
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.engine.addresses import Addresses
from trainyard.engine.errors import StateError
from trainyard.engine.journal import Journal
from trainyard.engine.scoring import MOST_SCORE_BYTES, SCORE, Score
from trainyard.engine.worker import Job
from trainyard.protocol.errors import PermanentError, TrainyardError
from worker_agent.peers.errors import OwnDiskError, PeerError
from worker_agent.peers.inner import FIRST_PORT, Config, async_ports
from worker_agent.peers.plane import PeerPlane
from worker_agent.runner.child import LostPeerError, Worker
from worker_agent.runner.copying import OtherStateError, copy_run, count_states
from worker_agent.runner.live import WAITING
from worker_agent.runner.meeting import open_plane, sockets_of
from worker_agent.runner.task import Task
from worker_agent.runner.waiting import first_of

_POLL_S = 0.25
_ASK_S = 10.0
_MOST_LOSSES = 20
_CONFIG, _WORKER = "peers.json", "worker"


class Standing(BaseModel):
    """Where a worker of the run is; who leads has a name, another one whenever it begins anew."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    leader: str = ""
    states: int = Field(ge=0)
    has_ended: bool = False


async def run_async(task: Task) -> None:
    await _AsyncRun(task).run()


class _AsyncRun:
    def __init__(self, task: Task) -> None:
        self._task, self._slot = task, task.job.slot
        # Ours, while we lead.
        self._name = ""
        self._told = asyncio.Event()

    async def run(self) -> None:
        async with open_plane(self._task, self._answer) as plane:
            await first_of(self._hear_agent(plane), self._compute_and_serve(plane))

    async def _compute_and_serve(self, plane: PeerPlane) -> bool:
        while not self._task.has_ended:
            leader = self._leader()
            role = self._lead(plane) if leader == self._slot else self._follow(plane, leader)
            await first_of(role, self._until_another_leads(leader))
            self._name = ""
        # The others may still need our states; the agent ends this when they do not.
        return await asyncio.Event().wait()

    # As leader

    async def _lead(self, plane: PeerPlane) -> bool:
        task, losses, known = self._task, 0, -1
        await self._gather(plane)
        while True:
            began = time.monotonic()
            self._name = secrets.token_hex(8)
            task.live.generation += 1
            task.live.enter("training, leading")
            try:
                await self._worker(self._slot).run(task.live.take)
                task.end()
                return True
            except LostPeerError as error:
                losses = losses + 1 if count_states(self._task.run) == known else 1
                known = count_states(self._task.run)
                structlog.get_logger().warning("begins anew", reason=str(error), losses=losses)
                if losses >= _MOST_LOSSES:
                    raise PermanentError(
                        f"the leader was lost {losses} times without a state between: {error}"
                    ) from error
                await asyncio.sleep(min(0.25 * losses, 5.0))
                task.live.lost_s += time.monotonic() - began

    async def _gather(self, plane: PeerPlane) -> None:
        """Wait for the others, and take over what they have of a run that another one led."""
        self._task.live.enter(WAITING)
        while True:
            found = await self._standings(plane)
            if len(found) == self._task.workers - 1:
                break
            await asyncio.sleep(_POLL_S)
        for slot in sorted(found, key=lambda slot: -found[slot].states):
            if found[slot].states <= count_states(self._task.run):
                return
            try:
                # It does not lead, so what we have ourselves is not given up for it.
                await copy_run(self._task, plane, slot, found[slot].states, may_rewind=False)
            except (PeerError, OwnDiskError, OtherStateError, StateError) as error:
                structlog.get_logger().warning("cannot copy", source=slot, reason=str(error))

    async def _standings(self, plane: PeerPlane) -> dict[int, Standing]:
        others = [slot for slot in range(self._task.workers) if slot != self._slot]
        found = await asyncio.gather(*(self._ask(plane, slot) for slot in others))
        return {slot: one for slot, one in zip(others, found, strict=True) if one is not None}

    # As one of the others

    async def _follow(self, plane: PeerPlane, leader: int) -> bool:
        self._task.live.enter(f"computing for worker {leader}")
        working: asyncio.Task[None] | None = None
        name = ""
        try:
            while True:
                standing = await self._ask(plane, leader)
                has_ended = standing is not None and standing.has_ended
                if has_ended and await self._take_result(plane, leader):
                    return True
                if working is not None and working.done():
                    working.result()
                if standing is not None and standing.leader not in ("", name):
                    await _ended(working)
                    name = standing.leader
                    working = asyncio.create_task(self._work(leader))
                if standing is not None and standing.states > count_states(self._task.run):
                    await self._try_to_copy(plane, leader, standing.states)
                await asyncio.sleep(_POLL_S)
        finally:
            await _ended(working)

    async def _work(self, leader: int) -> None:
        """Compute what is sent; who is lost alone comes back alone."""
        losses = 0
        while losses < _MOST_LOSSES:
            try:
                await self._worker(leader).run(self._task.live.take)
            except LostPeerError as error:
                losses += 1
                structlog.get_logger().warning("worker lost", reason=str(error), losses=losses)
                await asyncio.sleep(min(0.25 * losses, 5.0))
        raise PermanentError(f"the worker was lost {losses} times")

    async def _take_result(self, plane: PeerPlane, leader: int) -> bool:
        """The whole run and its score, which the agent computes again before it signs for it."""
        task = self._task
        if not await self._try_to_copy(plane, leader, task.manifest.plan.segments + 1):
            return False
        data = await plane.ask(leader, "score", timeout_s=_ASK_S, most_bytes=MOST_SCORE_BYTES)
        score = Score.read(data, f"worker {leader}")
        score.claimed_for(Journal.read(task.run).entries[-1].state).save(task.run)
        task.end()
        return True

    async def _try_to_copy(self, plane: PeerPlane, leader: int, count: int) -> bool:
        try:
            await copy_run(self._task, plane, leader, count)
        except (PeerError, OwnDiskError) as error:
            structlog.get_logger().info("cannot copy", reason=str(error))
            return False
        return True

    # The processes of this machine

    def _worker(self, leader: int) -> Worker:
        """The worker of this machine, and who leads if that is here too."""
        task, sockets = self._task, sockets_of(self._task)
        config = sockets / _CONFIG
        ports = async_ports(task.workers, leader)
        Config(folder=str(sockets.absolute()), slot=self._slot, ports=ports).write(config)
        prefix = [sys.executable, "-m", "worker_agent.peers.inner", str(config.absolute()), "--"]
        own = self._engine_job()
        if leader != self._slot:
            return Worker(own, task.sandbox, prefix, sockets.absolute())
        own = own.model_copy(update={"folder": task.run.absolute() / _WORKER})
        first = task.engine_job().model_copy(update={"cluster": own.cluster, "leads": True})
        return Worker(first, task.sandbox, prefix, sockets.absolute(), beside=own)

    def _engine_job(self) -> Job:
        chief, weights, *rest = (
            f"127.0.0.1:{FIRST_PORT + number}" for number in range(self._task.workers + 2)
        )
        return self._task.engine_job().model_copy(
            update={
                "folder": self._task.shelf.path(_WORKER).absolute(),
                "cluster": Addresses(chief=chief, weights=weights, workers=tuple(rest)),
                "slot": self._slot,
            }
        )

    # With the others

    def _leader(self) -> int:
        return min({self._slot, *self._task.job.holders})

    async def _until_another_leads(self, leader: int) -> bool:
        while self._leader() == leader:
            await self._told.wait()
            self._told.clear()
        structlog.get_logger().info("roles change", leader=self._leader())
        return False

    async def _hear_agent(self, plane: PeerPlane) -> bool:
        """Know who holds the slots, and of whom nothing is heard."""
        while True:
            if self._task.was_told_anew():
                plane.know(self._task.job.peer_cards())
                self._told.set()
            if self._name:
                await self._standings(plane)
            self._task.live.write()
            await asyncio.sleep(_POLL_S)

    async def _ask(self, plane: PeerPlane, slot: int) -> Standing | None:
        silent = self._task.live.silent
        try:
            standing = Standing.model_validate_json(
                await plane.ask(slot, "standing", timeout_s=_ASK_S)
            )
        except (TrainyardError, ValidationError):
            silent.setdefault(slot, time.monotonic())
            return None
        if standing.states > self._task.manifest.plan.segments + 1:
            # No run of this manifest has so many: who says so says nothing.
            silent.setdefault(slot, time.monotonic())
            return None
        silent.pop(slot, None)
        return standing

    async def _answer(self, slot: int, kind: str, body: bytes) -> bytes | Path:
        task = self._task
        if kind == "standing":
            standing = Standing(
                leader=self._name, states=count_states(self._task.run), has_ended=task.has_ended
            )
            return standing.model_dump_json().encode()
        if kind == "score" and task.has_ended:
            return (task.run / SCORE).read_bytes()
        try:
            number = int(json.loads(body))
        except (ValueError, TypeError, OverflowError, RecursionError) as error:
            raise PermanentError(f"{kind!r} cannot be asked for like this") from error
        journal = Journal.read(task.run)
        if not 0 <= number < len(journal.entries):
            raise PermanentError(f"there is no state {number} here")
        if kind == "entry":
            return journal.entries[number].model_dump_json().encode()
        if kind == "state" and not journal.path_of(number).is_symlink():
            return journal.path_of(number)
        raise PermanentError(f"nobody asks for {kind!r}")


async def _ended(working: "asyncio.Task[None] | None") -> None:
    if working is not None:
        working.cancel()
        with contextlib.suppress(asyncio.CancelledError, TrainyardError):
            await working
