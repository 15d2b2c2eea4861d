"""Getting blocks from whoever has them, and believing none of them.

Our own store is asked first, then the sources in the order of how well they did. Where one is slow
the next is asked beside it, the first answer that matches the CID wins, and who was beaten by far
is asked last for a while, as is who failed.
"""

import time
from collections import deque
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from trainyard.content.cid import Cid
from trainyard.content.errors import (
    BlockNotFoundError,
    CorruptBlockError,
    SourceError,
    StoreError,
    UnavailableError,
)
from trainyard.content.limits import DEFAULT_LIMITS, Limits
from trainyard.content.ports import BlockSource, ContentStore, HealingStore, StreamingSource
from trainyard.protocol.errors import TransientError

_PARALLEL = 8
_PENALTY_S = 30.0
# Whoever is silent for so many times what another took to answer is slow.
_SLOWER_BY = 2.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """A verified block, and who sent it."""

    block: bytes
    source: str


@dataclass(frozen=True, slots=True)
class _Asked:
    source: BlockSource
    at: float


class Feed(Protocol):
    """Where a walk takes its blocks from, in the order in which it needs them."""

    def want(self, cids: Sequence[Cid]) -> None:
        """The walk will soon take these."""

    def take(self, cid: Cid) -> Arrived: ...


class Fetcher:
    """Verified blocks from a store and several sources. Safe to use from many threads."""

    def __init__(
        self,
        store: ContentStore | None,
        sources: Sequence[BlockSource] = (),
        *,
        limits: Limits = DEFAULT_LIMITS,
        hedge_s: float = 2.0,
    ) -> None:
        self.store, self.sources, self.limits = store, tuple(sources), limits
        self.hedge_s = hedge_s
        self._blamed_at: dict[str, float] = {}
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._asking: ThreadPoolExecutor | None = None

    def add_sources(self, sources: Iterable[BlockSource]) -> None:
        """Ask these, too, after those that are known."""
        known = {source.name for source in self.sources}
        new = [source for source in sources if source.name not in known]
        with self._lock:
            self.sources += tuple({source.name: source for source in new}.values())
            # Threads are as many as there are sources, so that no silent one takes another's.
            asking, self._asking = self._asking, None
        if asking is not None:
            asking.shutdown(wait=False)

    def close(self) -> None:
        for pool in (self._pool, self._asking):
            if pool is not None:
                pool.shutdown(wait=False, cancel_futures=True)

    def get(self, cid: Cid) -> Arrived:
        """The block, verified. UnavailableError says what every source answered."""
        if cid.inline is not None:
            return Arrived(cid.inline, "the CID itself")
        failures: list[TransientError] = []
        if self.store is not None:
            try:
                return self.check(cid, self.store.fetch(cid), self.store.name)
            except BlockNotFoundError as error:
                if not self.sources:
                    raise UnavailableError(cid, [error]) from error
            except (CorruptBlockError, SourceError, StoreError) as error:
                failures.append(error)
        own = tuple(failures)
        arrived = self._from_sources(cid, failures, self.ranked_sources())
        if any(isinstance(failure, CorruptBlockError) for failure in own):
            self._heal(cid, arrived.block)
        return arrived

    def check(self, cid: Cid, block: bytes, source: str) -> Arrived:
        """`block`, if it is what `cid` names."""
        if len(block) > self.limits.block_bytes:
            raise CorruptBlockError(
                cid, source, f"{len(block)} bytes where {self.limits.block_bytes} are allowed"
            )
        if not cid.matches(block):
            raise CorruptBlockError(cid, source, f"its {len(block)} bytes have another hash")
        return Arrived(block, source)

    def submit(self, cid: Cid) -> "Future[Arrived]":
        """Start getting a block beside others."""
        return self._threads().submit(self.get, cid)

    def submit_beside(self, cid: Cid, source: BlockSource) -> "Future[Arrived] | None":
        """Start asking all but `source`, which is late; None if there is nobody else."""
        others = [other for other in self.ranked_sources() if other.name != source.name]
        return self._threads().submit(self._from_sources, cid, [], others) if others else None

    def ranked_sources(self) -> list[BlockSource]:
        """The sources, those that failed or were slow of late last."""
        recent = self._recently_blamed()
        return sorted(self.sources, key=lambda source: recent.get(source.name, 0.0))

    def asked_last(self) -> tuple[str, ...]:
        """Who failed or was slow of late, so that the others are asked first."""
        return tuple(sorted(self._recently_blamed()))

    def blame(self, source: BlockSource) -> None:
        with self._lock:
            self._blamed_at[source.name] = time.monotonic()

    def _recently_blamed(self) -> dict[str, float]:
        since = time.monotonic() - _PENALTY_S
        with self._lock:
            return {name: at for name, at in self._blamed_at.items() if at > since}

    def _from_sources(
        self, cid: Cid, failures: list[TransientError], sources: Sequence[BlockSource]
    ) -> Arrived:
        waiting = deque(sources)
        asked: dict[Future[bytes], _Asked] = {}
        if len(waiting) == 1:  # nobody to race: no thread is worth it
            return self._from_only(waiting[0], cid, failures)
        while waiting or asked:
            if waiting:
                source = waiting.popleft()
                asked[self._ask(source, cid)] = _Asked(source, time.monotonic())
            done, _ = wait(
                asked,
                timeout=self.hedge_s if waiting else None,
                return_when=FIRST_COMPLETED,
            )
            for answer in done:
                answered = asked.pop(answer)
                try:
                    arrived = self.check(cid, answer.result(), answered.source.name)
                except TransientError as error:
                    self._note(answered.source, error, failures)
                else:
                    self._blame_slow(answered, asked.values())
                    return arrived
        raise UnavailableError(cid, failures)

    def _blame_slow(self, winner: "_Asked", others: Iterable["_Asked"]) -> None:
        now = time.monotonic()
        patience_s = max(self.hedge_s, _SLOWER_BY * (now - winner.at))
        for other in others:
            if now - other.at >= patience_s:
                self.blame(other.source)

    def _from_only(self, source: BlockSource, cid: Cid, failures: list[TransientError]) -> Arrived:
        try:
            return self.check(cid, source.fetch(cid), source.name)
        except TransientError as error:
            self._note(source, error, failures)
            raise UnavailableError(cid, failures) from error

    def _note(
        self, source: BlockSource, error: TransientError, failures: list[TransientError]
    ) -> None:
        failures.append(error)
        if not isinstance(error, BlockNotFoundError):
            self.blame(source)

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_PARALLEL, thread_name_prefix="content")
            return self._pool

    def _ask(self, source: BlockSource, cid: Cid) -> "Future[bytes]":
        with self._lock:
            if self._asking is None:
                self._asking = ThreadPoolExecutor(
                    _PARALLEL * 2 * max(1, len(self.sources)), thread_name_prefix="source"
                )
            return self._asking.submit(source.fetch, cid)

    def _heal(self, cid: Cid, block: bytes) -> None:
        """Put a good block back where our own copy was bad."""
        if isinstance(self.store, HealingStore):
            with suppress(StoreError):
                self.store.discard(cid)
                with self.store.batch() as batch:
                    batch.put(cid, block)


class ParallelFeed:
    """Blocks fetched one by one, several at a time."""

    def __init__(self, fetcher: Fetcher, window: int = 2 * _PARALLEL) -> None:
        self._fetcher, self._window = fetcher, window
        self._coming: dict[Cid, Future[Arrived]] = {}

    def want(self, cids: Sequence[Cid]) -> None:
        for cid in cids[: self._window]:
            if len(self._coming) >= self._window:
                return
            if cid not in self._coming:
                self._coming[cid] = self._fetcher.submit(cid)

    def has_begun(self, cid: Cid) -> bool:
        return cid in self._coming

    def take(self, cid: Cid) -> Arrived:
        coming = self._coming.pop(cid, None)
        return self._fetcher.get(cid) if coming is None else coming.result()


class DirectFeed:
    """Blocks got when they are needed: for a store on this machine's disk."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    def want(self, cids: Sequence[Cid]) -> None:
        """Nothing to prepare."""

    def take(self, cid: Cid) -> Arrived:
        return self._fetcher.get(cid)


def first_streaming(sources: Iterable[BlockSource]) -> StreamingSource | None:
    return next((source for source in sources if isinstance(source, StreamingSource)), None)
