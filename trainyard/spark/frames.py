"""The columns of a DataFrame as names, shapes and types. Pure: the schema is only looked at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trainyard.sdk.errors import RefusedError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

# By the names that Spark has for them. Of its doubles Keras would keep 32 bits too.
_NUMBERS = {
    "boolean": "bool",
    "byte": "int8",
    "short": "int16",
    "integer": "int32",
    "long": "int64",
    "float": "float32",
    "double": "float32",
}
_BYTES, _ARRAY, _VECTOR = "binary", "array", "VectorUDT"


@dataclass(frozen=True, slots=True)
class Columns:
    names: tuple[str, ...]
    shapes: tuple[Sequence[int], ...]
    types: tuple[Any, ...]


def columns_of(
    schema: "StructType",
    names: Sequence[str] | None,
    shapes: Sequence[Sequence[int]] | None,
    types: Sequence[Any] | None,
) -> Columns:
    """RefusedError for what is no column, or no numbers, or has a shape that nobody says."""
    if isinstance(names, str):
        raise RefusedError("names: give a list with the name of each column")
    chosen = tuple(schema.names if names is None else names)
    missing = [name for name in chosen if name not in schema.names]
    if missing:
        raise RefusedError(
            f"names: there is no column {', '.join(map(repr, missing))}; there are "
            f"{', '.join(map(repr, schema.names))}"
        )
    for what, given in (("shapes", shapes), ("types", types)):
        if given is not None and len(given) != len(chosen):
            raise RefusedError(f"{what}: {len(given)} of them for {len(chosen)} columns")
    kinds = {field.name: field.dataType for field in schema.fields}
    return Columns(
        chosen,
        tuple(
            _shape(name, kinds[name], None if shapes is None else shapes[number])
            for number, name in enumerate(chosen)
        ),
        tuple(
            _type(name, kinds[name]) if types is None else types[number]
            for number, name in enumerate(chosen)
        ),
    )


def _shape(name: str, kind: "DataType", given: Sequence[int] | None) -> Sequence[int]:
    if given is not None:
        return given
    if kind.typeName() not in _NUMBERS:
        raise RefusedError(
            f"shapes: the column {name!r} is of {kind.simpleString()}, whose length Spark does not "
            "say; give the shape of each column, and [] for single numbers"
        )
    return ()


def _type(name: str, kind: "DataType") -> str:
    inner: Any = kind
    while inner.typeName() == _ARRAY:
        inner = inner.elementType
    if inner.typeName() == _BYTES:
        return "uint8"
    if type(inner).__name__ == _VECTOR:
        return "float32"
    found = _NUMBERS.get(inner.typeName())
    if found is None:
        raise RefusedError(
            f"types: the column {name!r} is of {kind.simpleString()}, which are no numbers; make "
            "numbers of it first, or leave it out of names"
        )
    return found
