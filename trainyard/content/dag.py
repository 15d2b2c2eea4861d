"""Nodes of a DAG: dag-pb, the encoding that IPFS uses for files and directories.

The writer is canonical: links first, then data, as every IPFS node does. The reader takes what is
valid protobuf in either order, and refuses everything else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from trainyard.content.cid import Cid
from trainyard.content.errors import InvalidCidError, MalformedBlockError
from trainyard.content.varint import read_varint, write_varint

_VARINT, _BYTES = 0, 2


@dataclass(frozen=True, slots=True)
class Link:
    """A child: its CID, its name, and the bytes of all blocks below it."""

    cid: Cid
    name: str
    total_bytes: int


@dataclass(frozen=True, slots=True)
class Node:
    links: tuple[Link, ...]
    data: bytes


def field(number: int, value: bytes | int) -> bytes:
    """One protobuf field."""
    if isinstance(value, int):
        return write_varint(number << 3 | _VARINT) + write_varint(value)
    return write_varint(number << 3 | _BYTES) + write_varint(len(value)) + value


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a protobuf message, in order; ValueError where it is none."""
    at = 0
    while at < len(message):
        key, at = read_varint(message, at)
        match key & 7:
            case 0:
                number, at = read_varint(message, at)
                yield key >> 3, number
            case 2:
                length, at = read_varint(message, at)
                if at + length > len(message):
                    raise ValueError("a field is longer than its message")
                yield key >> 3, message[at : at + length]
                at += length
            case other:
                raise ValueError(f"protobuf wire type {other} has no place here")


def encode_node(links: Sequence[Link], data: bytes) -> bytes:
    encoded = [
        field(
            2,
            field(1, link.cid.encode())
            + field(2, link.name.encode("utf-8", "surrogateescape"))
            + field(3, link.total_bytes),
        )
        for link in links
    ]
    return b"".join(encoded) + field(1, data)


def decode_node(block: bytes) -> Node:
    links: list[Link] = []
    data: bytes | None = None
    try:
        for number, value in fields(block):
            if number == 1 and isinstance(value, bytes) and data is None:
                data = value
            elif number == 2 and isinstance(value, bytes):
                links.append(_decode_link(value))
            else:
                raise ValueError(f"field {number} is unknown or repeated")
    except (ValueError, InvalidCidError) as error:
        raise MalformedBlockError(f"no valid dag-pb node: {error}") from error
    return Node(tuple(links), data or b"")


def _decode_link(message: bytes) -> Link:
    cid: Cid | None = None
    name, total_bytes = "", 0
    for number, value in fields(message):
        match number, value:
            case 1, bytes(encoded):
                cid = Cid.decode(encoded)
            case 2, bytes(text):
                name = text.decode("utf-8", "surrogateescape")
            case 3, int(size):
                total_bytes = size
            case _:
                raise ValueError(f"a link has no field {number} of this type")
    if cid is None:
        raise ValueError("a link without a CID")
    return Link(cid, name, total_bytes)
