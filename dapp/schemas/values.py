"""Values that all documents share."""

import re
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

from eth_utils.address import is_address, to_checksum_address
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

_DECIMAL = re.compile("[0-9]{1,78}")
_LARGEST = 2**256 - 1
_LARGEST_PRICE = 2**96 - 1


class Answer(BaseModel):
    """What the server says, with all of its fields, whether they have a default or not."""

    model_config = ConfigDict(frozen=True, json_schema_serialization_defaults_required=True)


class Question(BaseModel):
    """What it is told: nothing more than it knows."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _amount(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("an amount is a string of decimal digits")
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        raise ValueError("an amount is a string of decimal digits")
    number = int(value)
    if not 0 <= number <= _LARGEST:
        raise ValueError("an amount has 256 bits and no sign")
    return number


def _price(value: Any) -> int:
    number = _amount(value)
    if number > _LARGEST_PRICE:
        raise ValueError("the market takes amounts of at most 96 bits in its terms")
    return number


# The same few people all the time, and each costs a hash.
@lru_cache(maxsize=65_536)
def _address(text: str) -> str:
    if not is_address(text):
        raise ValueError("an address is 0x and 40 hexadecimal digits")
    return to_checksum_address(text)


Wei: TypeAlias = Annotated[
    int,
    BeforeValidator(_amount),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": "^[0-9]{1,78}$", "examples": ["100000000000000000"]}
    ),
]
# What the market keeps of terms: an amount in 96 bits.
Price: TypeAlias = Annotated[
    int,
    BeforeValidator(_price),
    PlainSerializer(str, return_type=str),
    WithJsonSchema(
        {"type": "string", "pattern": "^[0-9]{1,29}$", "examples": ["100000000000000000"]}
    ),
]
Address: TypeAlias = Annotated[
    str,
    Field(
        min_length=42,
        max_length=42,
        pattern="^0x[0-9a-fA-F]{40}$",
        examples=["0x5FbDB2315678afecb367f032d93F642f64180aa3"],
    ),
    AfterValidator(_address),
]
Hex32: TypeAlias = Annotated[
    str,
    Field(pattern="^0x[0-9a-f]{64}$", min_length=66, max_length=66, examples=["0x" + "ab" * 32]),
]
HexData: TypeAlias = Annotated[str, Field(pattern="^0x[0-9a-f]*$", examples=["0x"])]
CidText: TypeAlias = Annotated[
    str,
    Field(
        min_length=2,
        max_length=200,
        pattern="^[A-Za-z0-9]+$",
        examples=["bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"],
    ),
]
Seconds: TypeAlias = Annotated[int, Field(ge=0, le=2**53 - 1)]
TaskId: TypeAlias = Annotated[int, Field(ge=1, le=2**31 - 1)]

# The market's own names, in lower case.
StateName: TypeAlias = Literal[
    "open",
    "running",
    "revealing",
    "submitted",
    "auditing",
    "opening",
    "window",
    "disputed",
    "settled",
    "failed",
    "cancelled",
]
PolicyName: TypeAlias = Literal["replicate", "audit", "score", "contest"]
FailureName: TypeAlias = Literal[
    "no_quorum", "fraud", "withheld", "inconclusive", "unaudited", "below_target"
]
ModeName: TypeAlias = Literal["single", "sync", "rounds", "async", "predict"]


class ProblemDetail(Answer):
    """Why a request was refused; `fix` says what to do about it."""

    code: str = Field(examples=["not_found"])
    message: str = Field(examples=["there is no task 7: the market has 3"])
    fix: str | None = None
    # The place in the request, such as "body.terms.reward".
    field: str | None = None
    retry_after_s: float | None = None


class Problem(Answer):
    """The body of every answer that is not 2xx."""

    error: ProblemDetail
