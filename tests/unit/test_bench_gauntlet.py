"""What the gauntlet asks of its own figures."""

import tests.quiet_web3  # noqa: F401
from benchmarks.gauntlet import missed


def test_a_cheat_that_is_caught_too_seldom_and_an_honest_one_that_pays_are_missed() -> None:
    figures = {"skip_detected": 0.9, "chain_as_drawn": 1.0, "honest_slashed": 0}
    goals = {"skip_detected": 0.9, "chain_as_drawn": 1.0}
    assert missed(figures, goals) == []
    assert missed(figures | {"skip_detected": 0.89}, goals) == ["skip_detected"]
    assert missed(figures | {"honest_slashed": 1}, goals) == ["honest_slashed"]
