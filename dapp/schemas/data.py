"""Data sets as they look before they are trained on."""

from typing import Annotated, Any, Literal

from pydantic import Field

from dapp.schemas.values import Answer, CidText, Question


class PreviewRequest(Question):
    """What is behind a CID that was uploaded, or is somewhere in reach."""

    cid: CidText
    # Left out, it is found out from names and first bytes.
    kind: Literal["npz", "npy", "csv", "images", "tfrecord"] | None = None
    # For CSV: the column to predict; the last one if left out. For others: the feature.
    target: Annotated[str, Field(max_length=64)] | None = None
    # For CSV: columns to leave out.
    ignore: list[Annotated[str, Field(max_length=64)]] = Field(default_factory=list, max_length=64)
    # For images: the size that all are brought to; that of the first one if left out.
    image_size: tuple[int, int] | None = None
    # Part of the records to hold back as `test`, in percent.
    test_percent: Annotated[int, Field(ge=0, le=50)] = 0
    # Whether to write it as content that workers can read (arrays by CID).
    write: bool = True


class Column(Answer):
    name: str
    dtype: str
    shape: list[int]
    # Of numbers.
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    # Of whole numbers and texts: how many different ones, and the most frequent with their counts.
    distinct: int | None = None
    most_frequent: list[tuple[str, int]] = Field(default_factory=list)
    # For texts that became numbers: what each number stands for.
    labels: list[str] | None = None


class DataPreview(Answer):
    kind: Literal["npz", "npy", "csv", "images", "tfrecord"]
    source_cid: CidText
    records: int
    columns: list[Column]
    target: str | None
    inputs: list[str]
    # The first records: numbers, lists of numbers or texts by column. Images of at most 64 by 64
    # come as PNG in base64 under `png`.
    first: list[dict[str, Any]]
    # The sections `data.train` and `data.test` of a manifest; null where `write` was false.
    train: dict[str, Any] | None = None
    test: dict[str, Any] | None = None
    bytes: int
    # What the author should know, such as rows that were left out.
    notes: list[str] = Field(default_factory=list)
    # For a classification: how many classes the target has.
    classes: int | None = None
    # For CSV: the table's own columns, one of which a request's `target` names, and which it was.
    predictable: list[str] = Field(default_factory=list)
    predicted: str | None = None
