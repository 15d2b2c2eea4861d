"""Workers of one cluster that are killed: they come back, or somebody else takes their place."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest

from tests.market.yard import TRAINER, Market, kill, live_of, root_of
from trainyard.devnet.agents import Agent, start_agent
from trainyard.devnet.options import DEVNET_PARAMS, ETHER
from trainyard.engine.launching import run_local
from trainyard.engine.material import fetch_files
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import BURN_ADDRESS, TaskState

_SEGMENTS = 8
# Nobody audits here: what is computed is compared with a run of our own.
_TERMS: dict[str, Any] = {"audits": 0, "min_audits": 0, "answer_for": 12, "train_for": 900}
_FAULT = ETHER * DEVNET_PARAMS.fault_bps // 10_000


@pytest.fixture(scope="module")
def manifest(yard: Market) -> Manifest:
    return yard.manifest(mode="sync", workers=2, segments=_SEGMENTS)


@pytest.fixture(scope="module")
def root(yard: Market, manifest: Manifest, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the task has to come to, whatever happens on the way."""
    folder = tmp_path_factory.mktemp("reference")
    files = fetch_files(manifest, yard.content, folder / "data")
    return run_local(manifest, files, folder / "run").trace.root.hex()


def _is_waiting(agent: Agent, task: int) -> bool:
    return live_of(agent, task).get("phase") == "waiting for peers"


def _is_training(agent: Agent, task: int) -> bool:
    live = live_of(agent, task)
    return live.get("phase") == "training" and live.get("states", 0) >= 2


def _has_ended(agent: Agent, task: int) -> bool:
    return (agent.home / "tasks" / str(task) / "run" / "ended").exists()


def _pair(yard: Market, parts: ExitStack, names: list[str]) -> list[Agent]:
    agents = [start_agent(yard.devnet, name, TRAINER) for name in names]
    for agent in agents:
        parts.callback(agent.stop)
    yard.wait_for_workers(*agents)
    return agents


@pytest.mark.long
def test_worker_that_is_killed_in_each_phase_and_comes_back_computes_the_same(
    yard: Market, manifest: Manifest, root: str
) -> None:
    names = [yard.name(), yard.name()]
    before = yard.wealth(*names)
    phases: list[Callable[[Agent, int], bool]] = [_is_waiting, _is_training, _has_ended]
    with ExitStack() as parts:
        killed, other = _pair(yard, parts, names)
        task = yard.post(manifest, **_TERMS)
        for phase in phases:
            yard.wait(lambda: phase(killed, task), killed, other)  # noqa: B023
            assert not (killed.home / "tasks" / str(task) / "claim.json").exists()
            kill(killed)
            killed = start_agent(yard.devnet, names[0], TRAINER)
            parts.callback(killed.stop)
        yard.settle(task, killed, other)
        after = yard.wealth(*names)
        roots = {root_of(agent, task) for agent in (killed, other)}

    assert roots == {root}
    assert {after[name] - before[name] for name in names} == {ETHER}


def test_worker_that_never_comes_back_is_evicted_and_replaced_and_pays_for_it(
    yard: Market, manifest: Manifest, root: str
) -> None:
    names = [yard.name(), yard.name(), yard.name()]
    before = yard.wealth(*names, "requester")
    burned = _burned(yard)
    with ExitStack() as parts:
        agents = _pair(yard, parts, names[:2])
        task = yard.post(manifest, **_TERMS)
        running = yard.wait_for(task, TaskState.RUNNING, agents=tuple(agents))
        # Whoever has the first slot is the first to see to the task.
        holder = running.slots[1].worker
        lost, stays = sorted(agents, key=lambda one: yard.address(one.name) != holder)
        yard.wait(lambda: _is_training(lost, task), *agents)
        kill(lost)
        kept = live_of(stays, task)["states"]
        new = start_agent(yard.devnet, names[2], TRAINER)
        parts.callback(new.stop)
        settled = yard.settle(task, stays, new)
        after = yard.wealth(*names, "requester")
        roots = {root_of(agent, task) for agent in (stays, new)}

    assert roots == {root}
    assert kept >= 2
    told = [seen.event.name for seen in yard.events(task)]
    assert told.count("SlotEvicted") == 1
    # Who came instead may have been asked too, if it was slow to begin, and answered.
    assert told.count("SlotPinged") - told.count("SlotPonged") == 1
    assert settled.slots[1].worker == yard.address(new.name)
    assert {name: after[name] - before[name] for name in after} == {
        lost.name: -_FAULT,
        stays.name: ETHER,
        new.name: ETHER,
        "requester": -2 * ETHER,
    }
    assert _burned(yard) - burned == _FAULT


def _burned(yard: Market) -> int:
    account = yard.requester.book.accounts.get(BURN_ADDRESS)
    return 0 if account is None else account.credit


@pytest.mark.long
def test_worker_that_was_silent_too_long_and_lives_says_so(
    yard: Market, manifest: Manifest, root: str
) -> None:
    """Its runner hangs, and the agent does not: it answers for it, and keeps its slot."""
    import os
    import signal

    import psutil

    names = [yard.name(), yard.name()]
    before = yard.wealth(*names)
    with ExitStack() as parts:
        agents = _pair(yard, parts, names)
        task = yard.post(manifest, **_TERMS)
        running = yard.wait_for(task, TaskState.RUNNING, agents=tuple(agents))
        holder = running.slots[1].worker
        hung = next(one for one in agents if yard.address(one.name) == holder)
        yard.wait(lambda: _is_training(hung, task), *agents)
        [runner] = [
            child.pid
            for child in psutil.Process(hung.child.pid).children()
            if "worker_agent.runner" in child.cmdline()
        ]
        os.kill(runner, signal.SIGSTOP)
        told: Callable[[str], bool] = lambda name: any(  # noqa: E731
            seen.event.name == name for seen in yard.events(task)
        )
        yard.wait(lambda: told("SlotPonged"), *agents)
        os.kill(runner, signal.SIGCONT)
        yard.settle(task, *agents)
        after = yard.wealth(*names)
        roots = {root_of(agent, task) for agent in agents}

    assert roots == {root}
    assert not told("SlotEvicted")
    assert {after[name] - before[name] for name in names} == {ETHER}
