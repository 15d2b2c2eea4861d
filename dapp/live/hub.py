"""Passes the sequence on to all who listen. One per process; any number may share a database."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from functools import partial

import structlog
from sqlalchemy.exc import SQLAlchemyError

from dapp.database.engine import Database
from dapp.errors import ApiError
from dapp.live.listening import EventStream, Listener
from dapp.live.sequence import EVERYBODY, Told, bounds, is_wanted, told_after

# Another process may have told something, of which nobody wakes us.
_LOOK_S = 0.5
_AT_ONCE = 1000
_ALIVE = b": \n\n"


class Hub:
    def __init__(
        self,
        database: Database,
        *,
        most: int,
        per_address: int,
        on_told: Callable[[], None] = lambda: None,
        keep_alive_s: float = 15.0,
    ) -> None:
        self._database, self._most, self._per_address = database, most, per_address
        self._on_told, self._keep_alive_s = on_told, keep_alive_s
        self._listeners: dict[str, set[Listener]] = defaultdict(set)
        self._addresses: Counter[str] = Counter()
        self._count = 0
        self._last = 0
        self._wake = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def count(self) -> int:
        """Who listens now."""
        return self._count

    def wake(self) -> None:
        """Look now; from any thread."""
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)

    def pass_by(self, kind: str, data: str, topic: str) -> None:
        """Say something that nobody needs who was away; from any thread."""
        encoded = f"event: {kind}\ndata: {data}\n\n".encode()
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._offer, encoded, frozenset((topic,)))

    async def run(self) -> None:
        """Until cancelled."""
        self._loop = asyncio.get_running_loop()
        self._last = (await asyncio.to_thread(self._bounds))[1]
        alive_at = self._loop.time() + self._keep_alive_s
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._wake.wait()
            self._wake.clear()
            try:
                while await self._pass_on():
                    pass
            except SQLAlchemyError as error:
                # The database is away for a moment; nothing is lost meanwhile.
                structlog.get_logger().warning("live sequence", reason=type(error).__name__)
            if self._loop.time() >= alive_at:
                alive_at += self._keep_alive_s
                self._keep_alive()

    def close(self) -> None:
        """End all streams."""
        for listener in self._all():
            listener.end()

    def listen(self, topics: Sequence[str], address: str, after: int | None) -> EventStream:
        """The stream of who listens; `after` is the last number that it has."""
        if self._count >= self._most or self._addresses[address] >= self._per_address:
            raise ApiError(
                429,
                "too_many_streams",
                "too many open streams; close some, or try again later",
                retry_after_s=10.0,
            )
        listener = Listener(topics)
        self._count += 1
        self._addresses[address] += 1
        for topic in listener.topics:
            self._listeners[topic].add(listener)
        missed = self._missed(listener.topics, after, self._last)
        # Whoever goes on from before has that number until it has heard of what it missed.
        since = self._last if after is None else after
        leave = partial(self._leave, listener, address)
        return EventStream(listener, missed, leave, since=since)

    async def _missed(
        self, topics: Sequence[str], after: int | None, last: int
    ) -> AsyncIterator[bytes]:
        if after is None:
            return
        first, newest = await asyncio.to_thread(self._bounds)
        if after > newest or (first and after < first - 1) or (newest and not first):
            yield f"id: {last}\nevent: reset\ndata: {{}}\n\n".encode()
            return
        while after < last:
            some = await asyncio.to_thread(self._read, after)
            some = [told for told in some if told.id <= last]
            if not some:
                return
            for told in some:
                if is_wanted(told, topics):
                    yield told.encoded
            after = some[-1].id

    async def _pass_on(self) -> bool:
        some = await asyncio.to_thread(self._read, self._last)
        if some:
            # First, so that whoever asks because of what it heard is not told what was before.
            self._on_told()
        for told in some:
            self._offer(told.encoded, told.topics)
            self._last = told.id
        return len(some) == _AT_ONCE

    def _offer(self, data: bytes, topics: frozenset[str]) -> None:
        if EVERYBODY in topics:
            found = self._all()
        else:
            wanted = [self._listeners[topic] for topic in topics if topic in self._listeners]
            found = set[Listener]().union(*wanted)
        for listener in found:
            listener.offer(data)

    def _keep_alive(self) -> None:
        """A word to those who heard nothing for a while: else proxies take the line for dead."""
        for listener in self._all():
            if listener.is_quiet:
                listener.offer(_ALIVE)
            listener.is_quiet = True

    def _all(self) -> set[Listener]:
        return set[Listener]().union(*self._listeners.values())

    def _leave(self, listener: Listener, address: str) -> None:
        listener.is_gone = True
        self._count -= 1
        self._addresses[address] -= 1
        self._addresses += Counter()
        for topic in listener.topics:
            self._listeners[topic].discard(listener)
            if not self._listeners[topic]:
                del self._listeners[topic]

    def _read(self, after: int) -> list[Told]:
        with self._database.reading() as session:
            return told_after(session, after, _AT_ONCE)

    def _bounds(self) -> tuple[int, int]:
        with self._database.reading() as session:
            return bounds(session)
