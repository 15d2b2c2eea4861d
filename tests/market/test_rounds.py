"""Runs in rounds in the market: workers that meet over the peer plane, audited and paid."""

from pathlib import Path
from typing import Any

import pytest

from tests.market.launching_agents import Agents, check_paid, running_agents
from trainyard.engine.launching import run_local
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, TaskState
from worker_agent.progress import LIVE

ROUNDS: dict[str, Any] = {"mode": "rounds", "rounds": {"local_steps": 4}}


def run_here(agents: Agents, manifest: Manifest, folder: Path) -> list[str]:
    journal = run_local(manifest, agents.files(manifest, folder / "data"), folder / "run")
    return [entry.state for entry in journal.entries]


def test_rounds_are_settled_and_come_to_what_one_machine_comes_to(tmp_path: Path) -> None:
    with running_agents(tmp_path / "net", workers=2, auditors=1) as agents:
        manifest = agents.manifest(**ROUNDS, until={"steps": 12})
        terms = agents.post(manifest, Policy.AUDIT)
        assert agents.settled() is TaskState.SETTLED
        check_paid(agents, terms)
        claims = {agents.shelf(slot).path("claim.json").read_bytes() for slot in (0, 1)}
        assert len(claims) == 1
        assert agents.states(0) == agents.states(1) == run_here(agents, manifest, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("role", ["leading", "led by"])
def test_a_worker_that_is_killed_comes_back_and_the_run_stays_the_same(
    tmp_path: Path, role: str
) -> None:
    with running_agents(tmp_path / "net", workers=2, auditors=1) as agents:
        manifest = agents.manifest(**ROUNDS, until={"steps": 60})
        terms = agents.post(manifest, Policy.AUDIT)
        agents.wait(lambda: all(_live(agents, one).get("states", 0) >= 7 for one in (0, 1)))
        [killed] = [one for one in (0, 1) if role in _live(agents, one)["phase"]]
        agents.kill(killed)
        assert _live(agents, killed)["states"] < manifest.plan.segments
        agents.start(killed)
        assert agents.settled() is TaskState.SETTLED
        check_paid(agents, terms)
        assert agents.states(0) == agents.states(1) == run_here(agents, manifest, tmp_path)


def _live(agents: Agents, number: int) -> dict[str, Any]:
    found = agents.shelf(number).read(LIVE)
    return {} if found is None else dict(found)
