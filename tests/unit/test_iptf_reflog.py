"""The reflog's file."""

import sqlite3
from pathlib import Path

import pytest

from trainyard.content.errors import NotFoundError
from trainyard.iptf.intervals import Intervals
from trainyard.iptf.reflog import Reflog


@pytest.fixture
def reflog(tmp_path: Path) -> Reflog:
    return Reflog(tmp_path / "reflog.sqlite")


def test_reads_of_one_file_are_one_line_with_merged_ranges(reflog: Reflog) -> None:
    run = reflog.begin_run(["python", "train.py"], "/work")
    for start, end in [(0, 10), (20, 30), (5, 20)]:
        reflog.opened(run, "ipfs://cid/a", "cid-a", 100)
        reflog.read(run, "ipfs://cid/a", "cid-a", Intervals([(start, end)]), end - start)

    (read,) = reflog.reads(run)

    assert (read.opens, read.ranges, read.bytes, read.own) == (3, ((0, 30),), 35, False)
    assert read.first_time <= read.last_time


def test_a_run_is_recorded_from_its_start_to_its_end(reflog: Reflog) -> None:
    run = reflog.begin_run(["python", "a b.py"], "/work", reproduces=None)
    assert reflog.run(run).finished is None
    reflog.end_run(run, 3)
    again = reflog.begin_run(["python", "a b.py"], "/work", reproduces=run)

    assert reflog.run(run).command == ("python", "a b.py")
    assert reflog.run(run).exit_code == 3
    assert [one.reproduces for one in reflog.runs()] == [None, run]
    assert reflog.reads(again) == []
    with pytest.raises(NotFoundError, match="no run 99"):
        reflog.run(99)


def test_what_a_run_wrote_before_it_read_is_its_own(reflog: Reflog) -> None:
    run, other = (reflog.begin_run(["python"], "/work") for _ in range(2))
    reflog.wrote(run, "iptf://mfs/model")
    for uri in ("iptf://mfs/model", "iptf://mfs/model/a", "iptf://mfs/model2", "iptf://mfs/data"):
        reflog.opened(run, uri, "cid", 1)
    reflog.opened(other, "iptf://mfs/model", "cid", 1)

    own = {read.uri: read.own for read in reflog.reads(run)}
    assert own == {
        "iptf://mfs/model": True,
        "iptf://mfs/model/a": True,
        "iptf://mfs/model2": False,
        "iptf://mfs/data": False,
    }
    assert [read.own for read in reflog.reads(other)] == [False]


def test_anyone_can_query_the_file_while_it_is_in_use(reflog: Reflog, tmp_path: Path) -> None:
    run = reflog.begin_run(["python"], "/work")
    reflog.opened(run, "ipfs://cid/a", "cid-a", 100)
    other = Reflog(tmp_path / "reflog.sqlite")
    other.opened(run, "ipfs://cid/b", "cid-b", 100)

    with sqlite3.connect(tmp_path / "reflog.sqlite") as db:
        cids = db.execute("SELECT cid FROM reads ORDER BY cid").fetchall()
    assert cids == [("cid-a",), ("cid-b",)]


def test_ranges_beyond_the_size_that_a_cid_has_are_not_its_own(reflog: Reflog) -> None:
    run = reflog.begin_run(["python"], "/work")
    reflog.opened(run, "iptf://mfs/log", "cid", 10)

    assert reflog.read(run, "iptf://mfs/log", "cid", Intervals([(5, 20)]), 15) == 10
    assert reflog.read(run, "iptf://mfs/log", "other", Intervals([(5, 20)]), 15) is None
    (read,) = reflog.reads(run)
    assert (read.ranges, read.bytes) == (((5, 10),), 5)
