"""The workers of a run as the engine's coordinator needs them, wherever they are.

The coordinator waits for words in a thread of its own. Here they are fetched, and all that a word
names is carried here before the coordinator hears of it. Nobody is started or ended from afar: each
runner keeps its own worker running, and here it is only known whether anything is heard of it.
"""

import asyncio
import queue
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import structlog

from trainyard.engine.crew import Lost
from trainyard.engine.events import Event
from trainyard.protocol.errors import PermanentError, TrainyardError
from worker_agent.runner.own_worker import News

# A worker of which nothing was heard for so long is gone on without.
SILENT_S = 120.0
_PAUSE_S = 0.5

Fetch = Callable[[int, str, int], Awaitable[News]]
"""The news of a slot since a word, by the name of its worker and the word's number."""


class LeftError(Exception):
    """Whoever leads is not to go on."""


class DistantCrew:
    """Members by slot; `carry` brings what a word names, `dismiss_there` ends a worker's process.

    `is_held` says whether anybody has a slot now: for who is gone for good nobody waits.
    """

    def __init__(
        self,
        workers: int,
        fetch: Fetch,
        carry: Callable[[int, Event], Awaitable[None]],
        dismiss_there: Callable[[int], None],
        is_held: Callable[[int], bool],
        hear_silence: Callable[[int, bool], None],
    ) -> None:
        self._workers = workers
        self._fetch, self._carry, self._dismiss_there = fetch, carry, dismiss_there
        self._is_held, self._hear_silence = is_held, hear_silence
        self._heard: queue.SimpleQueue[Event | Lost | None] = queue.SimpleQueue()
        self._slots: set[int] = set()
        self._loop = asyncio.get_running_loop()

    @property
    def slots(self) -> set[int]:
        return set(self._slots)

    def start(self, slot: int) -> None:
        self._slots.add(slot)

    def dismiss(self, slot: int) -> None:
        if slot in self._slots:
            self._slots.discard(slot)
            self._loop.call_soon_threadsafe(self._dismiss_there, slot)

    def listen(self, timeout_s: float | None) -> list[Event | Lost]:
        found = []
        with suppress(queue.Empty):
            found.append(self._heard.get(timeout=timeout_s))
            while True:
                found.append(self._heard.get_nowait())
        if None in found:
            raise LeftError
        heard = [one for one in found if one is not None]
        self._slots -= {one.slot for one in heard if isinstance(one, Lost)}
        return heard

    def leave(self) -> None:
        """Let the coordinator's thread end."""
        self._heard.put(None)

    async def attend(self) -> None:
        """Hear all members, for as long as this is not cancelled."""
        members = [asyncio.create_task(self._attend(slot)) for slot in range(self._workers)]
        try:
            await asyncio.gather(*members)
        finally:
            for one in members:
                one.cancel()

    async def _attend(self, slot: int) -> None:
        name, since = "", 0
        silent_at, is_lost = time.monotonic(), False
        while True:
            try:
                news = await self._fetch(slot, name, since)
                if news.name != name:
                    name, since = news.name, 0
                for number, event in news.events:
                    if event.slot != slot:
                        raise PermanentError(f"worker {slot} speaks for worker {event.slot}")
                    await self._carry(slot, event)
                    self._heard.put(event)
                    since = number + 1
                self._hear_silence(slot, False)
                silent_at, is_lost = time.monotonic(), False
            except TrainyardError as error:
                self._hear_silence(slot, True)
                silent_s = time.monotonic() - silent_at
                if not is_lost and (silent_s >= SILENT_S or not self._is_held(slot)):
                    structlog.get_logger().warning("worker lost", slot=slot, reason=str(error))
                    self._heard.put(Lost(slot, f"nothing is heard of worker {slot}: {error}"))
                    is_lost = True
                await asyncio.sleep(_PAUSE_S)
