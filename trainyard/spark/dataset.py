"""`TFDataset`: records of Spark's as a data set in content, written by the executors themselves."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from trainyard.content.cid import Cid, Codec
from trainyard.content.names import ContentPath
from trainyard.datasets import Piece, Sharded, join_pieces, open_shards
from trainyard.datasets.index import MOST_SHARDS, Index
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.market import Market
from trainyard.spark.context import market_or_found
from trainyard.spark.failing import explained
from trainyard.spark.fields import Fields
from trainyard.spark.frames import columns_of
from trainyard.spark.writing import PartitionWriter

if TYPE_CHECKING:
    from pyspark import RDD
    from pyspark.sql import DataFrame

SHARD_BYTES = 64 << 20


@dataclass(frozen=True, eq=False)
class TFDataset:
    """Records in content, by their CID; and what a model reads of them.

    The records stand in the order of the RDD: partition after partition.
    """

    cid: str
    index: Index
    # In the order in which they were given.
    names: tuple[str, ...]
    # What all workers together take in one step.
    batch_size: int
    # The name of what a model is trained towards; None where there is nothing but inputs.
    target: str | None

    @classmethod
    def from_rdd(
        cls,
        rdd: "RDD[Any]",
        names: Sequence[str],
        shapes: Sequence[Sequence[int]],
        types: Sequence[Any],
        batch_size: int = 32,
        *,
        target: str | None = None,
        market: Market | None = None,
        shard_bytes: int = SHARD_BYTES,
    ) -> "TFDataset":
        """Put the records of an RDD into content.

        Each record is a list of arrays or numbers in the order of `names`, or a dict of them by
        name. `shapes` are those of one record, without the batch's length; `types` are of
        TensorFlow, of NumPy, or names. The last name is the target unless `target` says another.

        The executors write to the content store of the market; the driver sees no record.
        """
        fields = Fields.of(names, shapes, types)
        chosen = _target_of(fields, batch_size, target)
        with market_or_found(market) as one:
            written = _write(one, rdd, fields, shard_bytes)
        return cls(str(written.cid), written.index, fields.names, batch_size, chosen)

    @classmethod
    def from_dataframe(
        cls,
        df: "DataFrame",
        names: Sequence[str] | None = None,
        shapes: Sequence[Sequence[int]] | None = None,
        types: Sequence[Any] | None = None,
        batch_size: int = 32,
        *,
        target: str | None = None,
        market: Market | None = None,
        shard_bytes: int = SHARD_BYTES,
    ) -> "TFDataset":
        """Put columns of a DataFrame into content: those of `names`, else all of them.

        Types are those of the columns unless `types` says others; floats of 64 bits become floats
        of 32. Columns of numbers need no shape; columns of arrays, vectors or bytes do, and are
        given it in row-major order.
        """
        chosen = columns_of(df.schema, names, shapes, types)
        fields = Fields.of(chosen.names, chosen.shapes, chosen.types, is_flat=True)
        aim = _target_of(fields, batch_size, target)
        with market_or_found(market) as one:
            written = _write(one, df.select(*fields.names).rdd, fields, shard_bytes)
        return cls(str(written.cid), written.index, fields.names, batch_size, aim)

    @classmethod
    def from_cid(
        cls,
        cid: str,
        names: Sequence[str],
        batch_size: int = 32,
        *,
        target: str | None = None,
        market: Market | None = None,
    ) -> "TFDataset":
        """A sharded data set that is in content already; `names` are those that are used of it."""
        with market_or_found(market) as one:
            index = open_shards(one.content, ContentPath.parse(cid)).index
        known = {feature.name: feature for feature in index.features}
        missing = [name for name in names if name not in known]
        if missing:
            raise RefusedError(
                f"names: {cid} has no {', '.join(map(repr, missing))}; it has "
                f"{', '.join(map(repr, sorted(known)))}"
            )
        used = [known[name] for name in names]
        fields = Fields.of(names, [one.shape for one in used], [one.dtype for one in used])
        return cls(cid, index, fields.names, batch_size, _target_of(fields, batch_size, target))

    def __len__(self) -> int:
        return self.index.records

    @property
    def inputs(self) -> tuple[str, ...]:
        """All names but the target's."""
        return tuple(name for name in self.names if name != self.target)

    @cached_property
    def tensors(self) -> tuple[Any, ...]:
        """A `keras.Input` for each name, to build a model of; the same ones each time."""
        import keras

        known = {feature.name: feature for feature in self.index.features}
        found = tuple(
            keras.Input(known[name].shape, name=name, dtype=known[name].dtype)
            for name in self.names
        )
        for tensor in found:
            # By this whoever is given a model finds the data that it is for.
            tensor.trainyard_dataset = self
        return found


def _target_of(fields: Fields, batch_size: int, target: str | None) -> str | None:
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise RefusedError(f"batch_size: {batch_size!r} is no number of records")
    if target is not None and target not in fields.names:
        raise RefusedError(
            f"target: {target!r} is none of the names {', '.join(map(repr, fields.names))}"
        )
    return target or (fields.names[-1] if len(fields.names) > 1 else None)


def _write(market: Market, rdd: "RDD[Any]", fields: Fields, shard_bytes: int) -> Sharded:
    if shard_bytes < 1:
        raise RefusedError(f"shard_bytes: {shard_bytes} bytes are no shard")
    content = market.content
    probe = secrets.token_bytes(32)
    place = Cid.of(Codec.RAW, probe)
    # Held open from the first block to the pin, so that no collection comes between.
    with content.store.batch() as batch:
        batch.put(place, probe)
        batch.flush()
        writer = PartitionWriter(market.place.content, fields, place, shard_bytes)
        with explained():
            # Only names come back: some hundred bytes for each shard.
            pieces: list[Piece] = rdd.mapPartitionsWithIndex(writer).collect()
        if not pieces:
            raise RefusedError("there are no records in the RDD")
        if len(pieces) > MOST_SHARDS:
            raise RefusedError(
                f"the RDD makes {len(pieces)} shards, and a data set has {MOST_SHARDS} at most: "
                "use fewer partitions with rdd.coalesce(count), or larger shards with shard_bytes"
            )
        return join_pieces(content, fields.schema, pieces)
