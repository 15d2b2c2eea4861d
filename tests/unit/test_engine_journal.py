"""Journals: what is written is read again, and what a crash leaves behind is cut off."""

import errno
import math
import os
from pathlib import Path

import numpy as np
import pytest

from tests.engine.nets import manifest_of
from trainyard.engine import journal as journal_module
from trainyard.engine.energy import Energy
from trainyard.engine.errors import RunError
from trainyard.engine.events import Finished, read_event
from trainyard.engine.journal import RUN_LOCK, Entry, Journal, Measured, Validated, held
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.engine.state import State
from trainyard.engine.supervisor import align
from trainyard.engine.worker import Job
from trainyard.protocol.manifest.training import MOST_SEGMENTS


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


def test_longest_run_has_a_journal_that_is_read() -> None:
    """With sixteen metrics and an evaluation in each segment, and no number is a short one."""
    loss = -1 / 3e100
    metrics = {f"metric_{number:09}": loss for number in range(16)}
    trained = Measured(loss=loss, metrics=metrics, examples=10**15)
    line = Entry(
        number=MOST_SEGMENTS,
        state="f" * 64,
        step=10**9,
        trained=trained,
        validated=(Validated(**trained.model_dump(), epoch=10**9, step=10**9),),
        train_s=1e5 / 3,
        trace_s=1e5 / 3,
        sent_bytes=10**15,
        energy=Energy(joules=1e9 / 3, by="default"),
    ).model_dump_json()

    assert (MOST_SEGMENTS + 1) * (len(line) + 1) < journal_module._MOST_BYTES


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


def over(folder: Path, count: int) -> Journal:
    """A run that was over after its first segment, and changed nothing in all others."""
    journal = filled(folder, 2)
    for number in range(2, count):
        journal.append(entry(1).model_copy(update={"number": number}), state(1))
    return journal


def files(journal: Journal) -> list[int]:
    """Which file each state is in."""
    return [journal.path_of(one.number).stat().st_ino for one in journal.entries]


def test_states_after_the_end_share_a_file(tmp_path: Path) -> None:
    journal, other = over(tmp_path / "run", 6), Journal.open(tmp_path / "other", b"{}")

    other.adopt(journal)

    for one in (journal, other):
        assert len(set(files(one))) == 2
        assert files(one)[1:] == [files(one)[1]] * 5
        assert Journal.open(one.folder, b"{}").state(5) == state(1)
    assert set(files(journal)).isdisjoint(files(other))


def test_state_that_is_written_anew_leaves_others_as_they_are(tmp_path: Path) -> None:
    """Whatever a crash left under its name, another name of a shared file too."""
    journal = over(tmp_path, 6)
    journal.rewind(4)

    journal.append(entry(4), state(4))
    journal.append(entry(5), state(5))

    assert [Journal.open(tmp_path, b"{}").state(number) for number in range(6)] == [
        state(number) for number in (0, 1, 1, 1, 4, 5)
    ]


def test_state_whose_file_has_names_enough_gets_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object, **__: object) -> None:
        raise OSError(errno.EMLINK, os.strerror(errno.EMLINK))

    monkeypatch.setattr(os, "link", link)

    journal = over(tmp_path, 4)

    assert len(set(files(journal))) == 4
    assert journal.state(3) == state(1)


def test_entries_follow_each_other(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="state 5 does not follow state 0"):
        filled(tmp_path, 1).append(entry(5), state(5))


def test_second_start_changes_nothing_and_says_who_runs(tmp_path: Path) -> None:
    """The first one is in the middle of a line."""
    manifest = manifest_of("mlp")
    Journal.open(tmp_path, manifest.canonical).append(entry(0), state(0))
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"number":')
    before = (tmp_path / "journal.jsonl").read_bytes()

    with (
        held(tmp_path, RUN_LOCK),
        pytest.raises(RunError, match=f"process {os.getpid()} is at the run in {tmp_path}"),
    ):
        run_local(manifest, Files(train=tmp_path), tmp_path)

    assert (tmp_path / "journal.jsonl").read_bytes() == before


def test_workers_journals_are_not_aligned_while_one_is_written(tmp_path: Path) -> None:
    """As by the worker of a supervisor that was killed, which ends a moment later."""
    (tmp_path / "manifest.json").write_bytes(b"{}")
    jobs = tuple(
        Job(manifest=tmp_path / "manifest.json", folder=tmp_path / name, train=tmp_path)
        for name in "ab"
    )
    filled(tmp_path / "a", 3)
    filled(tmp_path / "b", 2)

    with held(tmp_path / "b"), pytest.raises(RunError, match=f"process {os.getpid()} is at"):
        align(jobs)

    assert [len(Journal.read(tmp_path / name).entries) for name in "ab"] == [3, 2]
    assert align(jobs) == 3


def aligned(folder: Path, journals: list[Journal]) -> tuple[int, list[list[str]]]:
    """What is kept of the journals of workers that are started anew."""
    (folder / "manifest.json").write_bytes(b"{}")
    jobs = tuple(
        Job(manifest=folder / "manifest.json", folder=one.folder, train=folder) for one in journals
    )
    count = align(jobs)
    found = [Journal.open(one.folder, b"{}") for one in journals]
    for journal in found:
        for one in journal.entries:
            assert journal.state(one.number).hash.hex() == one.state
    return count, [[one.state for one in journal.entries] for journal in found]


@pytest.mark.parametrize("counts", [(0, 5), (1, 5), (5, 1), (5, 0, 3), (2, 5, 5), (0, 0), (4, 4)])
def test_no_finished_work_is_lost_by_starting_anew(tmp_path: Path, counts: tuple[int, ...]) -> None:
    journals = [filled(tmp_path / str(slot), count) for slot, count in enumerate(counts)]

    kept, found = aligned(tmp_path, journals)

    assert kept == max(counts)
    assert found == [[state(number).hash.hex() for number in range(kept)]] * len(counts)


@pytest.mark.parametrize("longer", ["a", "b"])
def test_workers_that_disagree_go_back_to_where_they_agreed(tmp_path: Path, longer: str) -> None:
    journals = [filled(tmp_path / name, 5 if name == longer else 3) for name in "ab"]
    [shorter] = [one for one in journals if len(one.entries) == 3]
    shorter.rewind(2)
    other = state(9)
    shorter.append(entry(2).model_copy(update={"state": other.hash.hex()}), other)

    kept, found = aligned(tmp_path, [*journals, filled(tmp_path / "new", 0)])

    assert kept == 2
    assert found == [[state(number).hash.hex() for number in range(2)]] * 3


def test_states_are_taken_over_up_to_one_that_was_lost(tmp_path: Path) -> None:
    whole, damaged = filled(tmp_path / "a", 2), filled(tmp_path / "b", 6)
    damaged.path_of(4).write_bytes(b"damaged")

    kept, found = aligned(tmp_path, [whole, damaged])

    assert kept == 4
    assert found == [[state(number).hash.hex() for number in range(4)]] * 2
