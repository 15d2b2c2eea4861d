"""Where a stream is cut."""

import io
import random
from itertools import pairwise
from typing import BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.content.chunking import Chunker, FixedChunker, GearChunker, parse_chunker
from trainyard.content.limits import KIB, MIB

GEAR = GearChunker(KIB)


class Dribble(io.RawIOBase):
    """A stream that gives less than it is asked for, as pipes and sockets do."""

    def __init__(self, data: bytes, seed: int) -> None:
        self._data, self._at, self._random = data, 0, random.Random(seed)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        count = self._random.randint(1, max(1, min(size, 70_000)))
        part = self._data[self._at : self._at + min(count, size)]
        self._at += len(part)
        return part


def noise(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def cut(chunker: Chunker, data: bytes) -> list[bytes]:
    return list(chunker.cut(io.BytesIO(data)))


@given(st.binary(max_size=5000), st.integers(1, 700))
def test_fixed_chunks_are_full_but_the_last(data: bytes, size: int) -> None:
    chunks = cut(FixedChunker(size), data)

    assert b"".join(chunks) == data
    assert all(len(chunk) == size for chunk in chunks[:-1])
    assert all(0 < len(chunk) <= size for chunk in chunks)


@given(st.binary(max_size=30_000))
def test_gear_chunks_keep_their_bounds(data: bytes) -> None:
    chunks = cut(GEAR, data)

    assert b"".join(chunks) == data
    assert all(KIB // 4 <= len(chunk) <= 4 * KIB for chunk in chunks[:-1])
    assert all(0 < len(chunk) <= 4 * KIB for chunk in chunks)


def test_gear_cuts_about_where_it_says() -> None:
    chunks = cut(GEAR, noise(4 * MIB))

    assert KIB / 2 < 4 * MIB / len(chunks) < 2 * KIB


@pytest.mark.parametrize("content", [bytes(300_000), b"\xff" * 300_000, b"ab" * 150_000])
def test_gear_cuts_monotonous_content_by_its_bounds(content: bytes) -> None:
    assert all(KIB // 4 <= len(chunk) <= 4 * KIB for chunk in cut(GEAR, content)[:-1])


@pytest.mark.parametrize("chunker", [FixedChunker(1000), GEAR, GearChunker(256 * KIB)], ids=str)
def test_the_cut_does_not_depend_on_how_the_stream_comes(chunker: Chunker) -> None:
    data = noise(5 * MIB + 12_345)

    dribbled = list(chunker.cut(cast(BinaryIO, Dribble(data, 1))))

    assert dribbled == cut(chunker, data)


@pytest.mark.parametrize("at", [0, 1, 100_000, 999_999])
@pytest.mark.parametrize("inserted", [b"!", b"some more bytes in front", bytes(5000)])
def test_gear_finds_its_cuts_again_after_a_shift(at: int, inserted: bytes) -> None:
    data = noise(MIB)
    before = cut(GEAR, data)

    after = cut(GEAR, data[:at] + inserted + data[at:])

    new = set(after) - set(before)
    assert sum(map(len, new)) < len(inserted) + 32 * KIB


def test_fixed_chunks_lose_everything_after_a_shift() -> None:
    """What the gear chunker is for."""
    data = noise(MIB)

    after = cut(FixedChunker(KIB), b"!" + data)

    assert not set(after) & set(cut(FixedChunker(KIB), data))


def test_gear_cuts_by_content_alone_across_its_reads() -> None:
    """A cut near the seam of two reads falls where it would fall in one."""
    data = noise(9 * MIB, 5)
    ends = _ends(cut(GearChunker(64 * KIB), data))
    shifted = [end - 4096 for end in _ends(cut(GearChunker(64 * KIB), noise(4096, 6) + data))]

    common = set(ends) & set(shifted)
    assert len(common) > 0.9 * len(ends)


def _ends(chunks: list[bytes]) -> list[int]:
    ends = [0]
    for chunk in chunks:
        ends.append(ends[-1] + len(chunk))
    assert all(first < second for first, second in pairwise(ends))
    return ends[1:]


@pytest.mark.parametrize("text", ["size-262144", "size-1048576", "gear-65536", "gear-1024"])
def test_a_chunker_is_written_as_it_is_read(text: str) -> None:
    assert str(parse_chunker(text)) == text


def test_a_bare_kind_has_its_default() -> None:
    assert parse_chunker("size") == FixedChunker()
    assert parse_chunker("gear") == GearChunker()


@pytest.mark.parametrize(
    "text",
    ["", "rabin", "size-0", "size--1", "size-2097152", "gear-1000", "gear-512", "gear-1e3"],
)
def test_what_is_no_chunker_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"chunk"):
        parse_chunker(text)
