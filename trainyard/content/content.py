"""The face of the content plane: add, look, read, fetch, keep."""

import io
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from trainyard.content.adding import add_path, bytes_in
from trainyard.content.build import build_file
from trainyard.content.checking import Checkup, check_blocks
from trainyard.content.chunking import Chunker
from trainyard.content.cid import Cid
from trainyard.content.errors import (
    InvalidPathError,
    IsADirectoryContentError,
    LimitExceededError,
    StoreError,
    UnavailableError,
)
from trainyard.content.fetching import (
    DirectFeed,
    Feed,
    Fetcher,
    ParallelFeed,
    first_streaming,
)
from trainyard.content.limits import DEFAULT_LIMITS, MIB, Limits
from trainyard.content.names import ContentPath
from trainyard.content.nodes import Built
from trainyard.content.ports import BlockSource, ContentStore, StreamingSource, Usage
from trainyard.content.reading import Entry, EntryKind, Walk
from trainyard.content.saving import part_of, save_file, save_tree
from trainyard.content.stream_feed import StreamFeed
from trainyard.protocol.errors import TransientError

_FLUSH_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a transfer is. `total` is None while nobody knows it."""

    done: int
    total: int | None
    source: str
    # Sources that failed or were slow of late.
    asked_last: tuple[str, ...] = ()


Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class Measured:
    """A tree counted: what its files say they hold, and what its blocks take."""

    files: int
    logical_bytes: int
    blocks: int
    physical_bytes: int


class Content:
    """Files and directories by CID, in a store of ours and from sources that nobody trusts."""

    def __init__(
        self,
        store: ContentStore,
        sources: Sequence[BlockSource] = (),
        *,
        limits: Limits = DEFAULT_LIMITS,
        hedge_s: float = 2.0,
    ) -> None:
        self.store, self.limits = store, limits
        self._fetcher = Fetcher(store, sources, limits=limits, hedge_s=hedge_s)

    @property
    def fetcher(self) -> Fetcher:
        """Verified blocks one by one, from the store and the sources."""
        return self._fetcher

    def close(self) -> None:
        """End the threads and connections that reading took."""
        self._fetcher.close()
        for place in (self.store, *self._fetcher.sources):
            close: Callable[[], None] | None = getattr(place, "close", None)
            if close is not None:
                close()

    def add(
        self,
        source: BinaryIO | Path,
        *,
        chunker: Chunker | None = None,
        pin: bool = True,
        progress: Report | None = None,
    ) -> Built:
        """Store a stream, a file or a whole directory; on disk, and pinned, when this returns."""
        total = bytes_in(source) if progress and isinstance(source, Path) else None
        tally = _Tally(progress, total)
        with self.store.batch() as batch:
            if isinstance(source, Path):
                built = add_path(source, batch.put, chunker, tally.advance)
            else:
                built = build_file(source, batch.put, chunker, tally.advance)
            if pin:
                batch.pin(built.cid)
        return built

    def stat(self, path: ContentPath) -> Entry:
        return self._walk().stat(path)

    def ls(self, path: ContentPath) -> list[Entry]:
        """The entries of a directory, by name."""
        walk = self._walk()
        entry = walk.stat(path)
        return sorted(walk.ls(entry.cid, str(path)), key=lambda child: child.name)

    def links(self, path: ContentPath) -> dict[str, Cid]:
        """The names in a directory and where they lead, without a look at what is there."""
        walk = self._walk()
        return {link.name: link.cid for link in walk.links(walk.resolve(path), str(path))}

    def cat(
        self,
        path: ContentPath,
        offset: int = 0,
        length: int | None = None,
        *,
        progress: Report | None = None,
    ) -> Iterator[bytes | memoryview]:
        """The bytes of a file, verified, as they arrive."""
        entry = self._file(path)
        whole = offset == 0 and length is None
        size = max(0, entry.size - offset)
        tally = _Tally(progress, size if length is None else min(size, length), self._fetcher)
        with self._feed(entry.cid, whole=whole) as feed:
            for piece in Walk(feed, self.limits).read(entry.cid, offset, length):
                yield piece.data
                tally.advance(len(piece.data), piece.source)

    def read_into(self, path: ContentPath, offset: int, buffer: memoryview) -> int:
        """Fill `buffer` from `offset` on, and say how many bytes there were."""
        at = 0
        for data in self.cat(path, offset, len(buffer)):
            buffer[at : at + len(data)] = data
            at += len(data)
        return at

    def open(self, path: ContentPath) -> BinaryIO:
        """A file to read and seek in; each read is verified."""
        return io.BufferedReader(_ContentFile(self, path, self._file(path).size), MIB)

    def foresee(self, size: int, what: str) -> None:
        """Told before many files are fetched that belong together: refuses what is not allowed."""

    def get(self, path: ContentPath, target: Path, *, progress: Report | None = None) -> Entry:
        """Write a file or a tree to disk. What an earlier try left there is verified and kept."""
        walk = self._walk()
        entry = walk.stat(path)
        total = entry.size if entry.kind is EntryKind.FILE else None
        tally = _Tally(progress, total, self._fetcher)
        if entry.kind is EntryKind.FILE:
            with self._feed(entry.cid, whole=not _begun(target, entry.cid)) as feed:
                save_file(Walk(feed, self.limits), entry, target, tally.advance)
        elif entry.kind is EntryKind.DIRECTORY:
            with self._feed(entry.cid, whole=not target.exists()) as feed:
                save_tree(Walk(feed, self.limits), entry.cid, target, tally.advance)
        else:
            raise InvalidPathError(f"{path} is a symbolic link, which is not followed")
        return entry

    def verify(
        self, path: ContentPath, *, keep: bool | None = None, progress: Report | None = None
    ) -> Checkup:
        """Read every block under `path` again, and mend what a source has good.

        What is bad is told and does not end it: see `Checkup.faults`. With `keep`, which is the
        case for what is pinned, a missing block is bad too and is put back; else it is verified
        wherever it is. MalformedBlockError where good blocks do not make up a file.
        """
        root = self._walk().resolve(path)
        kept = root in self.store.pins() if keep is None else keep
        tally = _Tally(progress, None, self._fetcher)
        return check_blocks(self._fetcher, root, keep=kept, advance=tally.advance)

    def measure(self, path: ContentPath, *, most_bytes: int | None = None) -> Measured:
        """Count what stands under `path`: logical bytes of its files, physical of its blocks.

        LimitExceededError as soon as the blocks have more than `most_bytes`.
        """
        root = self.stat(path).cid
        files = logical = blocks = physical = 0
        with self._feed(root, whole=True) as feed:
            for _, block, _ in Walk(feed, self.limits).blocks(root):
                blocks += 1
                physical += len(block)
                _require_at_most(most_bytes, physical, root)
        for item in self._walk().tree(root):
            if item.entry.kind is EntryKind.FILE:
                files += 1
                logical += item.entry.size
        return Measured(files, logical, blocks, physical)

    def pin(
        self,
        path: ContentPath,
        *,
        most_bytes: int | None = None,
        progress: Report | None = None,
    ) -> Cid:
        """Fetch what is missing into our store, and keep all of it.

        LimitExceededError as soon as its blocks have more than `most_bytes`; nothing is kept then.
        """
        root = self.stat(path).cid
        if most_bytes is None:
            with suppress(UnavailableError, StoreError):
                self.store.pin(root)
                return root
        # A node would fetch by itself all that there is: what is bounded is counted here.
        self._fetch_and_pin(root, most_bytes, progress)
        return root

    def unpin(self, cid: Cid) -> None:
        self.store.unpin(cid)

    def gc(self) -> Usage:
        return self.store.collect()

    def _fetch_and_pin(self, root: Cid, most_bytes: int | None, progress: Report | None) -> None:
        """What came is flushed now and then, so an interrupted fetch goes on where it was.

        One batch from the first block to the pin, so that no collection comes between.
        """
        tally = _Tally(progress, None, self._fetcher)
        with (
            self.store.batch() as batch,
            self._feed(root, whole=not self._is_here(root)) as feed,
        ):
            size = taken = 0
            for cid, block, source in Walk(feed, self.limits).blocks(root):
                taken += len(block)
                _require_at_most(most_bytes, taken, root)
                batch.put(cid, block)
                tally.advance(len(block), source)
                size += len(block)
                if size >= _FLUSH_BYTES:
                    batch.flush()
                    size = 0
            batch.pin(root)

    def _file(self, path: ContentPath) -> Entry:
        entry = self.stat(path)
        if entry.kind is EntryKind.DIRECTORY:
            raise IsADirectoryContentError(f"{path} is a directory")
        if entry.kind is EntryKind.SYMLINK:
            raise InvalidPathError(f"{path} is a symbolic link, which is not followed")
        return entry

    def _is_here(self, root: Cid) -> bool:
        """Whether our store has it; one that is down has nothing, and sources are asked."""
        try:
            return self.store.has(root)
        except TransientError:
            return False

    def _walk(self) -> Walk:
        return Walk(ParallelFeed(self._fetcher), self.limits)

    @contextmanager
    def _feed(self, root: Cid, *, whole: bool) -> Iterator[Feed]:
        """The quickest way to the blocks under `root`: our disk, one stream, or single fetches."""
        streaming: StreamingSource | None
        if self._is_here(root):
            streaming = first_streaming([self.store])
            if streaming is None:
                yield DirectFeed(self._fetcher)
                return
        else:
            streaming = first_streaming(self._fetcher.ranked_sources())
        if whole and streaming is not None:
            with closing(StreamFeed(self._fetcher, streaming, root)) as feed:
                yield feed
        else:
            yield ParallelFeed(self._fetcher)


class _ContentFile(io.RawIOBase):
    """Random access to a file by CID."""

    def __init__(self, content: Content, path: ContentPath, size: int) -> None:
        self._content, self._path, self._size, self._at = content, path, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        count = self._content.read_into(self._path, self._at, memoryview(buffer).cast("B"))
        self._at += count
        return count

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence]
        if base + offset < 0:
            raise ValueError(f"cannot seek to {base + offset}")
        self._at = base + offset
        return self._at

    def tell(self) -> int:
        return self._at


class _Tally:
    """Counts bytes for whoever wants to know."""

    def __init__(
        self, report: Report | None, total: int | None, fetcher: Fetcher | None = None
    ) -> None:
        self._report, self._total, self._fetcher = report, total, fetcher
        self._done = 0

    def advance(self, count: int, source: str = "this machine") -> None:
        self._done += count
        if self._report is not None:
            last = self._fetcher.asked_last() if self._fetcher is not None else ()
            self._report(Progress(self._done, self._total, source, last))


def _require_at_most(most_bytes: int | None, taken: int, root: Cid) -> None:
    if most_bytes is not None and taken > most_bytes:
        # A file's own word is not enough: its tree may lead to more than it says.
        raise LimitExceededError(f"{root} has more than the {most_bytes:,} bytes that are allowed")


def _begun(target: Path, cid: Cid) -> bool:
    return target.exists() or part_of(target, cid).exists()
