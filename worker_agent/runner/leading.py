"""Leads a run in rounds from one of its workers' machines, with the engine's coordinator."""

import asyncio
import json
import time
from collections.abc import Callable

import structlog
from pydantic import ValidationError

from trainyard.engine.coordinating import Deadline
from trainyard.engine.coordinator import Coordinator
from trainyard.engine.events import Ended, Event, Failed, LeftOut, Merged, Offered, Started
from trainyard.engine.tested import keep_tested
from trainyard.protocol.errors import PermanentError, TrainyardError
from worker_agent.peers.errors import PeerError
from worker_agent.runner.carrying import ASK_S
from worker_agent.runner.distant_crew import DistantCrew, LeftError
from worker_agent.runner.following import Follower, Standing
from worker_agent.runner.own_worker import News
from worker_agent.runner.waiting import to_its_end

# No manifest says how long a part may take: the slowest so far, three times, and never less.
_DEADLINE = Deadline(least_s=120.0, times=3.0, first_s=600.0)
_HOLD_S = 8.0
# How long one is listened to who says that it has more of the run than we have.
_CATCH_UP_S = 900.0

# All that another worker has to say: how far the run is we say ourselves.
_WORDS = (Started, Offered, Merged, Ended, Failed)


class Leader:
    """`known` are the slots whose workers can be asked."""

    def __init__(self, follower: Follower, known: Callable[[], set[int]]) -> None:
        self._follower, self._known = follower, known
        self._task, self._log = follower.task, follower.log
        self._own, self._slot = follower.own, follower.task.job.slot

    async def catch_up(self) -> None:
        """Take over what others have of the run and we have not, as one that came new."""
        # Each is asked once: who promised more than it has is not to hold us up again.
        asked: set[int] = set()
        while True:
            ahead = await self._ahead(self._known() - asked)
            if ahead is None:
                return
            slot, rounds = ahead
            try:
                async with asyncio.timeout(_CATCH_UP_S):
                    await self._take_from(slot, rounds)
            except (TrainyardError, TimeoutError) as error:
                reason = str(error) or f"it was not done in {_CATCH_UP_S:.0f} s"
                structlog.get_logger().warning("cannot catch up", source=slot, reason=reason)
            asked.add(slot)
            await self._follower.take_back()

    async def _take_from(self, slot: int, rounds: int) -> None:
        """Go as far as the worker of `slot` says it is, or as far as it can show."""
        while (before := self._rounds) < rounds:
            await self._follower.take_decision(slot)
            await self._follower.finish()
            if self._rounds == before:
                raise PeerError(f"worker {slot} has no decision on round {before}")

    async def lead(self) -> None:
        crew = DistantCrew(
            self._task.workers,
            self._news,
            self._carry,
            self._dismiss,
            lambda slot: slot in self._task.job.holders,
            self._hear_silence,
        )
        loop = asyncio.get_running_loop()

        def tell(event: Event) -> None:
            loop.call_soon_threadsafe(self._tell, event)

        coordinator = Coordinator(
            self._log,
            self._follower.exchange,
            crew,
            _DEADLINE,
            tell=tell,
            most_losses=None,
            finisher=self._slot,
            starter=self._slot,
        )
        attending = asyncio.create_task(crew.attend())
        leading = asyncio.create_task(to_its_end(coordinator.lead))
        try:
            await asyncio.wait({attending, leading}, return_when=asyncio.FIRST_COMPLETED)
            if attending.done():
                attending.result()
            ended = await leading
        finally:
            crew.leave()
            for one in (attending, leading):
                one.cancel()
            for left in await asyncio.gather(attending, leading, return_exceptions=True):
                if isinstance(left, Exception) and not isinstance(left, LeftError):
                    structlog.get_logger().debug("left", reason=str(left))
        self._keep(ended)

    def _keep(self, ended: Ended) -> None:
        if ended.tested is not None:
            keep_tested(self._task.run, ended.tested)
        self._task.live.take(ended)

    @property
    def _rounds(self) -> int:
        return self._log.round if self._log.has_begun else 0

    async def _ahead(self, known: set[int]) -> tuple[int, int] | None:
        """Who has most rounds, and how many, if that is more than we have."""
        found: dict[int, Standing] = {}
        for slot in known - {self._slot}:
            try:
                found[slot] = await self._follower.standing(slot, 0)
            except TrainyardError:
                continue
        most = self._log.plan.rounds
        rounds = {slot: one.rounds for slot, one in found.items() if one.rounds <= most}
        best = max(rounds, key=lambda slot: rounds[slot], default=None)
        if best is None or rounds[best] <= self._rounds:
            return None
        return best, rounds[best]

    async def _news(self, slot: int, name: str, since: int) -> News:
        if slot == self._slot:
            return await self._own.news(name, since, _HOLD_S)
        body = json.dumps({"name": name, "since": since}).encode()
        data = await self._follower.plane.ask(slot, "events", body, timeout_s=ASK_S)
        try:
            news = News.model_validate_json(data)
        except ValidationError as error:
            raise PermanentError(f"worker {slot} says what no worker says") from error
        for _, event in news.events:
            if not isinstance(event, _WORDS):
                raise PermanentError(f"worker {slot} says {event.event!r}, which is for us to say")
        return news

    async def _carry(self, slot: int, event: Event) -> None:
        """Have here what an event names before anybody acts by it."""
        if slot == self._slot:
            return
        # Who took our decision over may be a part ahead.
        if isinstance(event, Offered) and event.round - self._rounds in (0, 1):
            await self._follower.carrier.offer(slot, event.round)

    def _dismiss(self, slot: int) -> None:
        if slot == self._slot:
            self._own.restart()
            return
        asyncio.get_running_loop().create_task(self._ask_anew(slot))

    async def _ask_anew(self, slot: int) -> None:
        try:
            await self._follower.plane.ask(slot, "anew", timeout_s=ASK_S)
        except TrainyardError as error:
            structlog.get_logger().info("cannot be asked", slot=slot, reason=str(error))

    def _hear_silence(self, slot: int, is_silent: bool) -> None:
        silent = self._task.live.silent
        if is_silent:
            silent.setdefault(slot, time.monotonic())
        else:
            silent.pop(slot, None)

    def _tell(self, event: Event) -> None:
        if isinstance(event, LeftOut):
            structlog.get_logger().warning(
                "left out", slot=event.slot, round=event.round, reason=event.reason
            )
        if not isinstance(event, Started):
            # Our own worker was heard already, and others say nothing about our run.
            self._task.live.take(event)
