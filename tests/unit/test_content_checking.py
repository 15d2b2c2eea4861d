"""Going over a store's blocks: every one is read, and mended where somebody has a good one."""

import io
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.shelves import node, raw
from trainyard.content.checking import Ailment, discard_damaged
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content, Progress
from trainyard.content.dag import Link
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import LimitExceededError, MalformedBlockError
from trainyard.content.limits import Limits
from trainyard.content.names import ContentPath
from trainyard.content.unixfs import Kind, UnixFs

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
    counted: list[Progress] = []

    checkup = pair.alone.verify(ContentPath(root), progress=counted.append)

    assert (checkup.blocks, checkup.elsewhere, checkup.faults) == (6, 0, ())
    assert checkup.bytes == counted[-1].done > 5_000
    assert checkup.whole


@pytest.mark.parametrize("leaf", LEAVES, ids=range(5))
def test_damage_in_any_leaf_is_found_and_healed(pair: Pair, leaf: Cid) -> None:
    root = pair.add()
    pair.flip(leaf)

    (lost,) = pair.alone.verify(ContentPath(root)).faults
    (healed,) = pair.helped.verify(ContentPath(root)).faults

    assert (lost.cid, lost.ailment, lost.source, lost.healed) == (
        leaf,
        Ailment.DAMAGED,
        None,
        False,
    )
    assert (healed.cid, healed.source, healed.healed) == (leaf, pair.good.name, True)
    assert pair.alone.verify(ContentPath(root)).faults == ()


def test_all_faults_are_found_in_one_go(pair: Pair) -> None:
    root = pair.add()
    pair.flip(LEAVES[0])
    pair.file(LEAVES[3]).unlink()

    checkup = pair.alone.verify(ContentPath(root))

    assert {fault.cid: fault.ailment for fault in checkup.faults} == {
        LEAVES[0]: Ailment.DAMAGED,
        LEAVES[3]: Ailment.MISSING,
    }
    assert checkup.blocks == 4


def test_damaged_root_hides_what_is_below(pair: Pair) -> None:
    root = pair.add()
    pair.flip(root)

    assert pair.alone.verify(ContentPath(root)).blocks == 0
    assert pair.helped.verify(ContentPath(root)).blocks == 6


def test_missing_block_of_a_pinned_tree_is_put_back(pair: Pair) -> None:
    root = pair.add()
    pair.file(LEAVES[2]).unlink()

    (fault,) = pair.helped.verify(ContentPath(root)).faults

    assert (fault.ailment, fault.healed) == (Ailment.MISSING, True)
    assert pair.own.fetch(LEAVES[2]) == DATA[2_000:3_000]


def test_tree_that_is_kept_elsewhere_is_verified_there(pair: Pair) -> None:
    root = Content(pair.good).add(io.BytesIO(DATA), chunker=CHUNKER).cid

    checkup = pair.helped.verify(ContentPath(root))

    assert checkup.whole
    assert (checkup.blocks, checkup.elsewhere, checkup.faults) == (6, 6, ())
    assert pair.own.usage().blocks == 0


def test_discarded_block_can_be_added_again(pair: Pair) -> None:
    root = pair.add()
    pair.flip(LEAVES[1])
    checkup = pair.alone.verify(ContentPath(root))

    assert discard_damaged(pair.own, checkup) == 1
    assert pair.add() == root
    assert pair.alone.verify(ContentPath(root)).faults == ()


def test_more_nodes_than_allowed_stop_it(pair: Pair) -> None:
    data = io.BytesIO(random.Random(1).randbytes(2_000))
    root = pair.alone.add(data, chunker=FixedChunker(10)).cid
    narrow = Content(pair.own, limits=Limits(nodes=2))

    with pytest.raises(LimitExceededError, match="over 2 nodes"):
        narrow.verify(ContentPath(root))


LEAF, LEAF_BLOCK = raw(b"leaf")


@pytest.mark.parametrize(
    ("sizes", "links"),
    [((5,), 1), ((4, 5), 2), ((4,), 2), ((4, 4), 1)],
    ids=["a wrong size", "two sizes", "a size too few", "a size too many"],
)
def test_good_blocks_that_make_up_no_file_are_told(
    pair: Pair, sizes: tuple[int, ...], links: int
) -> None:
    root, block = node(
        UnixFs(Kind.FILE, file_size=sum(sizes), block_sizes=sizes), *[Link(LEAF, "", 4)] * links
    )
    with pair.own.batch() as batch:
        batch.put(LEAF, LEAF_BLOCK)
        batch.put(root, block)
        batch.pin(root)

    with pytest.raises(MalformedBlockError, match=r"bytes|sizes"):
        pair.alone.verify(ContentPath(root))


def test_a_leaf_that_stands_in_files_and_in_a_folder_is_fine(pair: Pair, tmp_path: Path) -> None:
    for name in ("a", "b", "c/d"):
        (tmp_path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "tree" / name).write_bytes(DATA[:1_000] * len(name))
    root = pair.alone.add(tmp_path / "tree", chunker=CHUNKER).cid

    assert pair.alone.verify(ContentPath(root)).faults == ()
