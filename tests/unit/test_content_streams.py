"""Blocks out of streams that are cut, lie, never end, or stand still."""

import random
import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.unit.shelves import Shelf, Tape, file_of, raw, walk_over
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content, Progress
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import (
    BlockNotFoundError,
    CorruptBlockError,
    SourceError,
    UnavailableError,
)
from trainyard.content.names import ContentPath


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return EmbeddedStore(tmp_path / "store")


DATA = random.Random(9).randbytes(51_200)
FILE, FILE_BLOCKS = file_of(DATA, FixedChunker(100))


def dfs(root: Cid) -> Iterator[tuple[Cid, bytes]]:
    return ((cid, block) for cid, block, _ in walk_over(FILE_BLOCKS).blocks(root))


def streamed(store: EmbeddedStore, tape: Tape, *others: Shelf) -> bytes:
    content = Content(store, [tape, *others])
    data = b"".join(bytes(part) for part in content.cat(ContentPath(FILE.cid)))
    content.close()
    return data


def test_a_whole_file_comes_in_one_stream(store: EmbeddedStore) -> None:
    tape = Tape(FILE_BLOCKS, dfs(FILE.cid))

    assert streamed(store, tape) == DATA
    assert len(tape.asked) == 1  # a look at the root


def test_a_stream_that_is_cut_is_gone_on_with_singly(store: EmbeddedStore) -> None:
    def cut() -> Iterator[tuple[Cid, bytes]]:
        for number, sent in enumerate(dfs(FILE.cid)):
            if number == 100:
                raise SourceError("tape", "connection reset")
            yield sent

    assert streamed(store, Tape(FILE_BLOCKS, cut())) == DATA


def test_a_stream_that_lies_is_left_for_the_next_source(store: EmbeddedStore) -> None:
    wrong = {cid: block[::-1] for cid, block in FILE_BLOCKS.items()}
    lies = ((cid, wrong[cid]) for cid, _ in dfs(FILE.cid))

    assert streamed(store, Tape(wrong, lies), Shelf(FILE_BLOCKS, "good")) == DATA


def test_a_stream_that_lies_alone_is_an_error_that_names_it(store: EmbeddedStore) -> None:
    wrong = {cid: block if cid == FILE.cid else block[::-1] for cid, block in FILE_BLOCKS.items()}
    lies = ((cid, wrong[cid]) for cid, _ in dfs(FILE.cid))

    with pytest.raises(UnavailableError, match="tape sent a corrupt block"):
        streamed(store, Tape(wrong, lies))


@pytest.mark.parametrize(
    "junk",
    [
        (raw(b"") for _ in count()),
        (raw(number.to_bytes(8, "big")) for number in count()),
        (raw(number.to_bytes(8, "big") + bytes(5000)) for number in count()),
    ],
    ids=["nothing", "crumbs", "blocks"],
)
def test_a_stream_of_junk_without_end_is_left(
    store: EmbeddedStore, junk: Iterator[tuple[Cid, bytes]]
) -> None:
    """Every block of it is what it says, and none of it was asked for."""
    assert streamed(store, Tape(FILE_BLOCKS, junk)) == DATA


def test_blocks_in_another_order_are_kept_until_wanted(store: EmbeddedStore) -> None:
    backwards = iter(list(dfs(FILE.cid))[::-1])
    tape = Tape(FILE_BLOCKS, backwards)

    assert streamed(store, tape) == DATA
    assert len(tape.asked) == 1


def test_a_block_that_stands_twice_is_asked_for_rarely(store: EmbeddedStore) -> None:
    """Zeros in a row are one block: a stream sends it once, and need not be asked again."""
    zeros, blocks = file_of(bytes(100_000), FixedChunker(100))
    tape = Tape(blocks, iter(blocks.items()))
    content = Content(store, [tape])

    data = b"".join(bytes(part) for part in content.cat(ContentPath(zeros.cid)))

    content.close()
    assert data == bytes(100_000)
    assert len(tape.asked) < 5


def test_what_nobody_has_ends_with_an_error(store: EmbeddedStore) -> None:
    withheld = {cid: block for cid, block in FILE_BLOCKS.items() if cid != list(FILE_BLOCKS)[5]}
    tape = Tape(withheld, iter(withheld.items()))

    with pytest.raises(UnavailableError, match="tape does not have") as caught:
        streamed(store, tape)
    assert caught.value.cid == list(FILE_BLOCKS)[5]
    assert all(isinstance(failure, BlockNotFoundError) for failure in caught.value.failures)
    assert not any(isinstance(failure, CorruptBlockError) for failure in caught.value.failures)


# --- From one stream to the next


class Library(Shelf):
    """A source that streams whatever it is asked for."""

    def __init__(self, name: str = "library") -> None:
        super().__init__(FILE_BLOCKS, name)
        self.streamed: list[Cid] = []

    def stream(self, root: Cid) -> Iterator[tuple[Cid, bytes]]:
        self.streamed.append(root)
        yield from dfs(root)


NODES = [cid for cid, _ in dfs(FILE.cid) if cid.codec is Codec.DAG_PB]


def test_after_a_stream_broke_off_another_source_streams_what_is_left(
    store: EmbeddedStore,
) -> None:
    """The file has three inner nodes, and the stream ends in the leaves of the first."""

    def cut() -> Iterator[tuple[Cid, bytes]]:
        for number, sent in enumerate(dfs(FILE.cid)):
            if number == 100:
                raise SourceError("tape", "connection reset")
            yield sent

    library = Library()

    assert len(NODES) == 4
    assert streamed(store, Tape(FILE_BLOCKS, cut()), library) == DATA
    assert library.streamed == NODES[2:]
    assert len(library.asked) < 100


def test_a_stream_that_broke_at_its_first_block_is_asked_of_another(store: EmbeddedStore) -> None:
    def nothing() -> Iterator[tuple[Cid, bytes]]:
        raise SourceError("tape", "connection reset")
        yield

    library = Library()

    assert streamed(store, Tape({}, nothing()), library) == DATA
    assert library.streamed[0] in (FILE.cid, NODES[1])


def test_a_stream_that_stands_still_is_left_for_the_next_source(store: EmbeddedStore) -> None:
    """It never fails, so only the others' being quicker can end it."""
    moving = threading.Event()

    def stalled() -> Iterator[tuple[Cid, bytes]]:
        for number, sent in enumerate(dfs(FILE.cid)):
            if number == 100:
                moving.wait()
            yield sent

    tape, library = Tape(FILE_BLOCKS, stalled()), Library()
    content = Content(store, [tape, library], hedge_s=0.05)
    seen: list[Progress] = []
    data = b"".join(content.cat(ContentPath(FILE.cid), progress=seen.append))

    moving.set()
    content.close()
    assert data == DATA
    assert seen[-1].asked_last == ("tape",)
    assert library.streamed == NODES[2:]


def test_a_stream_that_stands_still_is_waited_for_where_nobody_else_has_it(
    store: EmbeddedStore,
) -> None:
    moving = threading.Event()

    class Without(Shelf):
        def fetch(self, cid: Cid) -> bytes:
            moving.set()
            return super().fetch(cid)

    def stalled() -> Iterator[tuple[Cid, bytes]]:
        for number, sent in enumerate(dfs(FILE.cid)):
            if number == 100:
                moving.wait()
            yield sent

    tape = Tape(FILE_BLOCKS, stalled())
    content = Content(store, [tape, Without({}, "without")], hedge_s=0.01)

    assert b"".join(content.cat(ContentPath(FILE.cid))) == DATA

    content.close()
    assert content.fetcher.asked_last() == ()
    assert len(tape.asked) == 1
