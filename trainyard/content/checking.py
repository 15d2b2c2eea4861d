"""Going over all blocks of a tree in our own store, and mending what can be mended."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import decode_node
from trainyard.content.errors import (
    BlockNotFoundError,
    LimitExceededError,
    SourceError,
    UnavailableError,
)
from trainyard.content.fetching import Fetcher
from trainyard.content.ports import ContentStore, HealingStore


class Ailment(StrEnum):
    DAMAGED = "damaged"
    MISSING = "missing"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Fault:
    """A block that our store should have and has not as it should be."""

    cid: Cid
    ailment: Ailment
    # Who has a good one, or None; and whether ours is good again.
    source: str | None
    healed: bool
    why: str


@dataclass(frozen=True, slots=True)
class Checkup:
    blocks: int
    bytes: int
    # Blocks that were only looked at somewhere else: the tree is not kept here.
    elsewhere: int
    faults: tuple[Fault, ...]


class _Checker:
    def __init__(self, fetcher: Fetcher, store: ContentStore, keep: bool) -> None:
        self._fetcher, self._store, self._keep = fetcher, store, keep
        self.blocks = self.bytes = self.elsewhere = 0
        self.faults: list[Fault] = []

    def block(self, cid: Cid) -> bytes | None:
        """The good block, from wherever; None if nobody has it."""
        if cid.inline is not None:
            return cid.inline
        try:
            own = self._store.fetch(cid)
        except BlockNotFoundError:
            return self._mend(cid, Ailment.MISSING)
        except SourceError:
            return self._mend(cid, Ailment.UNREADABLE)
        if not cid.matches(own):
            return self._mend(cid, Ailment.DAMAGED)
        return own

    def _mend(self, cid: Cid, ailment: Ailment) -> bytes | None:
        try:
            arrived = self._fetcher.get(cid)
        except UnavailableError as error:
            self.faults.append(Fault(cid, ailment, None, False, str(error)))
            return None
        if ailment is Ailment.MISSING and not self._keep:
            self.elsewhere += 1
            return arrived.block
        if ailment is Ailment.MISSING:
            with self._store.batch() as batch:
                batch.put(cid, arrived.block)
        self.faults.append(Fault(cid, ailment, arrived.source, self._is_good(cid), ""))
        return arrived.block

    def _is_good(self, cid: Cid) -> bool:
        try:
            return cid.matches(self._store.fetch(cid))
        except (BlockNotFoundError, SourceError):
            return False


def check_blocks(
    fetcher: Fetcher,
    root: Cid,
    *,
    keep: bool,
    advance: Callable[[int], None] = lambda count: None,
) -> Checkup:
    """Read every block under `root` from our own store again, each once.

    A bad one is fetched from the sources and replaced. With `keep` a missing one is a fault and is
    put back; without, the tree is not ours to keep and is verified wherever it is. What lies below
    a node that nobody has is not reached.
    """
    if fetcher.store is None:
        raise ValueError("there is no store to check")
    checker = _Checker(fetcher, fetcher.store, keep)
    nodes = 0
    seen = {root}
    waiting = [root]
    while waiting:
        cid = waiting.pop()
        block = checker.block(cid)
        if block is None:
            continue
        checker.blocks += 1
        checker.bytes += len(block)
        advance(len(block))
        if cid.codec is Codec.DAG_PB:
            nodes += 1
            if nodes > fetcher.limits.nodes:
                raise LimitExceededError(f"{root} has over {fetcher.limits.nodes} nodes")
            children = [link.cid for link in decode_node(block).links]
            waiting += _unseen(reversed(children), seen)
    return Checkup(checker.blocks, checker.bytes, checker.elsewhere, tuple(checker.faults))


def discard_damaged(store: ContentStore, checkup: Checkup) -> int:
    """Put lost blocks aside, so that adding the original again stores good ones."""
    if not isinstance(store, HealingStore):
        return 0
    damaged = [
        fault.cid
        for fault in checkup.faults
        if fault.ailment is not Ailment.MISSING and not fault.healed
    ]
    for cid in damaged:
        store.discard(cid)
    return len(damaged)


def _unseen(cids: Iterator[Cid], seen: set[Cid]) -> Iterator[Cid]:
    for cid in cids:
        if cid not in seen:
            seen.add(cid)
            yield cid
