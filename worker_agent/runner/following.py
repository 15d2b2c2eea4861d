"""Follows a run in rounds that somebody else leads: takes its decisions, and nothing on trust.

A decision has all offers as they were signed. What they name is carried here and checked, and every
round is merged and kept here as well. What the next part does not need comes behind it: the leaves
of a round are carried while the worker is at the next one.
"""

import asyncio
import contextlib
import json
import time
from collections.abc import Iterator

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.engine.errors import StateError
from trainyard.engine.events import Finished
from trainyard.engine.exchange import Decision, Exchange
from trainyard.engine.round_log import RoundLog
from trainyard.protocol.errors import PermanentError
from worker_agent.peers.errors import OwnDiskError, PeerError, PeerRefusedError
from worker_agent.peers.plane import PeerPlane
from worker_agent.runner.carrying import ASK_S, Carrier, needed_to_keep, needed_to_merge
from worker_agent.runner.own_worker import OwnWorker
from worker_agent.runner.task import Task
from worker_agent.runner.waiting import to_its_end

_PAUSE_S = 0.5


class Standing(BaseModel):
    """Where a worker's run is: how many rounds are decided, and its state before one of them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    leads: bool
    rounds: int = Field(ge=0)
    globe: str | None


class Follower:
    """Our copy of the run, and how it grows by the decisions of another."""

    def __init__(
        self,
        task: Task,
        log: RoundLog,
        exchange: Exchange,
        own: OwnWorker,
        carrier: Carrier,
        plane: PeerPlane,
    ) -> None:
        self.task, self.log, self.exchange, self.own = task, log, exchange, own
        self.carrier, self.plane = carrier, plane
        self._entering: asyncio.Task[None] | None = None
        # The round after the one that is being entered, and what it starts from.
        self._next: tuple[int, str] | None = None
        self._last: Decision | None = None
        self._reason = ""

    async def follow(self, leader: int) -> bool:
        """Take the decisions of the worker of slot `leader` until all rounds are done."""
        try:
            while not self.log.is_complete:
                with self._patient(leader):
                    await self._agree(leader)
                    while await self.take_decision(leader):
                        pass
                    await self._enter_all()
                    continue
                await asyncio.sleep(_PAUSE_S)
            return True
        finally:
            await self._end_entering()

    async def take_decision(self, source: int) -> bool:
        """Go one round further by what the worker of `source` has; False at the end."""
        log = self.log
        if not log.has_begun:
            await self._begin()
        decision = await self._fetch(source)
        if decision is None:
            return not log.is_complete
        await self.carrier.states(source, *needed_to_merge(decision))
        # The last round has to be in the trace before this one.
        await self._enter_all()
        self._last = decision
        merged = await to_its_end(log.agree, decision)
        call = log.call_after(decision)
        if call is not None:
            self.exchange.post(call)
        self._next = decision.round + 1, merged.hash.hex()
        self._entering = asyncio.create_task(self._enter(source, decision))
        return True

    async def take_back(self) -> None:
        """Forget the last decision that was taken over, if its round did not come into the trace.

        What we decided ourselves before a crash stays.
        """
        self._next = None
        await self._end_entering()
        log, last = self.log, self._last
        if last is None or not log.has_begun or last.round != log.round:
            return
        if self.exchange.decision(log.round) == last:
            await to_its_end(log.go_back, log.round)
            self.exchange.post(log.call())
            self.own.restart()

    async def finish(self) -> None:
        """Have all of the last round here."""
        await self._enter_all()

    async def standing(self, slot: int, number: int) -> Standing:
        body = json.dumps(number).encode()
        try:
            said = await self.plane.ask(slot, "standing", body, timeout_s=ASK_S)
            return Standing.model_validate_json(said)
        except ValidationError as error:
            raise PermanentError(f"worker {slot} says where no worker is") from error

    async def _begin(self) -> None:
        start = await self.own.first_state()
        entry = await to_its_end(self.log.begin, start)
        self.task.live.take(Finished(slot=self.task.job.slot, entry=entry))
        self.exchange.post(self.log.call())

    async def _fetch(self, source: int) -> Decision | None:
        """The decision on the next round; the one before may still have to be entered."""
        number, globe = self._next or (self.log.round, self.log.globe)
        if number == self.log.plan.rounds:
            await self._enter_all()
            return None
        body = json.dumps({"round": number, "globe": globe}).encode()
        data = await self.plane.ask(source, "decision", body, timeout_s=ASK_S)
        self.task.live.silent.pop(source, None)
        if not data:
            return None
        decision = self._decision(source, data)
        if decision.round != number:
            raise PermanentError(f"worker {source} sent the decision on another round")
        return decision

    async def _enter(self, source: int, decision: Decision) -> None:
        """Put a round into our trace once all of it is here."""
        await self.carrier.states(source, *needed_to_keep(decision))
        entries = await to_its_end(self._put_in, decision)
        for entry in entries:
            self.task.live.take(entry)

    def _put_in(self, decision: Decision) -> list[Finished]:
        log = self.log
        log.check(decision)
        entries = log.enter(decision)
        said = self.own.merged(decision.round)
        last = log.finish(() if said is None else said.validated)
        parts = [Finished(slot=slot, entry=entry) for slot, entry in enumerate(entries)]
        return [*parts, Finished(entry=last)]

    async def _enter_all(self) -> None:
        if self._entering is not None:
            entering, self._entering = self._entering, None
            await entering

    async def _end_entering(self) -> None:
        if self._entering is not None:
            entering, self._entering = self._entering, None
            entering.cancel()
            await asyncio.gather(entering, return_exceptions=True)

    async def _agree(self, leader: int) -> None:
        """Have no round that the leader has otherwise, or has not: it leads, and we follow."""
        self._next = None
        await self._enter_all()
        log = self.log
        while True:
            number = log.round if log.has_begun else 0
            standing = await self.standing(leader, number)
            # Who says that it is not so far is not silent.
            self.task.live.silent.pop(leader, None)
            if not standing.leads:
                raise PeerRefusedError(f"worker {leader} does not lead yet")
            if not log.has_begun or (standing.globe == log.globe_before(number)):
                return
            if standing.globe is None and standing.rounds >= number:
                raise PeerRefusedError(f"worker {leader} is still at round {number - 1}")
            back = min(standing.rounds, number - 1)
            if back < 0:
                raise PermanentError(
                    f"worker {leader} begins with another state: one of the machines is faulty or "
                    "of another class"
                )
            await self._check_merge(leader, back)
            structlog.get_logger().warning("goes back", to_round=back, leader=leader)
            await to_its_end(log.go_back, back)
            self.exchange.post(log.call())
            self.own.restart()

    async def _check_merge(self, leader: int, number: int) -> None:
        """Do not go back for one that came to another state by the very parts that we merged.

        Going back would come to the same again, and for ever: a round that was decided otherwise
        comes to another state, but one that was not has only one.
        """
        ours, globe = self.exchange.decision(number), self.log.globe_before(number)
        if ours is None or (await self.standing(leader, number)).globe != globe:
            return
        body = json.dumps({"round": number, "globe": globe}).encode()
        data = await self.plane.ask(leader, "decision", body, timeout_s=ASK_S)
        theirs = await self.standing(leader, number + 1)
        is_other = theirs.globe not in (None, self.log.globe_before(number + 1))
        if data and is_other and self._decision(leader, data) == ours:
            raise PermanentError(
                f"worker {leader}, who leads, came to another state in round {number} by the same "
                "parts: it cheats, or one of the machines is faulty; nothing is submitted"
            )

    def _decision(self, source: int, data: bytes) -> Decision:
        try:
            return Decision.model_validate_json(data)
        except ValidationError as error:
            raise PermanentError(f"worker {source} sent a decision that is none") from error

    @contextlib.contextmanager
    def _patient(self, leader: int) -> Iterator[None]:
        """Whoever leads may be away for a while, and come back with less than it had."""
        try:
            yield
            self._reason = ""
        except (PeerError, OwnDiskError, StateError) as error:
            if isinstance(error, PeerError) and not isinstance(error, PeerRefusedError):
                self.task.live.silent.setdefault(leader, time.monotonic())
            if str(error) != self._reason:
                structlog.get_logger().info("waits for the leader", reason=str(error))
            self._reason = str(error)
