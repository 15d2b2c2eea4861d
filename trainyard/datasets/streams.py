"""Bytes that are made while they are read."""

import io
from collections.abc import Iterable
from typing import BinaryIO

_BUFFER_BYTES = 1 << 20


def stream_of(pieces: Iterable[bytes | memoryview]) -> BinaryIO:
    """A file to read whose bytes are those of `pieces`, each asked for when it is needed."""
    return io.BufferedReader(_Pieces(pieces), _BUFFER_BYTES)


class _Pieces(io.RawIOBase):
    def __init__(self, pieces: Iterable[bytes | memoryview]) -> None:
        self._pieces = iter(pieces)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        at = 0
        while at < len(buffer):
            while not self._rest:
                following = next(self._pieces, None)
                if following is None:
                    return at
                self._rest = memoryview(following)
            count = min(len(buffer) - at, len(self._rest))
            buffer[at : at + count] = self._rest[:count]
            self._rest = self._rest[count:]
            at += count
        return at
