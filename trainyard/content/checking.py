"""Going over all blocks of a tree in our own store, and mending what can be mended."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from trainyard.content.cid import Cid, Codec
from trainyard.content.dag import decode_node
from trainyard.content.errors import (
    BlockNotFoundError,
    LimitExceededError,
    MalformedBlockError,
    SourceError,
    UnavailableError,
)
from trainyard.content.fetching import Fetcher
from trainyard.content.ports import ContentStore, HealingStore
from trainyard.content.unixfs import Kind, decode_unixfs


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

    @property
    def whole(self) -> bool:
        """Whether all of it is good, be it by now."""
        return all(fault.healed for fault in self.faults)


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
    fetcher: Fetcher, root: Cid, *, keep: bool, advance: Callable[[int, str], None]
) -> Checkup:
    """Read every block under `root` from our own store again, each once; see `Content.verify`.

    With `keep` a missing one is a fault and is put back; without, the tree is not ours to keep and
    is verified wherever it is. What lies below a node that nobody has is not reached.
    """
    if fetcher.store is None:
        raise ValueError("there is no store to check")
    checker = _Checker(fetcher, fetcher.store, keep)
    nodes = 0
    sizes = _Sizes()
    sizes.state(root, None)
    waiting = [root]
    while waiting:
        cid = waiting.pop()
        block = checker.block(cid)
        if block is None:
            continue
        checker.blocks += 1
        checker.bytes += len(block)
        advance(len(block), fetcher.store.name)
        if cid.codec is not Codec.DAG_PB:
            sizes.find(cid, len(block))
            continue
        nodes += 1
        if nodes > fetcher.limits.nodes:
            raise LimitExceededError(f"{root} has over {fetcher.limits.nodes} nodes")
        size, parts = _parts(cid, block)
        sizes.find(cid, size)
        waiting += [part for part, stated in reversed(parts) if sizes.state(part, stated)]
    return Checkup(checker.blocks, checker.bytes, checker.elsewhere, tuple(checker.faults))


class _Sizes:
    """How many bytes of a file each block stands for, as parents say and as it turns out."""

    def __init__(self) -> None:
        self._of: dict[Cid, int | None] = {}

    def state(self, cid: Cid, size: int | None) -> bool:
        """Note what a parent says; whether it is the first that names the block."""
        is_new = cid not in self._of
        known = self._of.setdefault(cid, size)
        if size is not None and known is None:
            self._of[cid] = size
        elif size is not None and known != size:
            raise MalformedBlockError(f"{cid} has {known} bytes, and {size} as a parent says")
        return is_new

    def find(self, cid: Cid, size: int | None) -> None:
        stated = self._of[cid]
        if stated is not None and stated != size:
            raise MalformedBlockError(f"{cid} has {size} bytes where its parent says {stated}")
        self._of[cid] = size


def _parts(cid: Cid, block: bytes) -> tuple[int | None, list[tuple[Cid, int | None]]]:
    """The bytes of a file that a node stands for, and its links, each with those that it adds."""
    node = decode_node(block)
    try:
        about = decode_unixfs(node.data)
    except MalformedBlockError:  # nobody who reads files gets here
        return None, [(link.cid, None) for link in node.links]
    if about.kind not in (Kind.FILE, Kind.RAW):
        return None, [(link.cid, None) for link in node.links]
    size = about.bytes_of_file(cid, len(node.links))
    # Into what adds nothing no reader looks.
    stated = [count or None for count in about.block_sizes]
    return size, [(link.cid, part) for link, part in zip(node.links, stated, strict=True)]


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
