"""`tf.train.Example` as bytes: named lists of integers, of floats, or of byte strings.

Names are written in order, so equal records have equal bytes.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.content.dag import field, fields
from trainyard.datasets.errors import CorruptRecordError

Integers: TypeAlias = npt.NDArray[np.int64]
Floats: TypeAlias = npt.NDArray[np.float32]
Values: TypeAlias = Integers | Floats | Sequence[bytes]

_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 1, 2, 3
_LONGEST_VARINT = 10
_SHIFTS = np.arange(0, 7 * _LONGEST_VARINT, 7, dtype=np.uint64)


def encode_example(values: Mapping[str, Values]) -> bytes:
    entries = (
        field(1, field(1, name.encode()) + field(2, _encode_feature(values[name])))
        for name in sorted(values)
    )
    return field(1, b"".join(entries))


def decode_example(message: bytes) -> dict[str, Values]:
    """The lists by name; CorruptRecordError where the bytes are no Example."""
    try:
        entries = [
            _decode_entry(entry) for features in _only(message, 1) for entry in _only(features, 1)
        ]
    except ValueError as error:
        raise CorruptRecordError(f"a record is no tf.train.Example: {error}") from error
    return dict(entries)


def _encode_feature(values: Values) -> bytes:
    if not isinstance(values, np.ndarray):
        return field(_BYTES_LIST, b"".join(field(1, value) for value in values))
    if values.dtype == np.float32:
        return field(_FLOAT_LIST, field(1, values.astype("<f4", copy=False).tobytes()))
    return field(_INT64_LIST, field(1, encode_varints(values.astype(np.int64, copy=False))))


def _decode_entry(entry: bytes) -> tuple[str, Values]:
    name, feature = "", b""
    for number, value in fields(entry):
        if number not in (1, 2) or not isinstance(value, bytes):
            raise ValueError(f"a feature has an unknown field {number}")
        if number == 1:
            name = value.decode()
        else:
            feature = value
    return name, _decode_feature(feature)


def _decode_feature(feature: bytes) -> Values:
    values: Values = []
    for kind, body in fields(feature):
        if not isinstance(body, bytes):
            raise ValueError(f"a feature has no list in its field {kind}")
        parts = _only(body, 1)
        match kind:
            case 1:
                values = parts
            case 2:
                packed = b"".join(parts)
                if len(packed) % 4:
                    raise ValueError(f"{len(packed)} bytes are no list of 32-bit floats")
                values = np.frombuffer(packed, "<f4").astype(np.float32, copy=False)
            case 3:
                values = decode_varints(b"".join(parts))
            case _:
                raise ValueError(f"lists of kind {kind} are unknown")
    return values


def _only(message: bytes, wanted: int) -> list[bytes]:
    """The repeated field that a message consists of."""
    found = []
    for number, value in fields(message):
        if number != wanted or not isinstance(value, bytes):
            raise ValueError(f"field {number} has no place here")
        found.append(value)
    return found


def encode_varints(values: Integers) -> bytes:
    """Protobuf's packed int64: seven bits a byte, negative numbers in ten."""
    numbers = values.reshape(-1).view(np.uint64)
    if not numbers.size or numbers.max() < 0x80:
        return numbers.astype(np.uint8).tobytes()
    groups = numbers[:, None] >> _SHIFTS
    more = np.zeros(groups.shape, dtype=bool)
    more[:, :-1] = groups[:, 1:] != 0
    kept = np.ones(groups.shape, dtype=bool)
    kept[:, 1:] = more[:, :-1]
    encoded = (groups & np.uint64(0x7F)).astype(np.uint8) | (more.astype(np.uint8) << 7)
    return encoded[kept].tobytes()


def decode_varints(packed: bytes) -> Integers:
    data = np.frombuffer(packed, np.uint8)
    if not data.size:
        return np.empty(0, np.int64)
    ends = np.flatnonzero(data < 0x80)
    if not ends.size or ends[-1] != data.size - 1:
        raise ValueError("a list of integers is cut short")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > _LONGEST_VARINT:
        raise ValueError(f"an integer takes over {_LONGEST_VARINT} bytes")
    places = np.arange(data.size) - np.repeat(starts, lengths)
    parts = (data & 0x7F).astype(np.uint64) << _SHIFTS[places]
    return np.add.reduceat(parts, starts).view(np.int64)
