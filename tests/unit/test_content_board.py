"""What anybody may put up: for a while, and never so much that others have no room."""

import pytest

from trainyard.content.board import LARGEST_BYTES, Board, Bounds, NotTakenError, TooManyError
from trainyard.content.cid import Cid, Codec, HashFunction
from trainyard.content.errors import BlockNotFoundError

HOUR_S = 3600.0


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def put(board: Board, text: str, giver: str = "192.0.2.1") -> Cid:
    cid = Cid.of(Codec.RAW, text.encode())
    board.put(cid, text.encode(), giver)
    return cid


def kept(board: Board, *cids: Cid) -> list[bool]:
    found = []
    for cid in cids:
        try:
            found.append(cid.matches(board.fetch(cid)))
        except BlockNotFoundError:
            found.append(False)
    return found


def test_block_is_there_for_an_hour_after_it_was_last_put_up() -> None:
    clock = Clock()
    board = Board(clock=clock)
    one, other = put(board, "one"), put(board, "other")
    clock.now = HOUR_S - 1
    put(board, "one")
    assert kept(board, one, other) == [True, True]
    clock.now = HOUR_S
    assert kept(board, one, other) == [True, False]
    assert len(board) == 1
    clock.now = 2 * HOUR_S
    assert kept(board, one) == [False]


@pytest.mark.parametrize(
    ("cid", "block"),
    [
        (Cid.of(Codec.RAW, b"a"), b"b"),
        (Cid.of(Codec.DAG_PB, b"a"), b"a"),
        (Cid(Codec.RAW, b"a", HashFunction.IDENTITY), b"a"),
        (Cid.of(Codec.RAW, bytes(LARGEST_BYTES + 1)), bytes(LARGEST_BYTES + 1)),
    ],
)
def test_what_is_no_small_raw_block_is_not_taken(cid: Cid, block: bytes) -> None:
    board = Board()
    with pytest.raises(NotTakenError):
        board.put(cid, block, "192.0.2.1")
    assert len(board) == 0


def test_who_puts_up_many_loses_its_own() -> None:
    board = Board(Bounds(blocks_each=3))
    honest = put(board, "honest")
    flood = [put(board, f"{number}", "192.0.2.66") for number in range(10)]

    assert kept(board, honest) == [True]
    assert kept(board, *flood) == [False] * 7 + [True] * 3


def test_full_board_takes_from_who_has_the_most() -> None:
    board = Board(Bounds(blocks=4, blocks_each=4))
    honest = put(board, "honest")
    flood = [put(board, f"{number}", "192.0.2.66") for number in range(3)]
    late = put(board, "late", "192.0.2.2")

    assert len(board) == 4
    assert kept(board, honest, late, *flood) == [True, True, False, True, True]


def test_addresses_of_one_network_are_one_giver() -> None:
    board = Board(Bounds(blocks_each=2))
    mine = [put(board, f"{number}", f"2001:db8::{number}") for number in range(3)]
    other = put(board, "other", "2001:db8:0:1::1")

    assert kept(board, *mine, other) == [False, True, True, True]


def test_in_a_minute_only_so_many_are_taken() -> None:
    clock = Clock()
    board = Board(Bounds(puts_a_minute=2, givers_a_minute=2), clock=clock)
    for _ in range(2):
        put(board, "mine")
    with pytest.raises(TooManyError):
        put(board, "mine")
    put(board, "other", "192.0.2.2")
    with pytest.raises(TooManyError):
        put(board, "third", "192.0.2.3")
    clock.now = 60.0
    put(board, "mine")
    put(board, "third", "192.0.2.3")
