"""UnixFS: what a node's data says about the file or directory that it stands for."""

from dataclasses import dataclass
from enum import IntEnum

from trainyard.content.cid import Cid
from trainyard.content.dag import field, fields
from trainyard.content.errors import MalformedBlockError
from trainyard.content.varint import read_varint

# The fan-out and hash of HAMT directories, as every IPFS node writes them.
HAMT_WIDTH = 256
HAMT_MURMUR3 = 0x22


class Kind(IntEnum):
    RAW = 0
    DIRECTORY = 1
    FILE = 2
    METADATA = 3
    SYMLINK = 4
    HAMT_SHARD = 5


@dataclass(frozen=True, slots=True)
class UnixFs:
    kind: Kind
    data: bytes = b""
    file_size: int | None = None
    block_sizes: tuple[int, ...] = ()
    hash_type: int | None = None
    fanout: int | None = None

    def encode(self) -> bytes:
        parts = [field(1, self.kind)]
        if self.data:
            parts.append(field(2, self.data))
        if self.file_size is not None:
            parts.append(field(3, self.file_size))
        parts += [field(4, size) for size in self.block_sizes]
        if self.hash_type is not None:
            parts.append(field(5, self.hash_type))
        if self.fanout is not None:
            parts.append(field(6, self.fanout))
        return b"".join(parts)

    def bytes_of_file(self, cid: Cid, links: int) -> int:
        """How many bytes a file has whose top is this node; MalformedBlockError if it is torn."""
        if links != len(self.block_sizes):
            raise MalformedBlockError(f"{cid} has {links} links and {len(self.block_sizes)} sizes")
        total = len(self.data) + sum(self.block_sizes)
        if self.file_size is not None and self.file_size != total:
            raise MalformedBlockError(
                f"{cid} says {self.file_size} bytes and its parts have {total}"
            )
        return total


def decode_unixfs(message: bytes) -> UnixFs:
    kind: Kind | None = None
    data = b""
    numbers: dict[int, int] = {}
    block_sizes: list[int] = []
    try:
        for number, value in fields(message):
            match number, value:
                case 1, int(code):
                    kind = Kind(code)
                case 2, bytes(content):
                    data = content
                case 4, int(size):
                    block_sizes.append(size)
                case 4, bytes(packed):
                    block_sizes += _unpack(packed)
                case ((3 | 5 | 6), int(amount)):
                    numbers[number] = amount
                case ((7 | 8), _):  # mode and time of change: not ours to restore
                    pass
                case _:
                    raise ValueError(f"UnixFS has no field {number} of this type")
    except ValueError as error:
        raise MalformedBlockError(f"no valid UnixFS data: {error}") from error
    if kind is None:
        raise MalformedBlockError("no valid UnixFS data: it names no kind")
    return UnixFs(kind, data, numbers.get(3), tuple(block_sizes), numbers.get(5), numbers.get(6))


def _unpack(packed: bytes) -> list[int]:
    numbers, at = [], 0
    while at < len(packed):
        number, at = read_varint(packed, at)
        numbers.append(number)
    return numbers
