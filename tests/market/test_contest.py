"""Contests: each slot trains alone, evaluators score every entry, and the best takes it all."""

from pathlib import Path
from typing import Any

import pytest

from tests.market.launching_agents import Agents, running_agents
from trainyard.engine.scoring import Score
from trainyard.protocol.commitments import scores_answer
from trainyard.protocol.market import Policy, TaskState
from trainyard.protocol.results import points

WORKERS, EVALUATORS = 2, 3


@pytest.mark.long
def test_every_entry_of_a_contest_is_scored_and_the_best_is_paid(tmp_path: Path) -> None:
    """rule P5"""
    with running_agents(tmp_path / "net", workers=WORKERS, auditors=EVALUATORS) as agents:
        manifest = agents.manifest(
            mode="async", workers=1, until={"steps": 12}, steps_per_segment=6
        )
        terms = agents.post(manifest, Policy.CONTEST, target=1, segments=0)
        assert agents.settled() is TaskState.SETTLED

        # Who took which slot is a matter of luck, so the entries are told apart by their claims.
        expected = {_points(agents, number) for number in range(WORKERS)}
        answers = [_answer(agents, number) for number in range(WORKERS, WORKERS + EVALUATORS)]
        assert [set(one["scores"]) for one in answers] == [expected] * EVALUATORS
        assert all(len(one["scores"]) == WORKERS for one in answers)
        assert {one["value"] for one in answers} == {scores_answer(answers[0]["scores"]).hex()}
        prize = terms.reward * WORKERS
        earned = sorted(agents.credit(number) for number in range(WORKERS))
        assert earned == [terms.stake, terms.stake + prize]
        for number in range(WORKERS, agents.count):
            assert agents.credit(number) == terms.audit_fee


def _points(agents: Agents, number: int) -> int:
    """What an entry is worth by its own worker's measure."""
    score = Score.read((agents.shelf(number).path("run", "score.json")).read_bytes(), "it")
    return points(score.figures.loss, score.figures.metrics)


def _answer(agents: Agents, number: int) -> dict[str, Any]:
    [path] = (agents.shelf(number).path("answers")).glob("*.json")
    found: dict[str, Any] = agents.shelf(number).read("answers", path.name)
    return found
