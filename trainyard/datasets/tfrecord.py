"""TFRecord's framing: a length, the record, and a checksum of each. TensorFlow is not needed.

uint64 length | uint32 masked CRC-32C of it | data | uint32 masked CRC-32C of the data
"""

import struct
from collections.abc import Iterator
from typing import Protocol

import google_crc32c

from trainyard.datasets.errors import CorruptRecordError

_LENGTH, _CHECKSUM = struct.Struct("<Q"), struct.Struct("<I")
HEAD_BYTES, TAIL_BYTES = _LENGTH.size + _CHECKSUM.size, _CHECKSUM.size
FRAME_BYTES = HEAD_BYTES + TAIL_BYTES
# Above this a length is taken for damage, rather than memory for it.
LARGEST_RECORD_BYTES = 1 << 30


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def frame(data: bytes) -> bytes:
    """`data` as it stands in a TFRecord file."""
    length = _LENGTH.pack(len(data))
    return b"".join((length, _CHECKSUM.pack(_masked(length)), data, _CHECKSUM.pack(_masked(data))))


def unframe(framed: bytes) -> bytes:
    """The one record that `framed` holds; CorruptRecordError where it does not hold just that."""
    if len(framed) < FRAME_BYTES:
        raise CorruptRecordError(f"a record is cut short after {len(framed)} bytes")
    length = _checked_length(framed[:HEAD_BYTES])
    if length != len(framed) - FRAME_BYTES:
        raise CorruptRecordError(
            f"a record says it has {length} bytes where {len(framed) - FRAME_BYTES} stand"
        )
    data = framed[HEAD_BYTES:-TAIL_BYTES]
    _check(data, framed[-TAIL_BYTES:], "its data")
    return data


def read_records(stream: Readable) -> Iterator[bytes]:
    """The records of a file, in order, one in memory at a time."""
    while head := stream.read(HEAD_BYTES):
        if len(head) < HEAD_BYTES:
            raise CorruptRecordError(f"the file ends inside a record's head ({len(head)} bytes)")
        length = _checked_length(head)
        body = stream.read(length + TAIL_BYTES)
        if len(body) < length + TAIL_BYTES:
            raise CorruptRecordError(f"the file ends inside a record of {length} bytes")
        data = body[:length]
        _check(data, body[length:], "its data")
        yield data


def _checked_length(head: bytes) -> int:
    _check(head[: _LENGTH.size], head[_LENGTH.size :], "its length")
    length: int = _LENGTH.unpack(head[: _LENGTH.size])[0]
    if length > LARGEST_RECORD_BYTES:
        raise CorruptRecordError(
            f"a record says it has {length} bytes; at most {LARGEST_RECORD_BYTES} are read"
        )
    return length


def _check(data: bytes, checksum: bytes, what: str) -> None:
    if _CHECKSUM.unpack(checksum)[0] != _masked(data):
        raise CorruptRecordError(f"a record's checksum does not match {what}")


def _masked(data: bytes) -> int:
    """As the format asks: rotated and offset, for a CRC of bytes that hold CRCs tells little."""
    crc: int = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
