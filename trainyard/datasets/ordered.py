"""Shards in the order in which their records came, each written where its records are.

Whoever has a part of the records writes pieces of it into content, and somebody who sees none of
the records joins the pieces to a data set.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

from trainyard.content.build import build_directory, build_file
from trainyard.content.chunking import Chunker
from trainyard.content.content import Content
from trainyard.content.nodes import Built, Put
from trainyard.datasets.errors import DatasetError
from trainyard.datasets.index import (
    INDEX_NAME,
    MOST_SHARDS,
    OFFSETS_NAME,
    Index,
    Shard,
    shard_name,
)
from trainyard.datasets.schema import Schema
from trainyard.datasets.sharding import Sharded, little_endian
from trainyard.datasets.streams import stream_of
from trainyard.datasets.tfrecord import frame


@dataclass(frozen=True, slots=True)
class Piece:
    """One shard that is in content already, and has no name yet. Small: it can be sent around."""

    records: int
    data: Built
    offsets: Built


def write_piece(
    first: bytes,
    records: Iterator[bytes],
    put: Put,
    *,
    most_bytes: int,
    chunker: Chunker | None = None,
) -> Piece:
    """Write `first` and the encoded records after it until there are `most_bytes` of them.

    Memory holds one record, eight bytes for each that was written, and a few blocks.
    """
    ends = array("Q", [0])

    def framed() -> Iterator[bytes]:
        record: bytes | None = first
        while record is not None:
            one = frame(record)
            ends.append(ends[-1] + len(one))
            yield one
            # Not asked for where there is no room, for it would be lost.
            record = next(records, None) if ends[-1] < most_bytes else None

    data = build_file(stream_of(framed()), put, chunker)
    return Piece(len(ends) - 1, data, build_file(BytesIO(little_endian(ends)), put))


def join_pieces(
    content: Content, schema: Schema, pieces: Sequence[Piece], *, pin: bool = True
) -> Sharded:
    """The data set of these pieces, in their order; nothing of their records is read."""
    if not pieces:
        raise DatasetError("there are no records; give at least one")
    count = len(pieces)
    if count > MOST_SHARDS:
        raise DatasetError(f"a data set has 1 to {MOST_SHARDS} shards, not {count}")
    shards = tuple(
        Shard(name=shard_name(number, count), records=piece.records, bytes=piece.data.size)
        for number, piece in enumerate(pieces)
    )
    index = Index(
        seed=None,
        records=sum(piece.records for piece in pieces),
        features=schema.features,
        shards=shards,
    )
    named = list(zip(shards, pieces, strict=True))
    with content.store.batch() as batch:
        offsets = build_directory(
            ((shard.offsets_name, piece.offsets) for shard, piece in named), batch.put
        )
        built = build_directory(
            [
                *((shard.name, piece.data) for shard, piece in named),
                (INDEX_NAME, build_file(BytesIO(index.encode()), batch.put)),
                (OFFSETS_NAME, offsets),
            ],
            batch.put,
        )
        if pin:
            batch.pin(built.cid)
    return Sharded(built, index)
