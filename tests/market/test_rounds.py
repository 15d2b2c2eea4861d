"""Runs in rounds in the market: workers that meet over the peer plane, audited and paid."""

import json
from pathlib import Path

import pytest

from tests.market.launching_agents import Agents, running_agents
from trainyard.engine.launching import run_local
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, TaskState, Terms
from worker_agent.progress import LIVE

ROUNDS = {"mode": "rounds", "rounds": {"local_steps": 4}}


def paid(agents: Agents, terms: Terms) -> bool:
    fee = terms.audit_fee * terms.audits
    is_paid = [agents.credit(slot) == terms.reward for slot in range(terms.slots)]
    return all(is_paid) and agents.credit(terms.slots) == fee


def run_here(agents: Agents, manifest: Manifest, folder: Path) -> list[str]:
    journal = run_local(manifest, agents.files(manifest, folder / "data"), folder / "run")
    return [entry.state for entry in journal.entries]


def test_rounds_are_settled_and_come_to_what_one_machine_comes_to(tmp_path: Path) -> None:
    with running_agents(tmp_path / "net", workers=2, auditors=1) as agents:
        manifest = agents.manifest(**ROUNDS, until={"steps": 12})
        terms = agents.post(manifest, Policy.AUDIT)
        assert agents.settled() is TaskState.SETTLED
        assert paid(agents, terms)
        claims = {agents.shelf(slot).path("claim.json").read_bytes() for slot in (0, 1)}
        assert len(claims) == 1
        assert agents.states(0) == agents.states(1) == run_here(agents, manifest, tmp_path)


@pytest.mark.parametrize("slot", [0, 1])
def test_a_worker_that_is_killed_comes_back_and_the_run_stays_the_same(
    tmp_path: Path, slot: int
) -> None:
    with running_agents(tmp_path / "net", workers=2, auditors=1) as agents:
        manifest = agents.manifest(**ROUNDS, until={"steps": 80})
        terms = agents.post(manifest, Policy.AUDIT)
        agents.wait(lambda: _states(agents, slot) >= 7)
        agents.kill(slot)
        assert _states(agents, slot) < manifest.plan.segments
        agents.start(slot)
        assert agents.settled() is TaskState.SETTLED
        assert paid(agents, terms)
        assert agents.states(0) == agents.states(1) == run_here(agents, manifest, tmp_path)


def _states(agents: Agents, slot: int) -> int:
    path = agents.shelf(slot).path(LIVE)
    return int(json.loads(path.read_bytes())["states"]) if path.exists() else 0
