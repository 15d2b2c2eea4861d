"""Content written to disk: resumed where it was cut off, and never outside its folder."""

import os
import random
from pathlib import Path

import pytest

from tests.unit.shelves import Blocks, Shelf, file_of, node, raw
from trainyard.content.build import build_directory
from trainyard.content.chunking import FixedChunker
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content, Progress
from trainyard.content.dag import Link
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import (
    InvalidPathError,
    MalformedBlockError,
    SourceError,
    StoreError,
    UnavailableError,
)
from trainyard.content.names import ContentPath
from trainyard.content.saving import part_of
from trainyard.content.unixfs import Kind, UnixFs

DATA = random.Random(9).randbytes(50_000)
FILE, BLOCKS = file_of(DATA, FixedChunker(100))
LEAVES = 500


class Dying(Shelf):
    """A source that is gone after so many answers."""

    def __init__(self, blocks: Blocks, answers: int) -> None:
        super().__init__(blocks, "dying")
        self._answers = answers

    def fetch(self, cid: Cid) -> bytes:
        if len(self.asked) >= self._answers:
            raise SourceError(self.name, "connection refused")
        return super().fetch(cid)


@pytest.fixture
def store(tmp_path: Path) -> EmbeddedStore:
    return EmbeddedStore(tmp_path / "store")


def tree_of(files: dict[str, bytes]) -> tuple[Cid, Blocks]:
    blocks: Blocks = {}
    entries = []
    for name, data in files.items():
        built, parts = file_of(data, FixedChunker(100))
        blocks |= parts
        entries.append((name, built))
    return build_directory(entries, blocks.__setitem__).cid, blocks


def get(content: Content, cid: Cid, target: Path) -> list[Progress]:
    seen: list[Progress] = []
    try:
        content.get(ContentPath(cid), target, progress=seen.append)
    finally:
        content.close()
    return seen


def test_a_file_arrives_whole_with_its_progress(store: EmbeddedStore, tmp_path: Path) -> None:
    seen = get(Content(store, [Shelf(BLOCKS)]), FILE.cid, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == DATA
    assert (seen[-1].done, seen[-1].total) == (len(DATA), len(DATA))
    assert not part_of(tmp_path / "out", FILE.cid).exists()


def test_a_get_that_was_cut_off_fetches_only_the_rest(store: EmbeddedStore, tmp_path: Path) -> None:
    target = tmp_path / "out"
    with pytest.raises(UnavailableError, match="dying: connection refused"):
        get(Content(store, [Dying(BLOCKS, 300)]), FILE.cid, target)
    assert not target.exists()
    arrived = part_of(tmp_path / "out", FILE.cid).stat().st_size // 100
    assert arrived > 200

    source = Shelf(BLOCKS)
    seen = get(Content(store, [source]), FILE.cid, target)

    assert target.read_bytes() == DATA
    assert not part_of(tmp_path / "out", FILE.cid).exists()
    leaves = {cid for cid in source.asked if cid != FILE.cid and len(BLOCKS[cid]) == 100}
    assert len(leaves) == LEAVES - arrived
    assert seen[0] == Progress(arrived * 100, len(DATA), "already here")
    assert seen[-1].done == len(DATA)


def test_what_was_tampered_with_meanwhile_is_fetched_again(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    part = part_of(tmp_path / "out", FILE.cid)
    part.write_bytes(DATA[:20_000] + b"tampered" + DATA[20_008:40_000])

    source = Shelf(BLOCKS)
    get(Content(store, [source]), FILE.cid, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == DATA


@pytest.mark.parametrize("there", [b"", b"something else", DATA + b"more", DATA[:777]])
def test_a_file_that_is_there_becomes_the_right_one(
    store: EmbeddedStore, tmp_path: Path, there: bytes
) -> None:
    (tmp_path / "out").write_bytes(there)

    get(Content(store, [Shelf(BLOCKS)]), FILE.cid, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == DATA


@pytest.mark.parametrize("there", [None, b"old"])
def test_the_empty_file_is_written(
    store: EmbeddedStore, tmp_path: Path, there: bytes | None
) -> None:
    if there is not None:
        (tmp_path / "out").write_bytes(there)
    cid, block = raw(b"")

    get(Content(store, [Shelf({cid: block})]), cid, tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == b""


def test_a_tree_that_was_cut_off_fetches_only_the_rest(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    files = {f"{number:03}": random.Random(number).randbytes(1000) for number in range(40)}
    root, blocks = tree_of(files)
    target = tmp_path / "tree"
    with pytest.raises(UnavailableError):
        get(Content(store, [Dying(blocks, 200)]), root, target)
    done = len(list(target.glob("???")))
    assert 5 < done < 40

    source = Shelf(blocks)
    get(Content(store, [source]), root, target)

    assert {path.name: path.read_bytes() for path in target.iterdir()} == files
    assert len([cid for cid in source.asked if len(blocks[cid]) == 100]) < (40 - done + 1) * 10


# --- Out of the folder


@pytest.mark.parametrize("name", ["..", ".", "", "../../out", "a/b", "/abs", "a\0b"])
def test_names_that_lead_out_are_not_written(
    store: EmbeddedStore, tmp_path: Path, name: str
) -> None:
    leaf, data = raw(b"evil")
    cid, block = node(UnixFs(Kind.DIRECTORY), Link(leaf, name, 4))
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)

    for target in (inside / "fresh", inside):
        with pytest.raises(InvalidPathError):
            get(Content(store, [Shelf({leaf: data, cid: block})]), cid, target)

    assert not [
        path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == data
    ]


def test_a_link_on_disk_is_not_followed(store: EmbeddedStore, tmp_path: Path) -> None:
    """A folder that somebody else can write to may hold links to what is not theirs."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    root, blocks = tree_of({"file": b"new content"})
    target = tmp_path / "tree"

    for name in ("file",):
        target.mkdir()
        os.symlink(victim, target / name)
        with pytest.raises((InvalidPathError, StoreError), match="link"):
            get(Content(store, [Shelf(blocks)]), root, target)
        (target / name).unlink()
        for left in target.iterdir():
            left.unlink()
        target.rmdir()

    assert victim.read_bytes() == b"precious"


def test_a_symbolic_link_in_a_tree_is_not_written(store: EmbeddedStore, tmp_path: Path) -> None:
    link, link_block = node(UnixFs(Kind.SYMLINK, b"/etc"))
    root, block = node(UnixFs(Kind.DIRECTORY), Link(link, "etc", 0))

    with pytest.raises(InvalidPathError, match="symbolic link"):
        get(Content(store, [Shelf({link: link_block, root: block})]), root, tmp_path / "tree")
    assert list((tmp_path / "tree").iterdir()) == []


def test_names_that_would_meet_in_one_part_file_are_both_right(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    """A file may be called like what stands beside another while it is written."""
    files = {"a": b"first", "a.part": b"second" * 100, "a.part.part": b"third"}
    root, blocks = tree_of(files)
    target = tmp_path / "tree"

    for _ in ("fresh", "again"):
        get(Content(store, [Shelf(blocks)]), root, target)
        assert {path.name: path.read_bytes() for path in target.iterdir()} == files


def test_a_file_where_a_folder_should_be_is_in_the_way(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    root, blocks = tree_of({"a": b"x"})
    (tmp_path / "tree").write_bytes(b"mine")

    with pytest.raises(InvalidPathError, match="in the way"):
        get(Content(store, [Shelf(blocks)]), root, tmp_path / "tree")
    assert (tmp_path / "tree").read_bytes() == b"mine"


def test_a_leaf_that_is_shorter_than_its_parent_says_is_refused_every_time(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    """What is missing at the end of a part is no empty leaf."""
    good, empty = Cid.of(Codec.RAW, b"good"), Cid.of(Codec.RAW, b"")
    about = UnixFs(Kind.FILE, file_size=1004, block_sizes=(4, 1000))
    root, block = node(about, Link(good, "", 4), Link(empty, "", 0))
    source = Shelf({good: b"good", empty: b"", root: block})

    for _ in range(2):
        with pytest.raises(MalformedBlockError):
            get(Content(store, [source]), root, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_there_stays_until_the_new_one_is_whole(
    store: EmbeddedStore, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    target.write_bytes(b"precious")

    with pytest.raises(UnavailableError):
        get(Content(store, [Dying(BLOCKS, 300)]), FILE.cid, target)

    assert target.read_bytes() == b"precious"


def test_the_longest_names_arrive(store: EmbeddedStore, tmp_path: Path) -> None:
    files = {"n" * 255: b"long", "m" * 251: b"less"}
    root, blocks = tree_of(files)

    get(Content(store, [Shelf(blocks)]), root, tmp_path / "tree")

    assert {path.name: path.read_bytes() for path in (tmp_path / "tree").iterdir()} == files
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith(".parts")] == []
