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
