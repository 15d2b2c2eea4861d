"""The index of a sharded data set: its schema, its shards, and where each record begins.

index.json                            what `Index` says
data-00000-of-00008.tfrecord          the records
offsets/data-00000-of-00008.u64       where each begins, and the end: little-endian uint64
"""

import json
from typing import Annotated, Literal

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trainyard.datasets.errors import DatasetError
from trainyard.datasets.schema import Feature, Schema
from trainyard.datasets.tfrecord import FRAME_BYTES

INDEX_NAME, OFFSETS_NAME = "index.json", "offsets"
LARGEST_INDEX_BYTES = 16 << 20
MOST_SHARDS = 10_000
FORMAT: Literal["trainyard shards 1"] = "trainyard shards 1"


class Shard(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]+\.tfrecord$", max_length=255)]
    records: Annotated[int, Field(ge=1)]
    bytes: Annotated[int, Field(ge=1)]

    @property
    def offsets_name(self) -> str:
        return self.name.removesuffix(".tfrecord") + ".u64"


class Index(BaseModel):
    """`index.json`. No shard is without records: whoever trained from it would stand still."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["trainyard shards 1"] = FORMAT
    # By which the records were dealt; None where they stand in the order in which they came.
    seed: Annotated[int, Field(ge=0)] | None
    records: Annotated[int, Field(ge=1)]
    features: Annotated[tuple[Feature, ...], Field(min_length=1)]
    shards: Annotated[tuple[Shard, ...], Field(min_length=1, max_length=MOST_SHARDS)]

    @model_validator(mode="after")
    def _adds_up(self) -> "Index":
        if sum(shard.records for shard in self.shards) != self.records:
            raise ValueError(f"the shards do not have {self.records} records together")
        for shard in self.shards:
            if shard.records * FRAME_BYTES > shard.bytes:
                raise ValueError(
                    f"{shard.name} cannot have {shard.records} records in {shard.bytes} bytes"
                )
        for what in ([s.name for s in self.shards], [f.name for f in self.features]):
            if len(set(what)) != len(what):
                raise ValueError(f"a name is there twice in {what}")
        return self

    @property
    def schema_of_records(self) -> Schema:
        return Schema(self.features)

    def encode(self) -> bytes:
        return json.dumps(self.model_dump(mode="json"), indent=1).encode() + b"\n"

    @classmethod
    def decode(cls, data: bytes, where: str) -> "Index":
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(step) for step in first["loc"])
            raise DatasetError(
                f"{where} is no index of shards: {place + ': ' if place else ''}{first['msg']}"
            ) from error


def shard_name(number: int, count: int) -> str:
    return f"data-{number:05d}-of-{count:05d}.tfrecord"


def shard_bounds(records: int, shards: int) -> list[int]:
    """Where each shard begins and the last one ends; sizes differ by one at most."""
    small, larger = divmod(records, shards)
    return [number * small + min(number, larger) for number in range(shards + 1)]


def permutation(records: int, seed: int) -> npt.NDArray[np.int64]:
    """Which record of the source stands at each place: uniform, and decided by the seed alone.

    Sorting raw draws rather than shuffling: of NumPy's random streams only the raw ones are
    promised to stay the same from version to version.
    """
    draws = np.random.PCG64(seed).random_raw(records)
    return np.argsort(draws, kind="stable").astype(np.int64, copy=False)
