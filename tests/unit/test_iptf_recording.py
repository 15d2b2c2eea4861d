"""What a gate tells the reflog of files and directories that can still change."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.iptf.cache import Cache
from trainyard.iptf.files import OpenFiles
from trainyard.iptf.intervals import Intervals
from trainyard.iptf.mfs import Mfs
from trainyard.iptf.recording import Recorder
from trainyard.iptf.reflog import Read, Reflog
from trainyard.iptf.tree import MutablePath, Tree, mutable


@dataclass(frozen=True)
class Desk:
    """A recorder over real files, and one run of it."""

    tree: Tree
    files: OpenFiles
    reflog: Reflog
    recorder: Recorder
    run: int

    def put(self, path: str, data: str) -> None:
        """Write a file behind the run's back."""
        target = self.tree.mfs.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(data)

    def write(self, path: str, data: str, *, append: bool = False) -> None:
        place = _place(path)
        fd, position = self.tree.mfs.create(place.names, append=append)
        with open(fd, "w") as file:
            self.recorder.wrote(self.run, place, position)
            file.write(data)

    def rename(self, source: str, target: str) -> None:
        own = self.recorder.renaming(self.run, _place(source), _place(target))
        self.tree.mfs.rename(_place(source).names, _place(target).names)
        self.recorder.renamed(self.run, _place(source), _place(target), own=own)

    def make_dir(self, path: str) -> None:
        there = self.tree.mfs.make_dir(_place(path).names, parents=True)
        self.recorder.made(self.run, _place(path), there)

    def read(self, path: str) -> None:
        uri = str(_place(path))
        opened, fd, _, _ = self.files.open(uri, 1)
        os.close(fd)
        self.recorder.opened(self.run, uri, opened.cid, opened.size)
        self.files.release(opened.handle)

    def held(self, read: Read) -> str:
        """What is stored of a read."""
        return b"".join(self.tree.content.cat(ContentPath.parse(read.cid))).decode()

    def own(self) -> dict[tuple[str, str], bool]:
        reads = self.reflog.reads(self.run)
        return {(read.uri.removeprefix("iptf://mfs/"), self.held(read)): read.own for read in reads}


def _place(path: str) -> MutablePath:
    return mutable(f"iptf://mfs/{path}")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    tree = Tree(Content(EmbeddedStore(tmp_path / "store")), Mfs(tmp_path / "mfs"))
    files = OpenFiles(tree, Cache(tmp_path / "cache", 1 << 20))
    reflog = Reflog(tmp_path / "reflog.sqlite")
    run = reflog.begin_run(["python"], "/work")
    yield Desk(tree, files, reflog, Recorder(tree, files, reflog), run)
    reflog.close()


def test_what_is_appended_to_was_read_and_only_the_rest_is_own(desk: Desk) -> None:
    desk.put("log", "one")
    desk.write("log", " two", append=True)
    desk.write("log", " three", append=True)
    desk.read("log")

    assert desk.own() == {("log", "one"): False, ("log", "one two three"): True}


def test_what_is_begun_by_appending_is_own(desk: Desk) -> None:
    desk.write("log", "one", append=True)
    desk.read("log")

    assert desk.own() == {("log", "one"): True}


def test_a_move_makes_nothing_own_that_was_not(desk: Desk) -> None:
    desk.put("theirs", "theirs")
    desk.write("mine", "mine")
    desk.rename("theirs", "a")
    desk.rename("mine", "b")
    desk.read("a")
    desk.read("b")

    assert desk.own() == {
        ("theirs", "theirs"): False,
        ("a", "theirs"): False,
        ("b", "mine"): True,
    }
    assert list(desk.reflog.moves(desk.run)) == ["iptf://mfs/a"]


def test_of_a_directory_that_is_moved_each_file_stays_what_it_is(desk: Desk) -> None:
    desk.put("old/theirs", "theirs")
    desk.put("old/deep/more", "more")
    desk.write("old/mine", "mine")
    desk.rename("old", "new")
    for name in ("theirs", "deep/more", "mine"):
        desk.read(f"new/{name}")

    assert desk.own() == {
        ("old/theirs", "theirs"): False,
        ("old/deep/more", "more"): False,
        ("new/theirs", "theirs"): False,
        ("new/deep/more", "more"): False,
        ("new/mine", "mine"): True,
    }
    assert desk.reflog.found_folders(desk.run) == ["iptf://mfs/old", "iptf://mfs/old/deep"]


def test_a_listing_names_what_was_there_and_not_what_the_run_put_there(desk: Desk) -> None:
    desk.put("folder/theirs", "x")
    desk.put("folder/below/theirs", "x")
    desk.put("elsewhere", "x")
    desk.write("folder/mine", "x")
    desk.write("folder/below/mine", "x")
    desk.make_dir("folder/made")
    desk.rename("elsewhere", "folder/moved")
    desk.recorder.listed(desk.run, "iptf://mfs/folder/")

    (read,) = (read for read in desk.reflog.reads(desk.run) if read.uri == "iptf://mfs/folder")
    entries = desk.tree.content.ls(ContentPath.parse(read.cid))
    assert [(entry.name, entry.size) for entry in entries] == [("below", 0), ("theirs", 0)]
    assert not read.own


def test_a_directory_under_a_cid_is_logged_when_it_is_listed(desk: Desk) -> None:
    desk.put("folder/a", "x")
    cid = desk.tree.content.add(desk.tree.mfs.root).cid
    desk.recorder.listed(desk.run, f"iptf://ipfs/{cid}//folder")

    (read,) = desk.reflog.reads(desk.run)
    assert read.uri == f"ipfs://{cid}/folder"
    assert read.cid == str(desk.tree.stat(read.uri).cid)


def test_directories_are_found_or_made_and_what_was_first_counts(desk: Desk) -> None:
    desk.put("there/file", "x")
    desk.make_dir("there/new/newer")
    desk.recorder.found(desk.run, _place("there/new"))
    desk.recorder.found(desk.run, MutablePath())

    assert desk.reflog.found_folders(desk.run) == ["iptf://mfs/there"]
    assert desk.reflog.is_own(desk.run, "iptf://mfs/there/new/newer")
    assert not desk.reflog.is_own(desk.run, "iptf://mfs/there")
    desk.tree.mfs.remove_tree(["there"])
    desk.make_dir("there")
    assert desk.reflog.found_folders(desk.run) == ["iptf://mfs/there"]


@pytest.mark.parametrize(
    ("ranges", "logged"),
    [
        ([(1, 3)], {"0123": [(1, 3)]}),
        ([(2, 6)], {"0123": [(2, 4)], "01234567": [(4, 6)]}),
        ([(0, 2), (5, 8)], {"0123": [(0, 2)], "01234567": [(5, 8)]}),
    ],
)
def test_a_file_that_grows_under_its_reader_is_logged_as_it_was_and_as_it_is(
    desk: Desk, ranges: list[tuple[int, int]], logged: dict[str, list[tuple[int, int]]]
) -> None:
    desk.put("log", "0123")
    opened, fd, _, live = desk.files.open("iptf://mfs/log", 1)
    os.close(fd)
    assert live
    desk.recorder.opened(desk.run, "iptf://mfs/log", opened.cid, opened.size)
    with (desk.tree.mfs.root / "log").open("a") as file:
        file.write("4567")
    count = sum(end - start for start, end in ranges)
    cid = str(opened.cid)
    desk.recorder.read(desk.run, opened.handle, "iptf://mfs/log", cid, Intervals(ranges), count)
    desk.files.release(opened.handle)

    reads = desk.reflog.reads(desk.run)
    assert {desk.held(read): list(read.ranges) for read in reads} == logged
    assert sum(read.bytes for read in reads) == count
    assert sum(read.opens for read in reads) == 1
