"""Async runs in the market: one leads, all others compute for it, and the result is scored."""

from pathlib import Path

from tests.market.launching_agents import check_paid, running_agents
from trainyard.protocol.market import Policy, TaskState


def test_an_async_run_of_two_classes_is_scored_settled_and_paid(tmp_path: Path) -> None:
    """Where nothing is replayed workers need not be of one class. Evaluators are of the task's."""
    with running_agents(tmp_path / "net", workers=2, auditors=3, strangers=[1]) as agents:
        assert agents.other_class != agents.env_class
        manifest = agents.manifest(mode="async", until={"steps": 12}, steps_per_segment=6)
        terms = agents.post(manifest, Policy.SCORE, target=1, segments=0)
        assert agents.settled() is TaskState.SETTLED
        check_paid(agents, terms)
        assert agents.states(0) == agents.states(1)
        claims = {agents.shelf(number).path("claim.json").read_bytes() for number in (0, 1)}
        assert len(claims) == 1
