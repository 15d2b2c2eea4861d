"""CAR version 1: a stream of blocks, each behind its length and CID.

Nothing here verifies: a CAR is a way to send blocks, not a reason to believe them.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from trainyard.content.cid import Cid
from trainyard.content.errors import LimitExceededError, MalformedBlockError
from trainyard.content.limits import DEFAULT_LIMITS, Limits
from trainyard.content.varint import write_varint

# A CID before its block: version, codec, hash, length and the longest digest.
_LONGEST_CID = 160
_LONGEST_HEADER = 64 * 1024


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def write_car(roots: Sequence[Cid], blocks: Iterable[tuple[Cid, bytes]]) -> Iterator[bytes]:
    """The bytes of a CAR, piece by piece."""
    header = _cbor_header(roots)
    yield write_varint(len(header)) + header
    for cid, block in blocks:
        name = cid.encode()
        yield write_varint(len(name) + len(block)) + name
        yield block


def read_car(stream: Readable, limits: Limits = DEFAULT_LIMITS) -> Iterator[tuple[Cid, bytes]]:
    """The blocks of a CAR as they arrive; MalformedBlockError where it breaks off or is none."""
    header_bytes = _read_length(stream)
    if header_bytes is None:
        raise MalformedBlockError("an empty answer where a CAR was expected")
    if header_bytes > _LONGEST_HEADER:
        raise LimitExceededError(f"a CAR header of {header_bytes} bytes")
    header = _read_exactly(stream, header_bytes)
    if b"gversion\x01" not in header:
        raise MalformedBlockError("no CAR of version 1")
    while (length := _read_length(stream)) is not None:
        if length > limits.block_bytes + _LONGEST_CID:
            raise LimitExceededError(
                f"a CAR with a block of {length} bytes: at most {limits.block_bytes} are allowed"
            )
        section = _read_exactly(stream, length)
        try:
            cid, end = Cid.decode_prefix(section)
        except ValueError as error:
            raise MalformedBlockError(f"a CAR with an unreadable CID: {error}") from error
        yield cid, section[end:]


def _read_length(stream: Readable) -> int | None:
    """The varint at which the stream stands, or None at its end."""
    number = shift = 0
    while byte := stream.read(1):
        number |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return number
        shift += 7
        if shift > 56:
            raise MalformedBlockError("a CAR with an endless length")
    if shift:
        raise MalformedBlockError("a CAR is cut short in a length")
    return None


def _read_exactly(stream: Readable, size: int) -> bytes:
    data = stream.read(size)
    if len(data) == size:
        return data
    parts, missing = [data], size - len(data)
    while missing:
        part = stream.read(missing)
        if not part:
            raise MalformedBlockError(f"a CAR is cut short: {missing} bytes are missing")
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _cbor_header(roots: Sequence[Cid]) -> bytes:
    """`{"roots": [...], "version": 1}` in DAG-CBOR, in which a CID is tag 42 on its bytes."""
    links = b"".join(
        b"\xd8\x2a" + _cbor_head(2, len(cid.encode()) + 1) + b"\0" + cid.encode() for cid in roots
    )
    return b"\xa2\x65roots" + _cbor_head(4, len(roots)) + links + b"\x67version\x01"


def _cbor_head(major: int, count: int) -> bytes:
    if count < 24:
        return bytes([major << 5 | count])
    if count < 256:
        return bytes([major << 5 | 24, count])
    return bytes([major << 5 | 25]) + count.to_bytes(2, "big")
