"""What goes over a connection between two workers: a header, an answer, and pieces of a stream."""

import asyncio
import struct
from dataclasses import dataclass
from enum import IntEnum

from worker_agent.peers.errors import PeerError

# What is asked with fits into memory; what is answered may be a file.
MOST_BODY_BYTES = 4 << 20
MOST_REASON_BYTES = 1 << 10
PIECE_BYTES = 256 << 10
_MAGIC = b"TYP1"
_HEADER = struct.Struct("!4sBBI")
_ANSWER = struct.Struct("!BQ")
_LENGTH = struct.Struct("!I")
_ALIVE = 0xFFFF_FFFF
# TLS has no half-closed connections in asyncio, so a piece of no bytes says that no more will come.
ENDED = _LENGTH.pack(0)
# And another says that nothing is wrong when there is nothing to say.
ALIVE = _LENGTH.pack(_ALIVE)


class What(IntEnum):
    STREAM = 0
    REQUEST = 1


class Status(IntEnum):
    GIVEN = 0
    REFUSED = 1


@dataclass(frozen=True, slots=True)
class Header:
    """The first thing on a connection: what it is for."""

    what: What
    kind: str = ""
    body_bytes: int = 0

    def encode(self) -> bytes:
        kind = self.kind.encode("ascii")
        if len(kind) > 255 or self.body_bytes > MOST_BODY_BYTES:
            raise ValueError(f"a request of {self.body_bytes} bytes, at most {MOST_BODY_BYTES} fit")
        return _HEADER.pack(_MAGIC, self.what, len(kind), self.body_bytes) + kind


async def read_header(reader: asyncio.StreamReader) -> Header:
    magic, what, kind_bytes, body_bytes = _HEADER.unpack(await reader.readexactly(_HEADER.size))
    if magic != _MAGIC or what not in list(What) or body_bytes > MOST_BODY_BYTES:
        raise PeerError("a connection begins with what is no header")
    kind = await reader.readexactly(kind_bytes)
    if not kind.isascii():
        raise PeerError("a request is of a kind that is not ASCII")
    return Header(What(what), kind.decode("ascii"), body_bytes)


def answer(status: Status, body_bytes: int) -> bytes:
    return _ANSWER.pack(status, body_bytes)


async def read_answer(reader: asyncio.StreamReader) -> tuple[Status, int]:
    status, body_bytes = _ANSWER.unpack(await reader.readexactly(_ANSWER.size))
    if status not in list(Status):
        raise PeerError("an answer begins with what is none")
    return Status(status), body_bytes


def piece(data: bytes) -> bytes:
    return _LENGTH.pack(len(data)) + data


async def read_piece(reader: asyncio.StreamReader) -> bytes | None:
    """The next bytes of a stream, none at its end, and None for a mere sign of life."""
    (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    if length == _ALIVE:
        return None
    if length > PIECE_BYTES:
        raise PeerError(f"a piece of {length} bytes in a stream, where {PIECE_BYTES} are most")
    return await reader.readexactly(length)
