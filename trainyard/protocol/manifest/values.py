"""The kinds of values in a manifest: names, bounded numbers, sizes, tensors."""

from dataclasses import dataclass
from math import prod
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

MOST_STEPS = 10**9
# Numbers that come through float32 as what they are: neither infinite nor zero.
_LARGEST_NUMBER = 1e30
_SMALLEST_POSITIVE = 1e-30
_LARGEST_SIZE = 1_000_000
MOST_DIMENSIONS = 4


class Strict(BaseModel):
    """What is not named is refused, and nothing is converted: "64" is no 64."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def _without_negative_zero(value: float) -> float:
    # Canonical JSON writes -0 as 0, so a manifest must not tell them apart.
    return value + 0.0


def _pair(value: Any) -> Any:
    """One number for both directions, as people write it; other arrays as they are."""
    if type(value) is int:
        return (value, value)
    return tuple(value) if isinstance(value, list) else value


def _pairs(value: Any) -> Any:
    value = _pair(value)
    return tuple(_pair(side) for side in value) if isinstance(value, tuple) else value


Name: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
Number: TypeAlias = Annotated[
    float,
    Field(ge=-_LARGEST_NUMBER, le=_LARGEST_NUMBER),
    AfterValidator(_without_negative_zero),
]
NonNegative: TypeAlias = Annotated[Number, Field(ge=0)]
Positive: TypeAlias = Annotated[Number, Field(ge=_SMALLEST_POSITIVE)]
# A share that may be nothing but not all: rates of dropout, momenta, decays.
Share: TypeAlias = Annotated[Number, Field(ge=0, lt=1)]
Size: TypeAlias = Annotated[int, Field(ge=1, le=_LARGEST_SIZE)]
Margin: TypeAlias = Annotated[int, Field(ge=0, le=_LARGEST_SIZE)]
Steps: TypeAlias = Annotated[int, Field(ge=1, le=MOST_STEPS)]
Pair: TypeAlias = Annotated[tuple[Size, Size], BeforeValidator(_pair)]
MarginPair: TypeAlias = Annotated[tuple[Margin, Margin], BeforeValidator(_pair)]
Margins: TypeAlias = Annotated[
    tuple[tuple[Margin, Margin], tuple[Margin, Margin]], BeforeValidator(_pairs)
]
Shape: TypeAlias = Annotated[tuple[Size, ...], Field(max_length=MOST_DIMENSIONS)]
Dtype: TypeAlias = Literal[
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
]

INTEGERS: frozenset[Dtype] = frozenset({"uint8", "int8", "uint16", "int16", "int32", "int64"})
FLOATS: frozenset[Dtype] = frozenset({"float16", "float32", "float64"})


@dataclass(frozen=True, slots=True)
class Tensor:
    """What flows between layers, for one example: the batch's axis is left out."""

    shape: tuple[int, ...]
    dtype: Dtype = "float32"

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"
