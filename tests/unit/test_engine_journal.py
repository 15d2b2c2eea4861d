"""Journals: what is written is read again, and what a crash leaves behind is cut off."""

import math
from pathlib import Path

import numpy as np
import pytest

from trainyard.engine.errors import RunError
from trainyard.engine.events import Finished, read_event
from trainyard.engine.journal import Entry, Journal, Measured
from trainyard.engine.state import State


def state(number: int) -> State:
    return State({"a": np.asarray(number, np.int64)})


def entry(number: int, loss: float = 1.0) -> Entry:
    measured = Measured(loss=loss, metrics={"m": loss}, examples=3)
    return Entry(number=number, state=state(number).hash.hex(), step=number, trained=measured)


def filled(folder: Path, count: int) -> Journal:
    journal = Journal.open(folder, b"{}")
    for number in range(count):
        journal.append(entry(number), state(number))
    return journal


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, 0.1])
def test_figures_of_all_kinds_are_read_again(tmp_path: Path, loss: float) -> None:
    journal = Journal.open(tmp_path, b"{}")
    journal.append(entry(0, loss), state(0))

    [found] = Journal.open(tmp_path, b"{}").entries
    told = read_event(Finished(entry=found).model_dump_json())

    assert isinstance(told, Finished)
    for one in (found.trained, told.entry.trained):
        assert one is not None
        assert repr((one.loss, one.metrics)) == repr((loss, {"m": loss}))


@pytest.mark.parametrize("rest", [b"", b"{", b"[]\n", b'{"number": 7}\n', b"\xff\n"])
def test_what_a_crash_leaves_is_cut_off(tmp_path: Path, rest: bytes) -> None:
    filled(tmp_path, 3)
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(rest)

    journal = Journal.open(tmp_path, b"{}")
    journal.append(entry(3), state(3))

    assert [one.number for one in Journal.open(tmp_path, b"{}").entries] == [0, 1, 2, 3]


def test_another_journal_is_adopted_and_stays(tmp_path: Path) -> None:
    source = filled(tmp_path / "run" / "peers" / "1", 3)
    journal = Journal.open(tmp_path / "run", b"{}")

    journal.adopt(source)

    assert Journal.open(tmp_path / "run", b"{}").entries == source.entries
    assert journal.state(2) == source.state(2)


def test_entries_follow_each_other(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="state 5 does not follow state 0"):
        filled(tmp_path, 1).append(entry(5), state(5))
