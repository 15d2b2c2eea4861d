"""Blocks from whoever has them: failover, hedging, stores that heal."""

from pathlib import Path

import pytest

from tests.unit.shelves import Blocks, Shelf, SilentShelf, file_of, raw
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid
from trainyard.content.content import Content, Progress
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import (
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


def test_whoever_is_slow_is_asked_last_from_then_on() -> None:
    other, other_block = raw(b"other")
    both = {CID: BLOCK, other: other_block}
    silent, good = SilentShelf(both), Shelf(both, "good")
    fetcher = Fetcher(None, [silent, good], hedge_s=0.01)

    fetcher.get(CID)
    arrived = fetcher.get(other)

    asked_last, ranked = fetcher.asked_last(), [each.name for each in fetcher.ranked_sources()]
    silent.released.set()
    fetcher.close()
    assert asked_last == ("silent",)
    assert ranked == ["good", "silent"]
    assert arrived.source == "good"
    assert good.asked == [CID, other]


def test_whoever_times_out_is_named_and_asked_last() -> None:
    late = Failing(SourceTimeoutError("late", "silent for 1 s"), "late")
    fetcher = Fetcher(None, [late, Shelf({}, "without")])

    with pytest.raises(UnavailableError, match="late: silent for 1 s"):
        fetcher.get(CID)

    fetcher.close()
    assert fetcher.asked_last() == ("late",)


def test_progress_names_who_is_slow(store: EmbeddedStore) -> None:
    file, blocks = file_of(bytes(1000), FixedChunker(100))
    silent = SilentShelf(blocks)
    content = Content(store, [silent, Shelf(blocks, "good")], hedge_s=0.01)
    seen: list[Progress] = []

    for _ in content.cat(ContentPath(file.cid), progress=seen.append):
        pass

    silent.released.set()
    content.close()
    assert (seen[-1].source, seen[-1].asked_last) == ("good", ("silent",))


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
