"""Who comes new to a joint run takes its states from another: all of them, and true ones."""

import asyncio
import errno
import json
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

from tests.agent.peers_yard import Peer, peers
from tests.engine.nets import manifest_of
from trainyard.engine.counting import Counters
from trainyard.engine.errors import RunError
from trainyard.engine.journal import Entry, Journal, held
from trainyard.engine.state import State
from worker_agent.peers.errors import OwnDiskError
from worker_agent.peers.plane import PeerPlane
from worker_agent.runner.child import LostPeerError
from worker_agent.runner.live import Live
from worker_agent.runner.sync import Standing, _SyncRun

MANIFEST = manifest_of("mlp", until={"steps": 9})
STATES, WHOLE = 4, MANIFEST.plan.segments + 1


def state(step: int, weight: float = 0.0) -> State:
    return State({"weights/a": np.full(4, weight, np.float32), **Counters(step=step).tensors()})


@dataclass(frozen=True, slots=True)
class Other:
    """A worker that has all states, and sends them as they are asked for."""

    # Another state than it names; bytes that are none.
    lies: bool = False
    is_noisy: bool = False
    # Its connections are cut while it sends this one.
    dies_at: int | None = None

    def serve(self, peer: Peer) -> None:
        def entry(body: bytes) -> bytes:
            number = json.loads(body)
            named = Entry(number=number, state=state(number).hash.hex(), step=number)
            return named.model_dump_json().encode()

        def sent(body: bytes) -> Path:
            number = json.loads(body)
            if number == self.dies_at:
                peer.plane.know({})
            path = peer.folder / f"{number}.safetensors"
            # Not by `save`, for which there may be no room.
            honest = b"".join(state(number, float(self.lies)).parts())
            path.write_bytes(os.urandom(64) if self.is_noisy else honest)
            return path

        peer.answers |= {"entry": entry, "state": sent}


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


def gathered(run: _SyncRun, *others: Other) -> bool:
    """What it makes of the end of a run that these others have."""
    return bool(asyncio.run(_with_peers(run, others, run._gather)))


def align(run: _SyncRun, *others: Other) -> list[int]:
    """Which slots were asked for states by whoever meets these others."""
    asked: list[int] = []
    asyncio.run(_with_peers(run, others, run._align, asked))
    return asked


async def _with_peers(
    run: _SyncRun,
    others: Sequence[Other],
    act: Callable[[PeerPlane], Awaitable[Any]],
    asked: list[int] | None = None,
) -> Any:
    with TemporaryDirectory(prefix="peers-") as folder:
        async with peers(Path(folder), 1 + len(others)) as (me, *them):
            for other, peer in zip(others, them, strict=True):
                other.serve(peer)
            try:
                return await act(me.plane)
            finally:
                if asked is not None:
                    asked += [peer.slot for peer in them for _ in peer.asked]


def test_who_has_nothing_takes_all_that_the_others_have(tmp_path: Path) -> None:
    run = run_in(tmp_path, {1: "one", 2: "two"})
    align(run, Other(), Other())
    assert run._kept == run._count() == STATES


def test_source_that_dies_on_the_way_leaves_nothing_to_which_the_others_would_go_back(
    tmp_path: Path,
) -> None:
    run = run_in(tmp_path, {1: "one"})
    with pytest.raises(LostPeerError, match="worker 1 cannot be asked for 'state'"):
        align(run, Other(dies_at=2))
    # What we would say, and they take the least of.
    assert run._count() == 0

    align(run, Other())
    assert run._count() == STATES
    # Nobody was called a liar for a connection that was lost.
    assert run._liars == set()
    assert {path.name for path in tmp_path.iterdir()} == {"run"}


def test_nor_does_a_death_of_our_own(tmp_path: Path) -> None:
    run = run_in(tmp_path, {1: "one"})
    align(run, Other())
    Journal.open(tmp_path / "run", MANIFEST.canonical).rewind(2)
    # As a process leaves it that is killed.
    (tmp_path / "adopting").touch()

    again = run_in(tmp_path, {1: "one"})
    assert again._kept == 0
    align(again, Other())
    assert run_in(tmp_path, {})._kept == STATES


def test_who_sends_other_states_than_it_names_is_not_asked_again(tmp_path: Path) -> None:
    run, others = run_in(tmp_path, {1: "liar", 2: "honest"}), (Other(lies=True), Other())
    with pytest.raises(LostPeerError, match="worker 1 sent another state than it named"):
        align(run, *others)
    assert (run._liars, run._count()) == ({"liar"}, 0)

    assert set(align(run, *others)) == {2}
    assert run._count() == STATES


def test_bytes_that_are_no_state_are_a_lie(tmp_path: Path) -> None:
    run = run_in(tmp_path, {1: "liar"})
    with pytest.raises(LostPeerError):
        align(run, Other(is_noisy=True))
    assert run._liars == {"liar"}


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def fail(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", fail)
        yield


def test_our_own_full_disk_is_nobody_elses_lie(tmp_path: Path, full_disk: None) -> None:
    run = run_in(tmp_path, {1: "honest"})
    with pytest.raises(OwnDiskError, match="No space left"):
        align(run, Other())
    assert (run._liars, run._count()) == (set(), 0)


def test_nor_is_a_run_that_another_process_is_at(tmp_path: Path) -> None:
    run = run_in(tmp_path, {1: "honest"})
    with held(tmp_path / "run"), pytest.raises(RunError, match="is at the run"):
        align(run, Other())
    assert run._liars == set()


def ended_run(folder: Path) -> _SyncRun:
    """Its one peer has the whole run, and says so."""
    run = run_in(folder, {1: "honest"}, phase="ended", states=WHOLE)
    run._task.live = Live(run._task.shelf)
    return run


def test_nor_is_it_at_the_end_of_a_run(tmp_path: Path, full_disk: None) -> None:
    run = ended_run(tmp_path)
    with pytest.raises(OwnDiskError, match="No space left"):
        gathered(run, Other())
    assert run._liars == set()


def test_nor_is_our_own_lock_at_the_end_of_a_run(tmp_path: Path) -> None:
    run = ended_run(tmp_path)
    with held(tmp_path / "run"), pytest.raises(RunError, match="is at the run"):
        gathered(run, Other())
    assert run._liars == set()


def test_all_is_taken_from_who_has_ended(tmp_path: Path) -> None:
    run = ended_run(tmp_path)
    assert gathered(run, Other())
    assert run._count() == WHOLE
