"""How figures are told: one without a goal stands beside the others, and is never missed."""

import json
import math
import os
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from benchmarks.market import _stepped_s
from benchmarks.reporting import Figure, report


def test_figure_without_a_goal_is_told_and_judges_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    figures = [
        Figure("kept", "with a goal", 3.0, 15.0),
        Figure("told", "only told", 70.0, math.inf),
    ]

    assert report("Figures", figures, "") == 0

    *table, line = capsys.readouterr().out.splitlines()
    assert json.loads(line) == {"kept": 3.0, "told": 70.0}
    [row] = [one for one in table if "only told" in one]
    assert "70" in row
    assert "met" not in row
    assert "inf" not in row


def test_steps_last_from_the_state_before_the_first_to_that_after_the_last(tmp_path: Path) -> None:
    states = tmp_path / "run" / "states"
    states.mkdir(parents=True)
    for number, at in enumerate((100, 130, 145)):
        (states / f"{number:06}.safetensors").touch()
        os.utime(states / f"{number:06}.safetensors", (at, at))
    assert _stepped_s(tmp_path) == 45
