"""What the gauntlet asks of its own figures."""

from dataclasses import replace
from pathlib import Path

import numpy as np

import tests.quiet_web3  # noqa: F401
from benchmarks.gauntlet import _CHEATS, Found, _joint, goal_of, missed, show
from benchmarks.gauntlet_nets import write_records
from trainyard.engine.worker import Job


def test_a_cheat_that_is_caught_too_seldom_and_an_honest_one_that_pays_are_missed() -> None:
    figures = {"skip_detected": 0.9, "chain_as_drawn": 1.0, "honest_slashed": 0}
    goals = {"skip_detected": 0.9, "chain_as_drawn": 1.0}
    assert missed(figures, goals) == []
    assert missed(figures | {"skip_detected": 0.89}, goals) == ["skip_detected"]
    assert missed(figures | {"honest_slashed": 1}, goals) == ["honest_slashed"]


def test_an_auditor_that_finds_nothing_misses_every_goal() -> None:
    blind = [Found(one, (False,) * 16) for one in _CHEATS]
    figures, goals = show(blind, draws=50)
    assert missed(figures, goals) == [f"{one.name}_detected" for one in _CHEATS]
    assert min(map(goal_of, _CHEATS)) > 0.6


def test_garbage_is_sent_by_one_worker_of_a_cluster_to_an_honest_one(tmp_path: Path) -> None:
    """Not put into the place of what somebody alone has trained: that is another figure."""
    [garbage] = [one for one in _CHEATS if one.name == "garbage"]
    write_records(tmp_path / "records")
    own = Job(manifest=tmp_path / "m", folder=tmp_path / "run", train=tmp_path / "records")

    first, second = _joint(garbage, own).jobs

    assert garbage.manifest.training.mode == "sync"
    assert (first.slot, second.slot, len(set(first.peers))) == (0, 1, 2)
    assert first.train == own.train
    right, wrong = (np.load(one.train / "image.npy") for one in (first, second))
    assert sorted(right.flat) == sorted(wrong.flat)
    assert (right != wrong).any()
    honest = replace(garbage, plan=None)
    assert {one.train for one in _joint(honest, own).jobs} == {own.train}
