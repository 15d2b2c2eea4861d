"""What each record of a data set has: names, types, shapes, and how an Example carries them.

Whatever fits an Example's own lists goes there, as TensorFlow's parsers expect: integers and
booleans as int64, float32 as float, strings as bytes. What would be widened or lose precision
(images of uint8, float64, float16, uint64, complex) goes as one string of raw little-endian bytes,
which `tf.io.decode_raw` reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from trainyard.datasets.errors import CorruptRecordError, DatasetError, MismatchError
from trainyard.datasets.example import Values, decode_example, encode_example

Value: TypeAlias = npt.NDArray[Any] | np.generic | bytes | str | int | float | bool
Record: TypeAlias = Mapping[str, Value]

_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint16", "uint32")
_RAW = ("uint8", "uint64", "float16", "float64", "complex64", "complex128")
_STRINGS = ("bytes", "str")
_LARGEST_VALUES = 1 << 30


class Encoding(StrEnum):
    INT64 = "int64"
    FLOAT = "float"
    BYTES = "bytes"
    RAW = "raw"


class Feature(BaseModel):
    """One named value of each record. Part of the index of a data set, so it is checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(min_length=1, max_length=256)]
    dtype: str
    shape: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=32)]
    encoding: Encoding

    @field_validator("encoding")
    @classmethod
    def _fits(cls, encoding: Encoding, info: ValidationInfo) -> Encoding:
        dtype, shape = info.data.get("dtype", ""), info.data.get("shape", ())
        if encoding is not _encoding(dtype, shape):
            raise ValueError(f"{dtype} of shape {list(shape)} is not carried as {encoding}")
        if _count(shape) > _LARGEST_VALUES:
            raise ValueError(f"over {_LARGEST_VALUES} values in one record")
        return encoding

    @classmethod
    def of(cls, name: str, dtype: str, shape: tuple[int, ...]) -> "Feature":
        return cls(name=name, dtype=dtype, shape=shape, encoding=_encoding(dtype, shape))

    @property
    def count(self) -> int:
        return _count(self.shape)

    def encode(self, value: npt.NDArray[Any]) -> Values:
        match self.encoding:
            case Encoding.INT64:
                return value.astype(np.int64).reshape(-1)
            case Encoding.FLOAT:
                return value.astype(np.float32, copy=False).reshape(-1)
            case Encoding.RAW:
                return [value.astype(self._stored, copy=False).tobytes()]
        if self.dtype == "str":
            return [str(text).encode() for text in value.reshape(-1)]
        return [bytes(data) for data in value.reshape(-1)]

    def decode(self, values: Values) -> npt.NDArray[Any]:
        match self.encoding:
            case Encoding.INT64 | Encoding.FLOAT:
                wanted = np.int64 if self.encoding is Encoding.INT64 else np.float32
                if not isinstance(values, np.ndarray) or values.dtype != wanted:
                    raise CorruptRecordError(f"{self.name!r} is no list of {self.encoding}")
                if values.size != self.count:
                    raise self._wrong_size(values.size)
                return values.astype(self.dtype).reshape(self.shape)
            case Encoding.RAW:
                if isinstance(values, np.ndarray) or len(values) != 1:
                    raise CorruptRecordError(f"{self.name!r} is not one string of raw bytes")
                if len(values[0]) != self.count * self._stored.itemsize:
                    raise self._wrong_size(len(values[0]) // self._stored.itemsize)
                return np.frombuffer(values[0], self._stored).reshape(self.shape)
        if isinstance(values, np.ndarray):
            raise CorruptRecordError(f"{self.name!r} is no list of strings")
        if len(values) != self.count:
            raise self._wrong_size(len(values))
        return self._strings(values)

    @property
    def _stored(self) -> np.dtype[Any]:
        return np.dtype(self.dtype).newbyteorder("<")

    def _strings(self, values: Any) -> npt.NDArray[Any]:
        decoded = np.empty(self.count, dtype=object)
        try:
            decoded[:] = [data.decode() for data in values] if self.dtype == "str" else values
        except UnicodeDecodeError as error:
            raise CorruptRecordError(f"{self.name!r} is no UTF-8 text") from error
        return decoded.reshape(self.shape)

    def _wrong_size(self, found: int) -> CorruptRecordError:
        return CorruptRecordError(
            f"{self.name!r} has {found} values where its shape {list(self.shape)} "
            f"needs {self.count}"
        )


@dataclass(frozen=True, slots=True)
class Schema:
    """The features of a data set, by name."""

    features: tuple[Feature, ...]

    @classmethod
    def of(cls, record: Record) -> "Schema":
        """The schema that has `record` as its first."""
        if not record:
            raise DatasetError("a record has no values; give at least one by name")
        features = []
        for name in sorted(record):
            array, dtype = as_array(name, record[name])
            features.append(Feature.of(name, dtype, array.shape))
        return cls(tuple(features))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(feature.name for feature in self.features)

    def encode(self, record: Record, number: int) -> bytes:
        """Record `number` as an Example; MismatchError where it is unlike the others."""
        if len(record) != len(self.features) or any(name not in record for name in self.names):
            raise MismatchError(
                f"record {number} has {sorted(record)}, the first one {list(self.names)}"
            )
        values = {}
        for feature in self.features:
            array, dtype = as_array(feature.name, record[feature.name])
            if (dtype, array.shape) != (feature.dtype, feature.shape):
                raise MismatchError(
                    f"record {number}: {feature.name!r} is {dtype} of shape {list(array.shape)}, "
                    f"in the first record it is {feature.dtype} of shape {list(feature.shape)}"
                )
            values[feature.name] = feature.encode(array)
        return encode_example(values)

    def decode(self, message: bytes) -> dict[str, npt.NDArray[Any]]:
        """The values of an Example, each with the type and shape that the schema says."""
        values = decode_example(message)
        if set(values) != set(self.names):
            raise CorruptRecordError(
                f"a record has {sorted(values)} where the schema says {list(self.names)}"
            )
        return {feature.name: feature.decode(values[feature.name]) for feature in self.features}


def as_array(name: str, value: Value) -> tuple[npt.NDArray[Any], str]:
    """`value` as an array, and the name of its type as schemas have it."""
    if isinstance(value, bytes | str):
        single = np.empty((), dtype=object)
        single[()] = value
        return single, "bytes" if isinstance(value, bytes) else "str"
    array = np.asarray(value)
    match array.dtype.kind:
        case "S":
            return array.astype(object), "bytes"
        case "U":
            return array.astype(object), "str"
        case "O":
            for kind, dtype in ((bytes, "bytes"), (str, "str")):
                if all(isinstance(item, kind) for item in array.reshape(-1)):
                    return array, dtype
            raise DatasetError(
                f"{name!r} is no array of numbers or strings (ragged or mixed values?); "
                "pad it to one shape, or encode it as bytes"
            )
    return array, array.dtype.newbyteorder("=").name


def _encoding(dtype: str, shape: tuple[int, ...]) -> Encoding:
    if dtype in _STRINGS:
        return Encoding.BYTES
    # A label is worth a plain integer, an image's bytes are not worth eight each.
    if dtype in _INTEGERS or (dtype == "uint8" and not shape):
        return Encoding.INT64
    if dtype == "float32":
        return Encoding.FLOAT
    if dtype in _RAW:
        return Encoding.RAW
    known = ", ".join((*_INTEGERS, "float32", *_RAW, *_STRINGS))
    raise DatasetError(f"values of type {dtype!r} cannot be stored; convert them to one of {known}")


def _count(shape: tuple[int, ...]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count
