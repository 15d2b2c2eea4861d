"""Writing records as TFRecord shards, straight into a content store."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from sys import byteorder
from typing import Any

import numpy.typing as npt

from trainyard.content.build import build_directory, build_file
from trainyard.content.chunking import Chunker
from trainyard.content.cid import Cid
from trainyard.content.content import Content, Report
from trainyard.content.nodes import Built, Put
from trainyard.datasets.arrays import counting
from trainyard.datasets.errors import DatasetError
from trainyard.datasets.index import (
    INDEX_NAME,
    MOST_SHARDS,
    OFFSETS_NAME,
    Index,
    Shard,
    permutation,
    shard_bounds,
    shard_name,
)
from trainyard.datasets.records import NumpyIterable, Recorded, recorded
from trainyard.datasets.schema import Record
from trainyard.datasets.streams import stream_of
from trainyard.datasets.tfrecord import frame


@dataclass(frozen=True, slots=True)
class Sharded:
    """A data set that was written: its directory, and the index in it."""

    built: Built
    index: Index

    @property
    def cid(self) -> Cid:
        return self.built.cid


def write_shards(
    content: Content,
    source: Mapping[str, npt.NDArray[Any]] | Iterable[Record] | NumpyIterable,
    *,
    shards: int,
    seed: int,
    chunker: Chunker | None = None,
    pin: bool = True,
    scratch: Path | None = None,
    progress: Report | None = None,
) -> Sharded:
    """Deal the records to `shards` TFRecord files, so that each is a fair sample of the whole.

    `source` is arrays by name with one record per first index, any iterable of mappings, or a
    `tf.data.Dataset`. The seed decides each record's shard and place; the same records and seed
    give the same CID. Memory holds 16 to 24 bytes a record, the largest record, and a few blocks;
    a source that is no arrays is spooled to a file in `scratch` first.
    """
    if not 1 <= shards <= MOST_SHARDS:
        raise DatasetError(f"a data set has 1 to {MOST_SHARDS} shards, not {shards}")
    if seed < 0:
        raise DatasetError(f"a seed is not negative, as {seed} is")
    with recorded(source, scratch) as records, content.store.batch() as batch:
        if shards > len(records):
            raise DatasetError(
                f"{shards} shards of {len(records)} records would leave some empty; "
                f"use at most {len(records)}"
            )
        index, files = _write(records, shards, seed, batch.put, chunker, counting(progress, None))
        built = build_directory(files, batch.put)
        if pin:
            batch.pin(built.cid)
    return Sharded(built, index)


def _write(
    records: Recorded,
    shards: int,
    seed: int,
    put: Put,
    chunker: Chunker | None,
    advance: Callable[[int], None] | None,
) -> tuple[Index, list[tuple[str, Built]]]:
    order = permutation(len(records), seed)
    bounds = shard_bounds(len(records), shards)
    described: list[Shard] = []
    files: list[tuple[str, Built]] = []
    offsets: list[tuple[str, Built]] = []
    for number in range(shards):
        ends = array("Q", [0])
        places = order[bounds[number] : bounds[number + 1]]
        data = build_file(stream_of(_framed(records, places, ends)), put, chunker, advance)
        shard = Shard(name=shard_name(number, shards), records=len(places), bytes=data.size)
        described.append(shard)
        files.append((shard.name, data))
        offsets.append((shard.offsets_name, build_file(BytesIO(little_endian(ends)), put)))
    index = Index(
        seed=seed,
        records=len(records),
        features=records.schema.features,
        shards=tuple(described),
    )
    files.append((INDEX_NAME, build_file(BytesIO(index.encode()), put)))
    files.append((OFFSETS_NAME, build_directory(offsets, put)))
    return index, files


def _framed(records: Recorded, places: npt.NDArray[Any], ends: "array[int]") -> Iterator[bytes]:
    for place in places:
        framed = frame(records.encoded(int(place)))
        ends.append(ends[-1] + len(framed))
        yield framed


def little_endian(numbers: "array[int]") -> bytes:
    """The bytes of a shard's offsets."""
    if byteorder != "little":
        numbers.byteswap()
    return numbers.tobytes()
