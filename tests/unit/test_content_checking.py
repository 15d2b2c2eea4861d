"""Going over a store's blocks: every one is read, and mended where somebody has a good one."""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from trainyard.content.checking import Ailment, check_blocks, discard_damaged
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import LimitExceededError
from trainyard.content.limits import Limits

DATA = random.Random(2).randbytes(5_000)
CHUNKER = FixedChunker(1_000)


class Pair:
    """Our store, with a good one as its source."""

    def __init__(self, folder: Path) -> None:
        self.own, self.good = EmbeddedStore(folder / "own"), EmbeddedStore(folder / "good")
        self.alone, self.helped = Content(self.own), Content(self.own, [self.good])

    def add(self) -> Cid:
        Content(self.good).add(io.BytesIO(DATA), chunker=CHUNKER)
        return self.alone.add(io.BytesIO(DATA), chunker=CHUNKER).cid

    def file(self, cid: Cid) -> Path:
        name = cid.digest.hex()
        return self.own.root / "blocks" / name[:2] / name

    def flip(self, cid: Cid) -> None:
        data = bytearray(self.file(cid).read_bytes())
        data[-1] ^= 0x10
        self.file(cid).write_bytes(data)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    made.alone.close()
    made.helped.close()


LEAVES = [Cid.of(Codec.RAW, DATA[at : at + 1_000]) for at in range(0, 5_000, 1_000)]


def test_whole_tree_has_no_fault(pair: Pair) -> None:
    root = pair.add()
    counted: list[int] = []

    checkup = check_blocks(pair.alone.fetcher, root, keep=True, advance=counted.append)

    assert (checkup.blocks, checkup.elsewhere, checkup.faults) == (6, 0, ())
    assert checkup.bytes == sum(counted) > 5_000


@pytest.mark.parametrize("leaf", LEAVES, ids=range(5))
def test_damage_in_any_leaf_is_found_and_healed(pair: Pair, leaf: Cid) -> None:
    root = pair.add()
    pair.flip(leaf)

    (lost,) = check_blocks(pair.alone.fetcher, root, keep=True).faults
    (healed,) = check_blocks(pair.helped.fetcher, root, keep=True).faults

    assert (lost.cid, lost.ailment, lost.source, lost.healed) == (
        leaf,
        Ailment.DAMAGED,
        None,
        False,
    )
    assert (healed.cid, healed.source, healed.healed) == (leaf, pair.good.name, True)
    assert check_blocks(pair.alone.fetcher, root, keep=True).faults == ()


def test_all_faults_are_found_in_one_go(pair: Pair) -> None:
    root = pair.add()
    pair.flip(LEAVES[0])
    pair.file(LEAVES[3]).unlink()

    checkup = check_blocks(pair.alone.fetcher, root, keep=True)

    assert {fault.cid: fault.ailment for fault in checkup.faults} == {
        LEAVES[0]: Ailment.DAMAGED,
        LEAVES[3]: Ailment.MISSING,
    }
    assert checkup.blocks == 4


def test_damaged_root_hides_what_is_below(pair: Pair) -> None:
    root = pair.add()
    pair.flip(root)

    assert check_blocks(pair.alone.fetcher, root, keep=True).blocks == 0
    assert check_blocks(pair.helped.fetcher, root, keep=True).blocks == 6


def test_missing_block_of_a_pinned_tree_is_put_back(pair: Pair) -> None:
    root = pair.add()
    pair.file(LEAVES[2]).unlink()

    (fault,) = check_blocks(pair.helped.fetcher, root, keep=True).faults

    assert (fault.ailment, fault.healed) == (Ailment.MISSING, True)
    assert pair.own.fetch(LEAVES[2]) == DATA[2_000:3_000]


def test_tree_that_is_kept_elsewhere_is_verified_there(pair: Pair) -> None:
    root = Content(pair.good).add(io.BytesIO(DATA), chunker=CHUNKER).cid

    checkup = check_blocks(pair.helped.fetcher, root, keep=False)

    assert (checkup.blocks, checkup.elsewhere, checkup.faults) == (6, 6, ())
    assert pair.own.usage().blocks == 0


def test_discarded_block_can_be_added_again(pair: Pair) -> None:
    root = pair.add()
    pair.flip(LEAVES[1])
    checkup = check_blocks(pair.alone.fetcher, root, keep=True)

    assert discard_damaged(pair.own, checkup) == 1
    assert pair.add() == root
    assert check_blocks(pair.alone.fetcher, root, keep=True).faults == ()


def test_more_nodes_than_allowed_stop_it(pair: Pair) -> None:
    data = io.BytesIO(random.Random(1).randbytes(2_000))
    root = pair.alone.add(data, chunker=FixedChunker(10)).cid
    narrow = Content(pair.own, limits=Limits(nodes=2))

    with pytest.raises(LimitExceededError, match="over 2 nodes"):
        check_blocks(narrow.fetcher, root, keep=True)
