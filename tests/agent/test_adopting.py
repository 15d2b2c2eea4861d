"""Who comes new to a joint run takes its states from another: all of them, and true ones."""

import asyncio
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of
from trainyard.engine.counting import Counters
from trainyard.engine.errors import RunError
from trainyard.engine.journal import Entry, Journal, held
from trainyard.engine.state import State
from worker_agent.peers.errors import OwnDiskError, PeerError
from worker_agent.runner.child import LostPeerError
from worker_agent.runner.live import Live
from worker_agent.runner.sync import Standing, _SyncRun

MANIFEST = manifest_of("mlp", until={"steps": 9})
STATES = 4


def state(step: int, weight: float = 0.0) -> State:
    return State({"weights/a": np.full(4, weight, np.float32), **Counters(step=step).tensors()})


class Others:
    """Workers that have all states; some of them lie, or are cut off after so many states."""

    def __init__(self, *, liars: tuple[int, ...] = (), gives: int | None = None) -> None:
        self.liars, self.gives = liars, gives
        self.asked: list[int] = []

    async def ask(self, slot: int, kind: str, body: bytes, **_: Any) -> bytes:
        self.asked.append(slot)
        number = json.loads(body)
        entry = Entry(number=number, state=state(number).hash.hex(), step=number)
        return entry.model_dump_json().encode()

    async def fetch(self, slot: int, kind: str, body: bytes, target: Path, **_: Any) -> None:
        number = json.loads(body)
        if self.gives is not None and number >= self.gives:
            raise PeerError("connection reset by peer")
        state(number, float(slot in self.liars)).save(target)


class _Job:
    slot, holders = 0, dict[int, str]()


def run_in(folder: Path, heard: dict[int, str], **said: Any) -> _SyncRun:
    """The run of slot 0, to which the others say that they wait with all states there are."""
    folder.mkdir(exist_ok=True)
    task: Any = type("Task", (), {})()
    task.run, task.manifest, task.job = folder / "run", MANIFEST, _Job()
    task.workers = len(heard) + 1
    task.shelf = type("Shelf", (), {"path": lambda _, name: folder / name})()
    run = _SyncRun(task)
    for slot, name in heard.items():
        standing = {"generation": 1, "phase": "waiting", "states": STATES, "met": {}, **said}
        run._heard[slot] = Standing(name=name, **standing)
    return run


def align(run: _SyncRun, others: Others) -> None:
    plane: Any = others
    asyncio.run(run._align(plane))


def test_who_has_nothing_takes_all_that_the_others_have(tmp_path: Path) -> None:
    run = run_in(tmp_path, {1: "one", 2: "two"})
    align(run, Others())
    assert run._kept == run._count() == STATES


def test_source_that_dies_on_the_way_leaves_nothing_to_which_the_others_would_go_back(
    tmp_path: Path,
) -> None:
    run = run_in(tmp_path, {1: "one"})
    with pytest.raises(LostPeerError, match="connection reset"):
        align(run, Others(gives=2))
    # What we would say, and they take the least of.
    assert run._count() == 0

    align(run, Others())
    assert run._count() == STATES
    # Nobody was called a liar for a connection that was lost.
    assert run._liars == set()
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_nor_does_a_death_of_our_own(tmp_path: Path) -> None:
    run = run_in(tmp_path, {1: "one"})
    align(run, Others())
    Journal.open(tmp_path / "run", MANIFEST.canonical).rewind(2)
    # As a process leaves it that is killed.
    (tmp_path / "adopting").touch()

    again = run_in(tmp_path, {1: "one"})
    assert again._kept == 0
    align(again, Others())
    assert run_in(tmp_path, {})._kept == STATES


def test_who_sends_other_states_than_it_names_is_not_asked_again(tmp_path: Path) -> None:
    run, others = run_in(tmp_path, {1: "liar", 2: "honest"}), Others(liars=(1,))
    with pytest.raises(LostPeerError, match="worker 1 sent another state than it named"):
        align(run, others)
    assert (run._liars, run._count()) == ({"liar"}, 0)

    others.asked.clear()
    align(run, others)
    assert set(others.asked) == {2}
    assert run._count() == STATES


def test_bytes_that_are_no_state_are_a_lie(tmp_path: Path) -> None:
    class Noisy(Others):
        async def fetch(self, slot: int, kind: str, body: bytes, target: Path, **_: Any) -> None:
            target.write_bytes(os.urandom(64))

    run = run_in(tmp_path, {1: "liar"})
    with pytest.raises(LostPeerError):
        align(run, Noisy())
    assert run._liars == {"liar"}


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", fail)
        yield


def test_our_own_full_disk_is_nobody_elses_lie(tmp_path: Path, full_disk: None) -> None:
    class Frugal(Others):
        async def fetch(self, slot: int, kind: str, body: bytes, target: Path, **_: Any) -> None:
            target.write_bytes(b"".join(state(json.loads(body)).parts()))

    run = run_in(tmp_path, {1: "honest"})
    with pytest.raises(OwnDiskError, match="No space left"):
        align(run, Frugal())
    assert (run._liars, run._count()) == (set(), 0)


def test_nor_is_a_run_that_another_process_is_at(tmp_path: Path) -> None:
    run = run_in(tmp_path, {1: "honest"})
    with held(tmp_path / "run"), pytest.raises(RunError, match="is at the run"):
        align(run, Others())
    assert run._liars == set()


@pytest.mark.parametrize("ours", ["lock", "disk"])
def test_nor_at_the_end_of_a_run(tmp_path: Path, ours: str) -> None:
    """All is taken from who has ended, unless something of our own is in the way."""

    class Full(Others):
        async def fetch(self, slot: int, kind: str, body: bytes, target: Path, **_: Any) -> None:
            raise OwnDiskError("cannot write it")

    whole = MANIFEST.plan.segments + 1
    run = run_in(tmp_path, {1: "honest"}, phase="ended", states=whole)
    run._task.live = Live(run._task.shelf)
    plane: Any = Full()
    if ours == "disk":
        with pytest.raises(OwnDiskError):
            asyncio.run(run._gather(plane))
    else:
        with held(tmp_path / "run"), pytest.raises(RunError, match="is at the run"):
            asyncio.run(run._gather(plane))
    assert run._liars == set()


def test_all_is_taken_from_who_has_ended(tmp_path: Path) -> None:
    whole = MANIFEST.plan.segments + 1
    run = run_in(tmp_path, {1: "honest"}, phase="ended", states=whole)
    plane: Any = Others()
    assert asyncio.run(run._gather(plane))
    assert run._count() == whole
