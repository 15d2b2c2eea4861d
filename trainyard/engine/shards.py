"""TFRecord shards on disk, as `write_shards` lays them out: any record through their index."""

import os
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trainyard.datasets.errors import CorruptRecordError, DatasetError
from trainyard.datasets.index import INDEX_NAME, LARGEST_INDEX_BYTES, OFFSETS_NAME, Index, Shard
from trainyard.datasets.tfrecord import FRAME_BYTES, LARGEST_RECORD_BYTES, unframe
from trainyard.engine.columns import Array, missing_feature, reading, wrong_count
from trainyard.engine.errors import CorruptDataError, DataError, DataMismatchError
from trainyard.engine.forms import Decoder, RecordError
from trainyard.engine.order import Numbers
from trainyard.protocol.manifest import Source

_PLACE = struct.Struct("<QQ")
OFFSET_BYTES = 8
# How many records are decoded at a time, at most and by their bytes.
_MOST_AT_ONCE, _BYTES_AT_ONCE = 4_096, 4 << 20


def read_index(source: Source, data: bytes, where: str) -> Index:
    """The index of a set of shards, if the set is the one that the manifest says."""
    try:
        index = Index.decode(data, where)
    except DatasetError as error:
        raise DataError(str(error)) from error
    if index.records != source.records:
        raise wrong_count(where, index.records, source.records)
    found = {feature.name: f"{feature.dtype}{list(feature.shape)}" for feature in index.features}
    for name in source.used:
        stated = str(source.features[name].tensor)
        if name not in found:
            raise missing_feature(name, where, list(found))
        if found[name] != stated:
            raise DataMismatchError(
                f"{where}: feature {name!r} is {found[name]} where the manifest says {stated}"
            )
    return index


class ShardRows:
    """Records by number, each checked as it is read. Memory holds the index and what is asked."""

    def __init__(self, source: Source, folder: Path) -> None:
        path = folder / INDEX_NAME
        with reading(path) as file:
            data = os.pread(file, LARGEST_INDEX_BYTES + 1, 0)
        if len(data) > LARGEST_INDEX_BYTES:
            raise DataError(f"{path} has over {LARGEST_INDEX_BYTES} bytes, which are not read")
        index = read_index(source, data, str(path))
        for shard in index.shards:
            _check_size(folder / shard.name, shard.bytes)
            _check_size(_offsets(folder, shard), (shard.records + 1) * OFFSET_BYTES)
        self._source, self._folder, self._index = source, folder, index
        self._decoder = Decoder(index.schema_of_records, source.used)
        self._at_once = max(1, min(_MOST_AT_ONCE, _BYTES_AT_ONCE * index.records // _bytes(index)))
        self._ends = np.cumsum([shard.records for shard in index.shards])

    def load(self) -> dict[str, Array]:
        arrays = self._empty(self._source.records)
        self._read(np.arange(self._source.records, dtype=np.int64), arrays)
        return arrays

    def rows(self, numbers: Numbers) -> dict[str, Array]:
        arrays = self._empty(len(numbers))
        self._read(numbers, arrays)
        return arrays

    def _empty(self, count: int) -> dict[str, Array]:
        tensors = {name: self._source.features[name].tensor for name in self._source.used}
        return {
            name: np.empty((count, *tensor.shape), tensor.dtype) for name, tensor in tensors.items()
        }

    def _read(self, numbers: Numbers, into: dict[str, Array]) -> None:
        """Shard by shard, so that few files are open at a time, however many there are."""
        shards = np.searchsorted(self._ends, numbers, side="right")
        for at in np.unique(shards).tolist():
            shard = self._index.shards[at]
            wanted = np.flatnonzero(shards == at)
            places = (numbers[wanted] - (self._ends[at] - shard.records)).tolist()
            with (
                reading(self._folder / shard.name) as file,
                reading(_offsets(self._folder, shard)) as offsets,
            ):
                for start in range(0, len(places), self._at_once):
                    part = slice(start, start + self._at_once)
                    self._read_from(shard, file, offsets, places[part], wanted[part], into)

    def _read_from(
        self,
        shard: Shard,
        file: int,
        offsets: int,
        places: list[int],
        rows: npt.NDArray[np.intp],
        into: dict[str, Array],
    ) -> None:
        """The records at `places` of one shard, into the given rows."""
        spans = [self._span(shard, offsets, place) for place in places]
        for start, size in spans:
            # All at once, for a disk is much quicker when it is asked for many.
            os.posix_fadvise(file, start, size, os.POSIX_FADV_WILLNEED)
        messages: list[bytes] = []
        decoded = self._empty(len(places))
        try:
            for start, size in spans:
                messages.append(unframe(os.pread(file, size, start)))
            self._decoder.decode(messages, decoded)
        except CorruptRecordError as error:
            at = error.place if isinstance(error, RecordError) else len(messages)
            raise CorruptDataError(
                f"{self._folder / shard.name}, record {places[at]} at byte {spans[at][0]}: {error}"
            ) from error
        for name, values in into.items():
            values[rows] = decoded[name]

    def _span(self, shard: Shard, offsets: int, place: int) -> tuple[int, int]:
        packed = os.pread(offsets, _PLACE.size, place * OFFSET_BYTES)
        start, end = _PLACE.unpack(packed) if len(packed) == _PLACE.size else (0, 0)
        if not FRAME_BYTES <= end - start <= LARGEST_RECORD_BYTES or end > shard.bytes:
            raise CorruptDataError(
                f"{_offsets(self._folder, shard)} says that record {place} of {shard.name} is "
                f"at bytes {start} to {end}, where none can be"
            )
        return start, end - start


def _bytes(index: Index) -> int:
    return sum(shard.bytes for shard in index.shards)


def _offsets(folder: Path, shard: Shard) -> Path:
    return folder / OFFSETS_NAME / shard.offsets_name


def _check_size(path: Path, size: int) -> None:
    try:
        found = path.stat().st_size
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from error
    if found != size:
        what = "is empty" if not found else "is cut short" if found < size else "is too long"
        raise CorruptDataError(f"{path} {what}: it has {found} bytes where {size} belong to it")
