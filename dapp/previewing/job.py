"""What the child in the sandbox is given, and what it says."""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["npz", "npy", "csv", "images", "tfrecord"]


class PreviewJob(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Path
    # Where arrays go as `train.<name>.npy` and `test.<name>.npy`.
    out: Path
    kind: Kind | None = None
    target: str | None = None
    ignore: tuple[str, ...] = ()
    image_size: tuple[int, int] | None = None
    test_percent: int = 0


class Previewed(BaseModel):
    """What the child found. It is a stranger's data, so all of it is checked again."""

    model_config = ConfigDict(extra="forbid")

    kind: Kind
    records: int = Field(ge=0)
    test_records: int = Field(default=0, ge=0)
    columns: list[dict[str, Any]] = Field(max_length=2_000)
    target: str | None = None
    inputs: list[str] = Field(default_factory=list, max_length=64)
    first: list[dict[str, Any]] = Field(default_factory=list, max_length=16)
    notes: list[str] = Field(default_factory=list, max_length=50)
    classes: int | None = None
    # Of a table: the names of its own columns, and which of them is predicted.
    predictable: list[str] = Field(default_factory=list, max_length=2_000)
    predicted: str | None = None


class PreviewError(ValueError):
    """Data of which nothing can be made, with the reason."""
