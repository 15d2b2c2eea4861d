"""CARs: blocks in a row."""

import io
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.shelves import raw
from trainyard.content.car import read_car, write_car
from trainyard.content.cid import Cid
from trainyard.content.errors import LimitExceededError, MalformedBlockError
from trainyard.content.limits import Limits
from trainyard.content.varint import write_varint

blocks = st.lists(st.binary(max_size=400).map(raw), max_size=6)

# `{"roots": [bafkqaaa], "version": 1}` as any DAG-CBOR writer writes it, and no block.
PROBE_CAR = bytes.fromhex("19a265726f6f747381d82a4500015500006776657273696f6e01")


def car_of(*sent: tuple[Cid, bytes]) -> bytes:
    return b"".join(write_car([sent[0][0]] if sent else [], sent))


@given(blocks)
def test_blocks_come_out_as_they_went_in(sent: list[tuple[Cid, bytes]]) -> None:
    assert list(read_car(io.BytesIO(car_of(*sent)))) == sent


def test_the_header_is_what_others_write() -> None:
    assert b"".join(write_car([Cid.parse("bafkqaaa")], [])) == PROBE_CAR


def test_nothing_is_verified_here() -> None:
    cid, _ = raw(b"right")

    assert list(read_car(io.BytesIO(car_of((cid, b"wrong"))))) == [(cid, b"wrong")]


@given(st.binary(min_size=1, max_size=300).map(raw), st.data())
def test_a_car_cut_anywhere_inside_a_block_is_noticed(
    sent: tuple[Cid, bytes], data: st.DataObject
) -> None:
    whole = car_of(sent)
    header = len(b"".join(write_car([sent[0]], [])))
    cut = whole[: data.draw(st.integers(header + 1, len(whole) - 1))]

    with pytest.raises(MalformedBlockError, match="cut short"):
        list(read_car(io.BytesIO(cut)))


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(MalformedBlockError, LimitExceededError):
        list(read_car(io.BytesIO(data)))


@pytest.mark.parametrize(
    ("data", "error", "why"),
    [
        (b"", MalformedBlockError, "empty answer"),
        (b"<html>", MalformedBlockError, "cut short"),
        (PROBE_CAR[:-1] + b"\x02", MalformedBlockError, "version 1"),
        (b"\xff\xff\xff\xff\x7f", LimitExceededError, "header"),
        (PROBE_CAR + b"\xff" * 20, MalformedBlockError, "endless"),
        (PROBE_CAR + b"\x80", MalformedBlockError, "in a length"),
        (PROBE_CAR + b"\x05hello", MalformedBlockError, "CID"),
        (PROBE_CAR + b"\x00", MalformedBlockError, "CID"),
    ],
)
def test_what_is_no_car_is_refused(data: bytes, error: type[Exception], why: str) -> None:
    with pytest.raises(error, match=why):
        list(read_car(io.BytesIO(data)))


def test_a_block_that_says_it_is_huge_is_never_read() -> None:
    class Watched(io.BytesIO):
        most = 0

        def read(self, size: int | None = -1, /) -> bytes:
            self.most = max(self.most, size or 0)
            return super().read(size)

    stream = Watched(PROBE_CAR + write_varint(2**40) + b"x")

    with pytest.raises(LimitExceededError, match="1099511627776 bytes"):
        list(read_car(stream, Limits(block_bytes=1000)))
    assert stream.most < 1000


def test_a_stream_may_come_in_crumbs() -> None:
    class Crumbs(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            return super().read(min(size or 1, 1))

    sent = [raw(b"one"), raw(b"two" * 50)]

    assert list(read_car(Crumbs(car_of(*sent)))) == sent
