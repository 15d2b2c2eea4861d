"""Reading sharded data sets by CID: any record without a scan, or all of them in order."""

from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterator
from operator import index as as_index
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt

from trainyard.content.content import Content
from trainyard.content.errors import NotFoundError
from trainyard.content.names import ContentPath
from trainyard.content.reading import Entry, EntryKind
from trainyard.datasets.errors import CorruptRecordError, DatasetError
from trainyard.datasets.index import (
    INDEX_NAME,
    LARGEST_INDEX_BYTES,
    OFFSETS_NAME,
    Index,
    Shard,
    permutation,
)
from trainyard.datasets.schema import Schema
from trainyard.datasets.tfrecord import FRAME_BYTES, LARGEST_RECORD_BYTES, read_records, unframe

_OFFSET = np.dtype("<u8")
# Offsets are read and kept by pages: so many records each, and 32 MiB of them together.
_PAGE_RECORDS = 4096
_MOST_PAGES = 1024
# Their origins take 24 bytes each while they are computed.
MOST_ORIGINS = 1 << 25


def open_shards(content: Content, path: ContentPath) -> "ShardedDataset":
    """The data set at `path`; DatasetError where there is none, or where its parts disagree."""
    where = path.child(INDEX_NAME)
    try:
        entry = content.stat(where)
    except NotFoundError as error:
        raise DatasetError(
            f"{path} is no sharded data set: it has no {INDEX_NAME}. "
            "Make one with 'trainyard content shard'."
        ) from error
    if entry.size > LARGEST_INDEX_BYTES:
        raise DatasetError(
            f"{where} has {entry.size} bytes; at most {LARGEST_INDEX_BYTES} are read"
        )
    return ShardedDataset(content, path, Index.decode(b"".join(content.cat(where)), str(where)))


class ShardedDataset:
    """Records by number, in the order of the shards. Safe to use from many threads.

    Whoever made the data set may say what they like, so nothing is read or allocated for a size
    that only its index states: of the offsets a page at a time is read, and the latest are kept.
    """

    def __init__(self, content: Content, path: ContentPath, index: Index) -> None:
        self.path, self.index = path, index
        self.schema: Schema = index.schema_of_records
        self._content = content
        self._files = _files(content, path, index)
        self._starts = [0]
        for shard in index.shards:
            self._starts.append(self._starts[-1] + shard.records)
        self._pages: OrderedDict[tuple[int, int], npt.NDArray[np.uint64]] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return self.index.records

    def __getitem__(self, number: int) -> dict[str, npt.NDArray[Any]]:
        """Record `number`, verified and checked against the schema."""
        wanted = as_index(number)
        if wanted < 0:
            wanted += len(self)
        if not 0 <= wanted < len(self):
            raise IndexError(f"record {number} of {len(self)}")
        at = bisect_right(self._starts, wanted) - 1
        shard, place = self.index.shards[at], wanted - self._starts[at]
        start, end = self._extent(at, place)
        try:
            return self.schema.decode(unframe(self._read(self._files[at], start, end - start)))
        except CorruptRecordError as error:
            raise CorruptRecordError(
                f"{self.path}/{shard.name}, record {place} at byte {start}: {error}"
            ) from error

    def __iter__(self) -> Iterator[dict[str, npt.NDArray[Any]]]:
        for number in range(len(self.index.shards)):
            yield from self.shard(number)

    def shard(self, number: int) -> Iterator[dict[str, npt.NDArray[Any]]]:
        """The records of one shard, streamed."""
        shard = self.index.shards[number]
        place = 0
        with self._content.open(ContentPath(self._files[number].cid)) as file:
            try:
                for message in read_records(file):
                    yield self.schema.decode(message)
                    place += 1
            except CorruptRecordError as error:
                raise CorruptRecordError(
                    f"{self.path}/{shard.name}, record {place}: {error}"
                ) from error
        if place != shard.records:
            raise CorruptRecordError(
                f"{self.path}/{shard.name} has {place} records where its index says {shard.records}"
            )

    def origins(self, *, most: int = MOST_ORIGINS) -> npt.NDArray[np.int64]:
        """For each record the place that it had in what the data set was made from."""
        if len(self) > most:
            raise DatasetError(
                f"{self.path} says it has {len(self)} records; origins are computed for {most} at "
                "most, give `most` for more"
            )
        if self.index.seed is None:
            return np.arange(len(self), dtype=np.int64)
        return permutation(len(self), self.index.seed)

    def _extent(self, number: int, place: int) -> tuple[int, int]:
        """Where a record of a shard begins and ends, if a record can be there."""
        shard = self.index.shards[number]
        page, at = divmod(place, _PAGE_RECORDS)
        offsets = self._page(number, page)
        start, end = int(offsets[at]), int(offsets[at + 1])
        if (
            (place == 0 and start != 0)
            or (place == shard.records - 1 and end != shard.bytes)
            or not FRAME_BYTES <= end - start <= LARGEST_RECORD_BYTES + FRAME_BYTES
            or end > shard.bytes
        ):
            raise CorruptRecordError(
                f"{self._offsets_path(shard)} gives record {place} a place where no record can be"
            )
        return start, end

    def _page(self, number: int, page: int) -> npt.NDArray[np.uint64]:
        """Where each record of a page of a shard begins, and where the last one ends."""
        with self._lock:
            known = self._pages.get((number, page))
            if known is not None:
                self._pages.move_to_end((number, page))
                return known
        offsets = self._load_page(self.index.shards[number], page)
        with self._lock:
            self._pages[number, page] = offsets
            while len(self._pages) > _MOST_PAGES:
                self._pages.popitem(last=False)
        return offsets

    def _load_page(self, shard: Shard, page: int) -> npt.NDArray[np.uint64]:
        entry = _file(
            self._content, self._offsets_path(shard), (shard.records + 1) * _OFFSET.itemsize
        )
        first = page * _PAGE_RECORDS
        count = min(_PAGE_RECORDS, shard.records - first) + 1
        data = self._read(entry, first * _OFFSET.itemsize, count * _OFFSET.itemsize)
        return np.frombuffer(data, _OFFSET).astype(np.uint64)

    def _offsets_path(self, shard: Shard) -> ContentPath:
        return self.path.child(OFFSETS_NAME).child(shard.offsets_name)

    def _read(self, entry: Entry, start: int, count: int) -> bytes:
        buffer = bytearray(count)
        got = self._content.read_into(ContentPath(entry.cid), start, memoryview(buffer))
        return bytes(buffer[:got])


def _files(content: Content, path: ContentPath, index: Index) -> list[Entry]:
    """The shards' files, each looked up once: later reads begin at its own CID."""
    return [_file(content, path.child(shard.name), shard.bytes) for shard in index.shards]


def _file(content: Content, where: ContentPath, size: int) -> Entry:
    try:
        entry = content.stat(where)
    except NotFoundError as error:
        raise DatasetError(f"{where} is missing, though the data set's index names it") from error
    if entry.kind is not EntryKind.FILE:
        raise DatasetError(f"{where} is a {entry.kind}, though the index says it is a file")
    if entry.size != size:
        raise DatasetError(f"{where} has {entry.size} bytes where the index says {size}")
    return entry
