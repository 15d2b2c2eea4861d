"""Blocks from whoever has them: failover, hedging, streams that lie, stores that heal."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.unit.shelves import Blocks, Shelf, SilentShelf, Tape, file_of, raw, walk_over
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import (
    BlockNotFoundError,
    CorruptBlockError,
    SourceError,
    SourceTimeoutError,
    UnavailableError,
)
from trainyard.content.fetching import Fetcher
from trainyard.content.limits import KIB
from trainyard.content.names import ContentPath

CID, BLOCK = raw(b"block")


class Failing(Shelf):
    def __init__(self, error: Exception, name: str = "failing") -> None:
        super().__init__({}, name)
        self._error = error

    def fetch(self, cid: Cid) -> bytes:
        self.asked.append(cid)
        raise self._error


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return EmbeddedStore(tmp_path / "store")


def put(store: EmbeddedStore, blocks: Blocks) -> None:
    with store.batch() as batch:
        for cid, block in blocks.items():
            batch.put(cid, block)


def block_file(store: EmbeddedStore, cid: Cid) -> Path:
    return next(store.root.glob(f"blocks/*/{cid.digest.hex()}"))


# --- One after the other


def test_the_next_source_is_asked_where_one_fails() -> None:
    bad = {
        "flipped": Shelf({CID: b"Block"}, "flipped"),
        "oversized": Shelf({CID: bytes(3 * 1024 * KIB)}, "oversized"),
        "without": Shelf({}, "without"),
        "broken": Failing(SourceError("broken", "connection refused"), "broken"),
        "late": Failing(SourceTimeoutError("late", "silent for 1 s"), "late"),
    }
    good = Shelf({CID: BLOCK}, "good")

    for source in bad.values():
        fetcher = Fetcher(None, [source, good])
        arrived = fetcher.get(CID)
        fetcher.close()

        assert (arrived.block, arrived.source) == (BLOCK, "good")


def test_the_error_says_what_each_source_did() -> None:
    sources = [
        Shelf({CID: b"Block"}, "flipped"),
        Shelf({}, "without"),
        Failing(SourceTimeoutError("late", "silent for 1 s"), "late"),
    ]
    fetcher = Fetcher(None, sources)

    with pytest.raises(UnavailableError) as caught:
        fetcher.get(CID)

    fetcher.close()
    said = str(caught.value)
    assert str(CID) in said
    for part in ("flipped sent a corrupt block", "without does not have", "late: silent for 1 s"):
        assert part in said
    assert caught.value.corrupt
    assert caught.value.timed_out


def test_no_source_is_said_so() -> None:
    with pytest.raises(UnavailableError, match="no source is configured"):
        Fetcher(None).get(CID)


def test_whoever_failed_is_asked_last_from_then_on() -> None:
    other, other_block = raw(b"other")
    bad, good = Shelf({CID: b"bad", other: b"bad"}, "bad"), Shelf({CID: BLOCK, other: other_block})
    fetcher = Fetcher(None, [bad, good])

    fetcher.get(CID)
    fetcher.get(other)

    fetcher.close()
    assert bad.asked == [CID]


def test_whoever_merely_lacks_a_block_keeps_its_place() -> None:
    first, second = Shelf({}, "first"), Shelf({CID: BLOCK}, "second")
    fetcher = Fetcher(None, [first, second])

    fetcher.get(CID)

    fetcher.close()
    assert [source.name for source in fetcher.ranked_sources()] == ["first", "second"]


def test_our_own_store_is_asked_first(store: EmbeddedStore) -> None:
    put(store, {CID: BLOCK})
    source = Shelf({CID: BLOCK})

    assert Fetcher(store, [source]).get(CID).source == store.name
    assert source.asked == []


# --- Beside each other


def test_a_second_source_is_asked_beside_a_silent_one() -> None:
    silent, good = SilentShelf({CID: BLOCK}), Shelf({CID: BLOCK}, "good")
    fetcher = Fetcher(None, [silent, good], hedge_s=0.01)

    arrived = fetcher.get(CID)

    silent.released.set()
    fetcher.close()
    assert arrived.source == "good"


def test_a_silent_source_does_not_win_by_a_wrong_answer() -> None:
    silent, wrong = SilentShelf({CID: BLOCK}), Shelf({CID: b"wrong"}, "wrong")
    fetcher = Fetcher(None, [silent, wrong], hedge_s=0.01)
    wrong_asked = wrong.fetch

    def answer_then_release(cid: Cid) -> bytes:
        silent.released.set()
        return wrong_asked(cid)

    wrong.fetch = answer_then_release  # type: ignore[method-assign]

    assert fetcher.get(CID).source == "silent"
    fetcher.close()


# --- Healing


def test_a_block_that_went_bad_is_healed_from_a_source(store: EmbeddedStore) -> None:
    put(store, {CID: BLOCK})
    block_file(store, CID).write_bytes(b"rot")
    fetcher = Fetcher(store, [Shelf({CID: BLOCK}, "good")])

    assert fetcher.get(CID).source == "good"
    assert store.fetch(CID) == BLOCK
    assert fetcher.get(CID).source == store.name


def test_a_block_that_went_bad_with_nobody_else_is_data_loss(store: EmbeddedStore) -> None:
    put(store, {CID: BLOCK})
    block_file(store, CID).write_bytes(b"")

    for sources in ([], [Shelf({}, "without")]):
        with pytest.raises(UnavailableError, match="sent a corrupt block") as caught:
            Fetcher(store, sources).get(CID)
        assert caught.value.corrupt
        assert store.name in str(caught.value)


def test_a_block_that_rotted_is_not_healed_by_another_rotten_one(store: EmbeddedStore) -> None:
    put(store, {CID: BLOCK})
    block_file(store, CID).write_bytes(b"rot")

    with pytest.raises(UnavailableError):
        Fetcher(store, [Shelf({CID: b"also rotten"})]).get(CID)
    assert store.fetch(CID) == b"rot"


# --- Streams


FILE, FILE_BLOCKS = file_of(bytes(range(256)) * 200, FixedChunker(100))
DATA = bytes(range(256)) * 200


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
