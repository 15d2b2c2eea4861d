"""The score that a run without a replay claims."""

import math
from pathlib import Path

import pytest

from trainyard.engine.errors import RunError
from trainyard.engine.journal import Measured
from trainyard.engine.scoring import Score

STATE, OTHER = "ab" * 32, "cd" * 32


def score(loss: float = 0.1 + 0.2) -> Score:
    figures = Measured(loss=loss, metrics={"accuracy": 1 / 3}, examples=40)
    return Score(state=STATE, records="test", figures=figures)


@pytest.mark.parametrize("loss", [0.1 + 0.2, 5e-324, math.inf, math.nan])
def test_score_is_kept_to_the_last_bit(tmp_path: Path, loss: float) -> None:
    score(loss).save(tmp_path)

    assert Score.load(tmp_path).text == score(loss).text


def test_scores_that_differ_in_the_last_bit_differ() -> None:
    assert score(0.3).text != score(0.1 + 0.2).text


def test_score_of_an_earlier_state_is_not_claimed() -> None:
    assert score().claimed_for(STATE) == score()
    with pytest.raises(RunError, match="has no score yet: run it again"):
        score().claimed_for(OTHER)


def test_run_without_a_score_is_not_finished(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="run it to its end first"):
        Score.load(tmp_path)


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b"[" * 100_000, b'{"version":2}'])
def test_unreadable_score_is_refused(data: bytes) -> None:
    with pytest.raises(RunError, match="somewhere has no readable score"):
        Score.read(data, "somewhere")


def figures(loss: float, **metrics: float) -> Score:
    measured = Measured(loss=loss, metrics=metrics, examples=40)
    return Score(state=STATE, records="test", figures=measured)


@pytest.mark.parametrize(
    ("claimed", "found", "is_near"),
    [
        # One of forty is on the border, and two are not.
        (figures(1.0, accuracy=0.5), figures(1.0, accuracy=0.525), True),
        (figures(1.0, accuracy=0.5), figures(1.0, accuracy=0.55), False),
        # A loss and an error have no border, however small they are.
        (figures(0.010), figures(0.020), False),
        (figures(0.5), figures(0.51), False),
        (figures(0.5), figures(0.5004), True),
        (figures(1.0, error=0.010), figures(1.0, error=0.020), False),
        (figures(1.0, error=0.010), figures(1.0, error=0.010001), True),
        # There is nothing left of them but rounding.
        (figures(1e-8), figures(3e-8), True),
        (figures(1.0, error=0.0), figures(1.0, error=1e-7), True),
    ],
)
def test_only_a_share_of_examples_has_a_border(claimed: Score, found: Score, is_near: bool) -> None:
    assert claimed.is_near(found, ("accuracy",)) is is_near
