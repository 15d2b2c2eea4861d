"""Audits that were begun before they were asked for, and an agent that is killed meanwhile."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from benchmarks.arena import ENDED, Arena, Player, running_arena
from tests.agent.sandboxes import processes_with
from tests.market.leftovers import leaving_nothing
from trainyard.protocol.market import TaskState

_PATIENCE_S = 300.0


@pytest.fixture
def arena(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Arena]:
    folder = tmp_path_factory.mktemp("arena")
    with leaving_nothing(folder), running_arena(6, folder / "net") as found:
        yield found


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def jobs(player: Player, number: int) -> Path:
    return player.home / "tasks" / str(number) / "jobs"


def started(player: Player, number: int) -> set[str]:
    """The pieces of work for a task that had a process started for them."""
    return {path.stem.partition("-")[0] for path in jobs(player, number).glob("*.log")}


def told(player: Player, number: int) -> set[str]:
    return {path.stem.partition("-")[0] for path in jobs(player, number).glob("*.json")}


def standing_by(player: Player, number: int) -> list[int]:
    return processes_with(f"{jobs(player, number)}/standby.json")


@pytest.mark.long
def test_audits_are_answered_by_who_stood_by_and_nobody_stays(arena: Arena) -> None:
    payer = arena.person()
    workers = [arena.start(f"worker-{n}", takes=[payer.address]) for n in range(2)]
    member = arena.start("member", bond=arena.net.params.seat_bond)
    arena.wait_for_members(member)
    arena.wait("workers", lambda book: all(one.address in book.workers for one in workers))

    number = arena.post(payer, workers=2)
    task = arena.wait_for(number, *ENDED)

    assert task.state is TaskState.SETTLED
    # The answer was told to the process that stood by, which no other was started for.
    assert "answer" in told(member, number)
    assert started(member, number) == {"standby"}
    assert all("standby" in started(worker, number) for worker in workers)
    wait_until(lambda: not processes_with("trainyard-standby-"))
    for player in (*workers, member):
        assert standing_by(player, number) == []


def test_agent_killed_with_an_auditor_ready_leaves_nothing_and_answers_after(arena: Arena) -> None:
    payer = arena.person()
    worker = arena.start("lone", takes=[payer.address])
    member = arena.start("killed", bond=arena.net.params.seat_bond)
    arena.wait_for_members(member)
    arena.wait("the worker", lambda book: worker.address in book.workers)

    number = arena.post(payer)
    wait_until(lambda: bool(processes_with("trainyard-standby-")))
    os.kill(member.process.pid, signal.SIGKILL)
    member.process.wait()
    wait_until(lambda: not processes_with("trainyard-standby-"))
    assert standing_by(member, number) == []

    arena.restart("killed")
    assert arena.wait_for(number, *ENDED).state is TaskState.SETTLED
    assert arena.slashed(number) == {member.address: 0}
    assert list((member.home / "scratch").iterdir()) == []
