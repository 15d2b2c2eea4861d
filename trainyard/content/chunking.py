"""Cutting a stream of bytes into blocks.

Fixed sizes give the CIDs that every IPFS node gives. The gear chunker cuts where the content says
so, so that bytes put in or taken out near the start leave most later blocks as they were.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Protocol

import numpy as np
import numpy.typing as npt

from trainyard.content.limits import KIB, MIB, Limits

_READ_BYTES = 4 * MIB


class Chunker(Protocol):
    """A way to cut. `str()` gives the text that `parse_chunker` reads."""

    def cut(self, stream: BinaryIO) -> Iterator[bytes]: ...


@dataclass(frozen=True, slots=True)
class FixedChunker:
    size: int = 256 * KIB

    def __post_init__(self) -> None:
        if not 1 <= self.size <= Limits().block_bytes - KIB:
            raise ValueError(
                f"a chunk has 1 to {Limits().block_bytes - KIB} bytes, not {self.size}"
            )

    def cut(self, stream: BinaryIO) -> Iterator[bytes]:
        while chunk := _read_full(stream, self.size):
            yield chunk

    def __str__(self) -> str:
        return f"size-{self.size}"


@dataclass(frozen=True, slots=True)
class GearChunker:
    """Content-defined chunks of `average` bytes, never under a quarter nor over four times that.

    A cut falls after a byte where the gear hash of the 32 bytes before it ends in zeros. The hash
    is a sum of shifted table entries, so it can be computed for a whole buffer at once.
    """

    average: int = 256 * KIB

    def __post_init__(self) -> None:
        if self.average & (self.average - 1) or not KIB <= self.average <= 256 * KIB:
            raise ValueError(
                f"an average chunk is a power of two from 1024 to 262144 bytes, not {self.average}"
            )

    def cut(self, stream: BinaryIO) -> Iterator[bytes]:
        shortest, longest = self.average // 4, self.average * 4
        window = np.empty(0, dtype=np.uint8)
        cuts: list[int] = []
        ended = False
        while True:
            while not ended and window.size < longest + _READ_BYTES:
                more = _read_full(stream, _READ_BYTES)
                ended = len(more) < _READ_BYTES
                window, cuts = self._extend(window, cuts, more)
            if not window.size:
                return
            end = next((cut for cut in cuts if cut >= shortest), window.size)
            end = min(end, longest, window.size)
            yield window[:end].tobytes()
            window, cuts = window[end:], [cut - end for cut in cuts if cut > end]

    def _extend(
        self, window: npt.NDArray[np.uint8], cuts: list[int], more: bytes
    ) -> tuple[npt.NDArray[np.uint8], list[int]]:
        before = window.size
        window = np.concatenate([window, np.frombuffer(more, dtype=np.uint8)])
        # The hash of a byte needs the 31 before it, which the window still has unless it was cut.
        start = max(0, before - 31)
        hits = np.flatnonzero((_gear_hash(window[start:]) & np.uint32(self.average - 1)) == 0)
        return window, cuts + [int(hit) + start + 1 for hit in hits if hit + start >= before]

    def __str__(self) -> str:
        return f"gear-{self.average}"


def parse_chunker(text: str) -> Chunker:
    """`size-262144`, `size-1048576`, `gear`, `gear-65536`, …"""
    kind, _, size = text.partition("-")
    makers: dict[str, Any] = {"size": FixedChunker, "gear": GearChunker}
    if kind not in makers or (size and not size.isdecimal()):
        raise ValueError(f"no chunker {text!r}: write size-BYTES or gear-AVERAGE")
    chunker: Chunker = makers[kind](int(size)) if size else makers[kind]()
    return chunker


def _read_full(stream: BinaryIO, size: int) -> bytes:
    """Up to `size` bytes, fewer only at the end: pipes and sockets give less than asked for."""
    first = stream.read(size)
    if len(first) == size or not first:
        return first
    parts, missing = [first], size - len(first)
    while missing and (part := stream.read(missing)):
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


_GEAR = np.array(
    [
        int.from_bytes(hashlib.sha256(b"trainyard gear" + bytes([byte])).digest()[:4], "big")
        for byte in range(256)
    ],
    dtype=np.uint32,
)


def _gear_hash(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint32]:
    """For each byte the sum over the 32 bytes up to it of its table entry, shifted by its age.

    The sum over 2n bytes is the sum over the last n, plus that of the n before, shifted by n.
    """
    total = _GEAR[data]
    for span in (1, 2, 4, 8, 16):
        older = total[:-span] << np.uint32(span)
        total[span:] += older
    return total
