"""What a dapp is told of a run: every segment's figures, however quick the run is."""

from pathlib import Path

import pytest

from trainyard.engine.events import Finished, Stepped
from trainyard.engine.journal import Entry, Measured, Validated
from worker_agent.feeding import _Feed
from worker_agent.progress import LIVE, Shelf
from worker_agent.runner.live import Live


def finish(live: Live, number: int, loss: float) -> None:
    trained = Measured(loss=loss, metrics={"accuracy": 1 - loss}, examples=32)
    live.take(
        Finished(entry=Entry(number=number, state="00" * 32, step=number * 10, trained=trained))
    )


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_segments_between_two_looks_are_all_told_and_once(shelf: Shelf) -> None:
    live, feed = Live(shelf), _Feed()
    for number in (1, 2, 3):
        finish(live, number, 1 / number)
    feed.take_live(shelf.read(LIVE))
    told = [(point["step"], round(point["values"]["loss"], 3)) for point in feed.points]
    feed.points.clear()
    finish(live, 4, 0.25)
    feed.take_live(shelf.read(LIVE))

    assert told[:3] == [(10, 1.0), (20, 0.5), (30, 0.333)]
    assert {point["step"] for point in feed.points} == {40}


def test_an_evaluation_is_told_with_the_step_that_ended_its_epoch(shelf: Shelf) -> None:
    live, feed = Live(shelf), _Feed()
    tried = Validated(loss=0.5, metrics={"accuracy": 0.75}, examples=8, epoch=0, step=6)
    entry = Entry(number=1, state="00" * 32, step=10, validated=(tried,))
    live.take(Finished(entry=entry))
    finish(live, 2, 0.25)
    feed.take_live(shelf.read(LIVE))

    assert (feed.points[0]["step"], feed.points[0]["values"]) == (
        7,
        {"val_loss": 0.5, "val_accuracy": 0.75},
    )
    # It is told once, and not as if each step of the next epoch had been evaluated.
    assert sum("val_accuracy" in point["values"] for point in feed.points) == 1


def test_metrics_are_told_with_segments_alone(shelf: Shelf) -> None:
    live, feed = Live(shelf), _Feed()
    finish(live, 1, 0.5)
    live.take(Stepped(step=14, loss=0.4, examples_per_s=100.0))
    live.write(now=True)
    feed.take_live(shelf.read(LIVE))

    told = {point["step"]: point["values"] for point in feed.points}
    assert told[10]["accuracy"] == 0.5
    assert told[15]["loss"] == 0.4
    assert "accuracy" not in told[15]


def test_the_pace_is_that_of_segments_and_told_once_it_is_known(shelf: Shelf) -> None:
    live, feed = Live(shelf), _Feed()
    live.write(now=True)
    feed.take_live(shelf.read(LIVE))
    assert all("examples_per_s" not in point["values"] for point in feed.points)
    feed.points.clear()
    live.take(Stepped(step=4, loss=0.4, examples_per_s=3.0))
    trained = Measured(loss=0.5, metrics={}, examples=32)
    entry = Entry(number=1, state="00" * 32, step=10, trained=trained, train_s=0.1)
    live.take(Finished(entry=entry))
    feed.take_live(shelf.read(LIVE))

    assert {point["values"]["examples_per_s"] for point in feed.points} == {320.0}


def test_a_loss_that_is_no_number_is_left_out(shelf: Shelf) -> None:
    live, feed = Live(shelf), _Feed()
    finish(live, 1, float("inf"))
    feed.take_live(shelf.read(LIVE))

    assert all("loss" not in point["values"] for point in feed.points)


def test_a_long_run_is_shown_by_its_last_segments(shelf: Shelf) -> None:
    live = Live(shelf)
    for number in range(1, 200):
        finish(live, number, 0.5)

    assert [one["step"] for one in shelf.read(LIVE)["recent"]][-1] == 1990
    assert len(shelf.read(LIVE)["recent"]) < 100


def test_why_a_task_is_given_up_is_told_of_that_task_alone() -> None:
    feed = _Feed()
    given_up = {"event": "lost", "level": "warning", "task_id": 3, "reason": "too much memory"}
    feed.take_lines(3, [given_up, given_up | {"task_id": 4}])

    [line] = feed.lines
    assert (line["level"], line["text"]) == ("warning", "lost reason=too much memory")
