"""Workers of one cluster that are killed: they come back, or somebody else takes their place."""

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from tests.market.yard import TRAINER, Market, kill, live_of, root_of
from trainyard.devnet.agents import Agent, start_agent
from trainyard.devnet.options import DEVNET_PARAMS, ETHER
from trainyard.engine.launching import run_local
from trainyard.engine.material import fetch_files
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import BURN_ADDRESS, TaskState
from worker_agent.faults import VARIABLE, Stage

_TRAINING: dict[str, dict[str, Any]] = {
    "sync": {"segments": 8},
    # A round needs both: if it could do without one, it would come to something else.
    "rounds": {"segments": 12, "rounds": {"local_steps": 5, "quorum": 2}},
}
# Nobody audits here: what is computed is compared with a run of our own.
_TERMS: dict[str, Any] = {"audits": 0, "min_audits": 0, "answer_for": 12, "train_for": 900}
_FAULT = ETHER * DEVNET_PARAMS.fault_bps // 10_000


class _Reference:
    """What tasks have to come to, whatever happens on the way: computed here, once for a mode."""

    def __init__(self, yard: Market, folder: Path) -> None:
        self._yard, self._folder = yard, folder
        self._roots: dict[str, str] = {}

    def manifest(self, mode: str) -> Manifest:
        return self._yard.manifest(mode=mode, workers=2, **_TRAINING[mode])

    def root(self, mode: str) -> str:
        if mode not in self._roots:
            manifest, folder = self.manifest(mode), self._folder / mode
            files = fetch_files(manifest, self._yard.content, folder / "data")
            self._roots[mode] = run_local(manifest, files, folder / "run").trace.root.hex()
        return self._roots[mode]


@pytest.fixture(scope="module")
def reference(yard: Market, tmp_path_factory: pytest.TempPathFactory) -> _Reference:
    return _Reference(yard, tmp_path_factory.mktemp("reference"))


def _is_waiting(agent: Agent, task: int) -> bool:
    return live_of(agent, task).get("phase") == "waiting for peers"


def _runners(agent: Agent) -> list[int]:
    return [
        child.pid
        for child in psutil.Process(agent.child.pid).children()
        if "worker_agent.runner" in child.cmdline()
    ]


def _has_ended(agent: Agent, task: int) -> bool:
    return (agent.home / "tasks" / str(task) / "run" / "ended").exists()


def _doomed(stage: Stage, times: int = 1, what: str = "SIGKILL") -> dict[str, str]:
    """To die with its machine when its runner gets there, and not when a test happens to look."""
    return {VARIABLE: f"{stage.name}:{times - 1}:{what}"}


def _start(
    yard: Market, parts: ExitStack, names: list[str], environment: dict[str, str] | None = None
) -> list[Agent]:
    agents = [start_agent(yard.devnet, name, TRAINER, environment=environment) for name in names]
    for agent in agents:
        parts.callback(agent.stop)
    yard.wait_for_workers(*agents)
    return agents


@pytest.mark.long
def test_worker_that_is_killed_in_each_phase_and_comes_back_computes_the_same(
    yard: Market, reference: _Reference
) -> None:
    names = [yard.name(), yard.name()]
    before = yard.wealth(*names)
    with ExitStack() as parts:
        [other] = _start(yard, parts, names[1:])
        task = yard.post(reference.manifest("sync"), **_TERMS)
        for death in (_doomed(Stage.WAITING), _doomed(Stage.STATE, 4), _doomed(Stage.ENDED)):
            [killed] = _start(yard, parts, names[:1], death)
            yard.wait(killed.child.ended.is_set, other)
            assert killed.child.process.returncode == -signal.SIGKILL, killed.child.epitaph()
            assert not (killed.home / "tasks" / str(task) / "claim.json").exists()
        assert _has_ended(killed, task)
        [killed] = _start(yard, parts, names[:1])
        yard.settle(task, killed, other)
        after = yard.wealth(*names)
        roots = {root_of(agent, task) for agent in (killed, other)}

    assert roots == {reference.root("sync")}
    assert {after[name] - before[name] for name in names} == {ETHER}


class _Lost(NamedTuple):
    lost: Agent
    stays: Agent


def _lose_joined(yard: Market, parts: ExitStack, names: list[str], manifest: Manifest) -> _Lost:
    """It has a slot, and the task has not begun."""
    [lost] = _start(yard, parts, names[:1])
    task = yard.post(manifest, **_TERMS)
    yard.wait(lambda: (found := yard.task(task)) is not None and found.joined, lost)
    assert yard.state(task) is TaskState.OPEN
    kill(lost)
    [stays] = _start(yard, parts, names[1:])
    yard.wait_for(task, TaskState.RUNNING, agents=(stays,))
    return _Lost(lost, stays)


def _lose_waiting(yard: Market, parts: ExitStack, names: list[str], manifest: Manifest) -> _Lost:
    """It is there and waits for the other, which is away for a moment."""
    task, agents = _run_pair(yard, parts, names, manifest)
    lost, other = agents
    kill(other)
    yard.wait(lambda: _is_waiting(lost, task), lost)
    kill(lost)
    [stays] = _start(yard, parts, [other.name])
    return _Lost(lost, stays)


def _lose_training(
    yard: Market, parts: ExitStack, names: list[str], manifest: Manifest, slot: int, role: str = ""
) -> _Lost:
    """It dies as soon as it has four states."""
    task, lost, stays = _run_doomed(yard, parts, names, manifest, slot, _doomed(Stage.STATE, 4))
    yard.wait(lost.child.ended.is_set, stays)
    live = live_of(lost, task)
    assert (live["phase"].startswith("training"), role in live["phase"]) == (True, True), live
    assert 0 < live["states"] < live["segments"]
    assert not _has_ended(lost, task)
    return _Lost(lost, stays)


def _run_doomed(
    yard: Market,
    parts: ExitStack,
    names: list[str],
    manifest: Manifest,
    slot: int,
    doom: dict[str, str],
) -> tuple[int, Agent, Agent]:
    """A task for two, one of them doomed, in the slot that it gets by coming first or second."""
    [first] = _start(yard, parts, names[:1], doom if slot == 0 else None)
    task = yard.post(manifest, **_TERMS)
    yard.wait(lambda: (found := yard.task(task)) is not None and found.joined, first)
    [second] = _start(yard, parts, names[1:], doom if slot == 1 else None)
    return (task, first, second) if slot == 0 else (task, second, first)


def _run_pair(
    yard: Market, parts: ExitStack, names: list[str], manifest: Manifest
) -> tuple[int, list[Agent]]:
    """A task that has begun, and its agents by slot."""
    agents = _start(yard, parts, names)
    task = yard.post(manifest, **_TERMS)
    running = yard.wait_for(task, TaskState.RUNNING, agents=tuple(agents))
    by_address = {yard.address(agent.name): agent for agent in agents}
    return task, [by_address[str(slot.worker)] for slot in running.slots]


_PHASES: dict[tuple[str, str], Callable[[Market, ExitStack, list[str], Manifest], _Lost]] = {
    ("sync", "joined"): _lose_joined,
    ("sync", "waiting"): _lose_waiting,
    # Whoever has the first slot is the first to see to the task.
    ("sync", "training"): partial(_lose_training, slot=1),
    ("rounds", "joined"): _lose_joined,
    ("rounds", "leading"): partial(_lose_training, slot=0, role="leading"),
    ("rounds", "led"): partial(_lose_training, slot=1, role="led by"),
}
_ORDINARY = {("sync", "training")}


@pytest.mark.parametrize(
    ("mode", "phase"),
    [pytest.param(*one, marks=() if one in _ORDINARY else pytest.mark.long) for one in _PHASES],
)
def test_worker_that_never_comes_back_is_evicted_and_replaced_and_pays_for_it(
    yard: Market, reference: _Reference, mode: str, phase: str
) -> None:
    names = [yard.name(), yard.name(), yard.name()]
    before = yard.wealth(*names, "requester")
    burned = _burned(yard)
    with ExitStack() as parts:
        lost, stays = _PHASES[mode, phase](yard, parts, names[:2], reference.manifest(mode))
        task = max(yard.requester.book.tasks)
        [new] = _start(yard, parts, names[2:])
        settled = yard.settle(task, stays, new)
        after = yard.wealth(*names, "requester")
        roots = {root_of(agent, task) for agent in (stays, new)}

    assert roots == {reference.root(mode)}
    told = [seen.event.name for seen in yard.events(task)]
    assert told.count("SlotEvicted") == 1
    # Who came instead may have been asked too, if it was slow to begin, and answered.
    assert told.count("SlotPinged") - told.count("SlotPonged") == 1
    assert {slot.worker for slot in settled.slots} == {
        yard.address(agent.name) for agent in (stays, new)
    }
    assert {name: after[name] - before[name] for name in after} == {
        lost.name: -_FAULT,
        stays.name: ETHER,
        new.name: ETHER,
        "requester": -2 * ETHER,
    }
    assert _burned(yard) - burned == _FAULT


@pytest.mark.long
@pytest.mark.parametrize("mode", ["sync", "rounds"])
@pytest.mark.parametrize("slot", [0, 1])
def test_worker_that_is_lost_between_the_end_and_its_answer_holds_up_nobody(
    yard: Market, reference: _Reference, mode: str, slot: int
) -> None:
    """After the first answer nobody can come instead: it is evicted, and the others are paid."""
    names = [yard.name(), yard.name()]
    before = yard.wealth(*names, "requester")
    burned = _burned(yard)
    with ExitStack() as parts:
        # Its runner goes on for the other's sake, and there is nobody who could seal.
        halt = _doomed(Stage.ENDED, what="SIGSTOP")
        task, lost, stays = _run_doomed(yard, parts, names, reference.manifest(mode), slot, halt)
        yard.wait(lambda: _has_ended(lost, task) and _has_ended(stays, task), stays)
        kill(lost)
        assert not (lost.home / "tasks" / str(task) / "claim.json").exists()
        yard.settle(task, stays)
        after = yard.wealth(*names, "requester")
        root = root_of(stays, task)

    assert root == reference.root(mode)
    told = [seen.event.name for seen in yard.events(task)]
    assert (told.count("SlotPinged"), told.count("SlotEvicted")) == (1, 1)
    assert {name: after[name] - before[name] for name in after} == {
        lost.name: -_FAULT,
        stays.name: ETHER,
        "requester": -ETHER,
    }
    assert _burned(yard) - burned == _FAULT


def _burned(yard: Market) -> int:
    account = yard.requester.book.accounts.get(BURN_ADDRESS)
    return 0 if account is None else account.credit


@pytest.mark.long
def test_worker_that_was_silent_too_long_and_lives_says_so(
    yard: Market, reference: _Reference
) -> None:
    """Its runner hangs, and the agent does not: it answers for it, and keeps its slot."""
    names = [yard.name(), yard.name()]
    before = yard.wealth(*names)
    with ExitStack() as parts:
        agents = _start(yard, parts, names)
        task = yard.post(reference.manifest("sync"), **_TERMS)
        running = yard.wait_for(task, TaskState.RUNNING, agents=tuple(agents))
        holder = running.slots[1].worker
        hung = next(one for one in agents if yard.address(one.name) == holder)
        yard.wait(lambda: _runners(hung), *agents)
        [runner] = _runners(hung)
        os.kill(runner, signal.SIGSTOP)
        told: Callable[[str], bool] = lambda name: any(  # noqa: E731
            seen.event.name == name for seen in yard.events(task)
        )
        yard.wait(lambda: told("SlotPonged"), *agents)
        os.kill(runner, signal.SIGCONT)
        yard.settle(task, *agents)
        after = yard.wealth(*names)
        roots = {root_of(agent, task) for agent in agents}

    assert roots == {reference.root("sync")}
    assert not told("SlotEvicted")
    assert {after[name] - before[name] for name in names} == {ETHER}
