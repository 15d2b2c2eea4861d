"""Getting blocks from whoever has them, and believing none of them.

Our own store is asked first, then the sources in the order of how well they did. Where one is slow
the next is asked beside it, and the first answer that matches the CID wins.
"""

import time
from collections import OrderedDict, deque
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
from trainyard.content.limits import DEFAULT_LIMITS, KIB, MIB, Limits
from trainyard.content.ports import BlockSource, ContentStore, HealingStore, StreamingSource
from trainyard.content.readahead import ReadAhead
from trainyard.protocol.errors import PermanentError, TransientError

_PARALLEL = 8
# Blocks that a stream may send ahead of the one that is wanted, or in vain.
_AHEAD_BYTES = 32 * MIB
# What a block counts beside its bytes: blocks of no bytes at all would else cost nothing.
_BLOCK_BYTES = KIB
# Blocks of a stream that are kept after use, since a block that stands twice often does so nearby.
_RECENT_BYTES = 8 * MIB
_PENALTY_S = 30.0


@dataclass(frozen=True, slots=True)
class Arrived:
    """A verified block, and who sent it."""

    block: bytes
    source: str


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
        self._hedge_s = hedge_s
        self._failed_at: dict[str, float] = {}
        self._lock = Lock()
        self._pool: ThreadPoolExecutor | None = None
        self._asking: ThreadPoolExecutor | None = None

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
        arrived = self._from_sources(cid, failures)
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
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_PARALLEL, thread_name_prefix="content")
        return self._pool.submit(self.get, cid)

    def ranked_sources(self) -> list[BlockSource]:
        """The sources, those that failed of late last."""
        now = time.monotonic()
        with self._lock:
            recent = {name: at for name, at in self._failed_at.items() if now - at < _PENALTY_S}
        return sorted(self.sources, key=lambda source: recent.get(source.name, 0.0))

    def blame(self, source: BlockSource) -> None:
        with self._lock:
            self._failed_at[source.name] = time.monotonic()

    def _from_sources(self, cid: Cid, failures: list[TransientError]) -> Arrived:
        waiting = deque(self.ranked_sources())
        asked: dict[Future[bytes], BlockSource] = {}
        if len(waiting) == 1:  # nobody to race: no thread is worth it
            return self._from_only(waiting[0], cid, failures)
        while waiting or asked:
            if waiting:
                source = waiting.popleft()
                asked[self._ask(source, cid)] = source
            done, _ = wait(
                asked,
                timeout=self._hedge_s if waiting else None,
                return_when=FIRST_COMPLETED,
            )
            for answer in done:
                source = asked.pop(answer)
                try:
                    return self.check(cid, answer.result(), source.name)
                except TransientError as error:
                    self._note(source, error, failures)
        raise UnavailableError(cid, failures)

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


class StreamFeed:
    """Blocks from one stream of a whole DAG; what it lacks or sends wrong is fetched singly."""

    def __init__(self, fetcher: Fetcher, source: StreamingSource, root: Cid) -> None:
        self._fetcher, self._source = fetcher, source
        self._blocks: ReadAhead | None = ReadAhead(source.stream(root))
        self._ahead: dict[Cid, Arrived] = {}
        self._ahead_bytes = self._vain_bytes = 0
        self._seen: set[Cid] = set()
        self._recent: OrderedDict[Cid, Arrived] = OrderedDict()
        self._recent_bytes = 0
        self._rest = ParallelFeed(fetcher)

    def want(self, cids: Sequence[Cid]) -> None:
        if self._blocks is None:
            self._rest.want(cids)

    def take(self, cid: Cid) -> Arrived:
        if cid.inline is not None:
            return self._fetcher.get(cid)
        arrived = self._recent.get(cid) or self._from_stream(cid)
        if arrived is None:
            arrived = self._rest.take(cid)
        self._keep(cid, arrived)
        return arrived

    def _from_stream(self, cid: Cid) -> Arrived | None:
        arrived = self._ahead.pop(cid, None)
        if arrived is not None:
            self._ahead_bytes -= len(arrived.block) + _BLOCK_BYTES
            return arrived
        # A block that stands in the DAG twice is sent once.
        while self._blocks is not None and cid not in self._seen:
            received = self._next()
            if received is None:
                return None
            name, arrived = received
            known = name in self._seen
            self._seen.add(name)
            if name == cid:
                self._vain_bytes = 0
                return arrived
            if known:
                self._vain_bytes += len(arrived.block) + _BLOCK_BYTES
            else:
                self._ahead[name] = arrived
                self._ahead_bytes += len(arrived.block) + _BLOCK_BYTES
            if self._ahead_bytes + self._vain_bytes > _AHEAD_BYTES:
                self._give_up()
        return None

    def _keep(self, cid: Cid, arrived: Arrived) -> None:
        if cid not in self._recent:
            self._recent_bytes += len(arrived.block) + _BLOCK_BYTES
            self._recent[cid] = arrived
        self._recent.move_to_end(cid)
        while self._recent_bytes > _RECENT_BYTES:
            _, oldest = self._recent.popitem(last=False)
            self._recent_bytes -= len(oldest.block) + _BLOCK_BYTES

    def _next(self) -> tuple[Cid, Arrived] | None:
        assert self._blocks is not None
        try:
            cid, block = next(self._blocks)
            return cid, self._fetcher.check(cid, block, self._source.name)
        except StopIteration:
            self._blocks = None
        except (TransientError, PermanentError):
            # The single fetch that follows meets the same fault, or another source's answer.
            self._give_up()
        return None

    def _give_up(self) -> None:
        self._fetcher.blame(self._source)
        self.close()

    def close(self) -> None:
        if self._blocks is not None:
            self._blocks.close()
            self._blocks = None


def first_streaming(sources: Iterable[BlockSource]) -> StreamingSource | None:
    return next((source for source in sources if isinstance(source, StreamingSource)), None)
