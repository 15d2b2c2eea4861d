"""What a record of an RDD or a row of a DataFrame has, and how it becomes arrays. No I/O."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from trainyard.datasets.schema import Feature, Schema
from trainyard.protocol.manifest.values import Dtype
from trainyard.sdk.errors import RefusedError

Array = npt.NDArray[Any]
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TYPES = frozenset(get_args(Dtype))


class MisfitError(ValueError):
    """A value that is not what its field says; the text does not know of which record."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Names, types and shapes of all values of a record, in their order."""

    features: tuple[Feature, ...]
    # Whether values come flat, as Spark's columns have them, and are given their shape here.
    is_flat: bool = False

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        shapes: Sequence[Sequence[int]],
        types: Sequence[Any],
        *,
        is_flat: bool = False,
    ) -> "Fields":
        """RefusedError where names, shapes and types do not make up records."""
        if isinstance(names, str) or not names:
            raise RefusedError("names: give a list with the name of each value of a record")
        if not len(names) == len(shapes) == len(types):
            raise RefusedError(
                f"{len(names)} names, {len(shapes)} shapes and {len(types)} types: give as many "
                "of each"
            )
        for name in names:
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                raise RefusedError(
                    f"names: {name!r} cannot be one; use 1 to 64 letters, digits, '_' and '-'"
                )
        twice = sorted({name for name in names if list(names).count(name) > 1})
        if twice:
            raise RefusedError(f"names: {', '.join(map(repr, twice))} is there twice; rename one")
        features = zip(names, map(type_of, types), map(_shape_of, names, shapes), strict=True)
        return cls(tuple(Feature.of(*one) for one in features), is_flat)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    @property
    def schema(self) -> Schema:
        return Schema(tuple(sorted(self.features, key=lambda feature: feature.name)))

    def row(self, record: Any) -> dict[str, Array]:
        """A record as arrays by name; MisfitError where it is not what was said."""
        if isinstance(record, Mapping):
            missing = [name for name in self.names if name not in record]
            if missing or len(record) != len(self.features):
                raise MisfitError(f"it has {sorted(map(str, record))}, and not {list(self.names)}")
            values = [record[name] for name in self.names]
        elif isinstance(record, list | tuple):
            values = list(record)
        elif len(self.features) == 1:
            values = [record]
        else:
            raise MisfitError(
                f"it is a {type(record).__name__}, where a list of {len(self.features)} values or "
                "a dict of them by name is due"
            )
        if len(values) != len(self.features):
            raise MisfitError(
                f"it has {len(values)} values, and {len(self.features)} are named: "
                f"{', '.join(self.names)}"
            )
        return {
            feature.name: _fitted(feature, value, self.is_flat)
            for feature, value in zip(self.features, values, strict=True)
        }


def type_of(given: Any) -> str:
    """The name of a type of TensorFlow's, of NumPy's, or a name itself."""
    # TensorFlow's know their name, and need not be imported for that.
    name = given if isinstance(given, str) else getattr(given, "name", None)
    if not isinstance(name, str):
        try:
            name = np.dtype(given).name
        except TypeError:
            name = str(given)
    if name not in _TYPES:
        raise RefusedError(
            f"types: {name} is none that a model is trained on; there are "
            f"{', '.join(sorted(_TYPES))}"
        )
    return name


def _shape_of(name: str, given: Sequence[int]) -> tuple[int, ...]:
    try:
        shape = tuple(int(length) for length in given)
    except (TypeError, ValueError):
        raise RefusedError(
            f"shapes: {name!r} has {given!r}; give all lengths of one record as numbers, without "
            "the batch's, and [] for a single number"
        ) from None
    if any(length < 1 for length in shape):
        raise RefusedError(f"shapes: {name!r} has {list(shape)}, and no length is below one")
    return shape


def _fitted(feature: Feature, value: Any, is_flat: bool) -> Array:
    array = _array_of(feature.name, value)
    if array.shape != feature.shape:
        if not is_flat or array.size != feature.count:
            raise MisfitError(
                f"{feature.name!r} has the shape {list(array.shape)}, and {list(feature.shape)} "
                "was said"
            )
        array = array.reshape(feature.shape)
    wanted = np.dtype(feature.dtype)
    return array if array.dtype == wanted else _cast(feature.name, array, wanted)


def _array_of(name: str, value: Any) -> Array:
    if value is None:
        raise MisfitError(f"{name!r} is null")
    if isinstance(value, bytes | bytearray):
        return np.frombuffer(value, np.uint8)
    # Such as the vectors of Spark's, which may be sparse.
    dense = getattr(value, "toArray", None)
    try:
        array = np.asarray(value if dense is None else dense())
    except ValueError:
        raise MisfitError(f"{name!r} is ragged: its lists are of unlike lengths") from None
    if array.dtype.kind not in "biuf":
        raise MisfitError(f"{name!r} holds {array.dtype}, which are no numbers")
    return array


def _cast(name: str, array: Array, wanted: np.dtype[Any]) -> Array:
    """Values in the type that was said, if it can hold them: of floats only digits may be lost."""
    if wanted.kind == "f":
        with np.errstate(over="ignore"):
            cast = array.astype(wanted)
        is_kept = bool(np.array_equal(np.isinf(cast), np.isinf(array)))
    elif wanted.kind in "iu" and array.dtype.kind in "biu":
        cast = array.astype(wanted)
        is_kept = bool(np.array_equal(cast, array))
    else:
        raise MisfitError(f"{name!r} holds {array.dtype}, and {wanted} was said")
    if not is_kept:
        raise MisfitError(f"{name!r} holds values that do not fit into {wanted}")
    return cast
