"""Reading sharded data sets by CID: any record without a scan, or all of them in order."""

from bisect import bisect_right
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

    Of a shard that was asked for a record, the offsets stay in memory: eight bytes a record.
    """

    def __init__(self, content: Content, path: ContentPath, index: Index) -> None:
        self.path, self.index = path, index
        self.schema: Schema = index.schema_of_records
        self._content = content
        self._files = _files(content, path, index)
        self._starts = [0]
        for shard in index.shards:
            self._starts.append(self._starts[-1] + shard.records)
        self._offsets: dict[int, npt.NDArray[np.uint64]] = {}
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
        offsets = self._offsets_of(at)
        start, end = int(offsets[place]), int(offsets[place + 1])
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

    def origins(self) -> npt.NDArray[np.int64]:
        """For each record the place that it had in what the data set was made from."""
        return permutation(len(self), self.index.seed)

    def _offsets_of(self, number: int) -> npt.NDArray[np.uint64]:
        with self._lock:
            known = self._offsets.get(number)
        if known is not None:
            return known
        shard = self.index.shards[number]
        offsets = self._load_offsets(shard)
        with self._lock:
            self._offsets[number] = offsets
        return offsets

    def _load_offsets(self, shard: Shard) -> npt.NDArray[np.uint64]:
        where = self.path.child(OFFSETS_NAME).child(shard.offsets_name)
        entry = _file(self._content, where, (shard.records + 1) * _OFFSET.itemsize)
        offsets = np.frombuffer(self._read(entry, 0, entry.size), _OFFSET).astype(np.uint64)
        sizes = np.diff(offsets.astype(np.int64))
        if (
            offsets[0] != 0
            or offsets[-1] != shard.bytes
            or sizes.min() < FRAME_BYTES
            or sizes.max() > LARGEST_RECORD_BYTES + FRAME_BYTES
        ):
            raise CorruptRecordError(f"{where} gives places where no record can be")
        return offsets

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
