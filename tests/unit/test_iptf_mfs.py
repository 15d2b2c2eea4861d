"""The folder behind iptf://mfs: changes in it, and no way out of it."""

import errno
import os
from pathlib import Path

import pytest

from trainyard.iptf.codes import ReadOnlyError
from trainyard.iptf.mfs import Mfs


@pytest.fixture
def mfs(tmp_path: Path) -> Mfs:
    return Mfs(tmp_path / "mfs")


def _write(mfs: Mfs, names: list[str], data: bytes, *, append: bool = False) -> int:
    fd, position = mfs.create(names, append=append)
    with open(fd, "wb") as file:
        file.write(data)
    return position


def _read(mfs: Mfs, names: list[str]) -> bytes:
    with open(mfs.open(names), "rb") as file:
        return file.read()


def test_files_are_written_appended_to_and_listed(mfs: Mfs) -> None:
    mfs.make_dir(["logs", "run"], parents=True)
    _write(mfs, ["logs", "run", "events"], b"first")
    position = _write(mfs, ["logs", "run", "events"], b" second", append=True)

    assert position == 5
    assert _read(mfs, ["logs", "run", "events"]) == b"first second"
    entries = [(entry.name, entry.directory, entry.size) for entry in mfs.ls(["logs", "run"])]
    assert entries == [("events", False, 12)]


def test_a_reader_keeps_the_file_that_is_replaced(mfs: Mfs) -> None:
    _write(mfs, ["file"], b"old and long")
    with open(mfs.open(["file"]), "rb") as reader:
        _write(mfs, ["file"], b"new")

        assert reader.read() == b"old and long"
    assert _read(mfs, ["file"]) == b"new"


def test_rename_moves_files_and_whole_directories(mfs: Mfs) -> None:
    mfs.make_dir(["a"], parents=False)
    _write(mfs, ["a", "file"], b"1")
    mfs.rename(["a"], ["b"])
    _write(mfs, ["other"], b"2")
    mfs.rename(["other"], ["b", "file"])

    assert _read(mfs, ["b", "file"]) == b"2"
    assert [entry.name for entry in mfs.ls([])] == ["b"]


def test_removal_takes_files_empty_directories_and_trees(mfs: Mfs) -> None:
    mfs.make_dir(["a", "b"], parents=True)
    _write(mfs, ["a", "b", "file"], b"1")
    with pytest.raises(OSError, match="not empty") as refused:
        mfs.remove_dir(["a", "b"])
    assert refused.value.errno == errno.ENOTEMPTY
    mfs.remove_file(["a", "b", "file"])
    mfs.remove_dir(["a", "b"])
    mfs.remove_tree(["a"])

    assert mfs.ls([]) == []


def test_no_symbolic_link_leads_out(mfs: Mfs, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (mfs.root / "folder").symlink_to(outside)
    (mfs.root / "file").symlink_to(outside / "secret")

    for attempt in (
        lambda: mfs.open(["folder", "secret"]),
        lambda: mfs.open(["file"]),
        lambda: mfs.stat(["file"]),
        lambda: mfs.ls(["folder"]),
        lambda: mfs.create(["folder", "new"], append=False),
        lambda: mfs.create(["file"], append=True),
        lambda: mfs.make_dir(["folder", "new"], parents=True),
        lambda: mfs.remove_file(["folder", "secret"]),
        lambda: mfs.remove_tree(["folder"]),
        lambda: mfs.rename(["folder", "secret"], ["mine"]),
        lambda: mfs.path(["folder", "secret"]),
    ):
        with pytest.raises(OSError, match=r"."):
            attempt()
    assert mfs.ls([]) == []
    assert (outside / "secret").read_text() == "secret"
    assert os.listdir(outside) == ["secret"]


def test_writing_over_a_link_replaces_the_link(mfs: Mfs, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("untouched")
    (mfs.root / "file").symlink_to(tmp_path / "outside")
    _write(mfs, ["file"], b"mine")

    assert (tmp_path / "outside").read_text() == "untouched"
    assert _read(mfs, ["file"]) == b"mine"


def test_a_pipe_does_not_stop_the_gate(mfs: Mfs) -> None:
    os.mkfifo(mfs.root / "pipe")

    with pytest.raises(OSError, match="Invalid argument"):
        mfs.open(["pipe"])


def test_the_root_stays(mfs: Mfs) -> None:
    with pytest.raises(ReadOnlyError):
        mfs.remove_tree([])
    with pytest.raises(ReadOnlyError):
        mfs.rename([], ["below"])
    with pytest.raises(IsADirectoryError):
        mfs.open([])
