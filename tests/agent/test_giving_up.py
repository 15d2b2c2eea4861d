"""When an agent gives a task up, and that whoever has given up makes room for another."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.agent.books import FETCHED, ME, NOW, PEER, situation, task, terms
from trainyard.engine.events import Finished
from trainyard.engine.journal import Entry
from trainyard.protocol.market import TaskState
from worker_agent.actions import Action, Send, Stop, Train
from worker_agent.children import Done
from worker_agent.deciding import decide
from worker_agent.endings import is_permanent
from worker_agent.limits import Ending, Limits, explain
from worker_agent.progress import LIVE, Failure, Progress, Shelf
from worker_agent.runner.live import Live
from worker_agent.situation import Situation

NO_ROOM = Ending(1, said="OSError: [Errno 28] No space left on device")
TRAINING = Progress(fetched=FETCHED, card=b"k" * 32, left_s=100.0, segment_s=20.0)
RUNNING = task(TaskState.RUNNING, (ME, PEER))


def keys(s: Situation) -> list[str]:
    return [one.key for one in decide(s) if isinstance(one, Send)]


def kinds(s: Situation) -> set[type[Action]]:
    return {type(one) for one in decide(s)}


def with_left(until_s: int, **changes: Any) -> Situation:
    """Training that seems to take 100 s more, of which a segment takes 20."""
    progress = replace(TRAINING, **changes)
    return situation(RUNNING, progress, now=RUNNING.deadline - until_s, margin_s=30.0)


@pytest.mark.parametrize(
    ("left_s", "goes_on"),
    [
        (200, True),
        # A machine that was busy for a while is not slow, and a segment may be all but done.
        (100, True),
        (95, True),
        (93, False),
        (60, False),
    ],
)
def test_what_takes_longer_than_is_left_is_given_up_but_not_for_noise(
    left_s: int, goes_on: bool
) -> None:
    s = with_left(left_s)
    assert (Train in kinds(s)) is goes_on
    assert (Stop in kinds(s)) is not goes_on


@pytest.mark.parametrize("left", [{"segment_s": None}, {"left_s": None}, {"left_s": float("nan")}])
def test_an_estimate_from_before_is_no_reason_to_give_up(left: dict[str, Any]) -> None:
    assert Train in kinds(with_left(60, **left))


def test_who_has_given_up_gives_no_sign_of_life() -> None:
    pinged = replace(RUNNING, slots=[replace(RUNNING.slots[0], pong_by=NOW + 50), RUNNING.slots[1]])
    pong = f"1/pong/0/{NOW + 50}"
    assert pong in keys(situation(pinged, TRAINING))
    slow = replace(TRAINING, left_s=5000.0)
    assert pong not in keys(situation(pinged, slow))
    late = replace(pinged, deadline=NOW + 20)
    assert pong not in keys(situation(late, TRAINING))


def test_training_that_fails_for_good_is_tried_a_few_times_only() -> None:
    def failed(permanent: int) -> Situation:
        failures = {"train": Failure("no", 9, 0.0, permanent=permanent)}
        pinged = replace(RUNNING.slots[0], pong_by=NOW + 50)
        found = replace(RUNNING, slots=[pinged, RUNNING.slots[1]])
        return situation(found, replace(TRAINING, failures=failures))

    assert Train in kinds(failed(2))
    assert Train not in kinds(failed(3))
    assert not [key for key in keys(failed(3)) if "/pong/" in key]


def test_only_failures_for_good_without_progress_between_count(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path)

    def permanent() -> int:
        return shelf.progress().failures["train"].permanent

    shelf.note("train", "the disk is full")
    assert permanent() == 0
    for count in (1, 2, 3):
        shelf.note("train", "too much memory", is_permanent=True)
        assert permanent() == count
    shelf.write({"states": 4, "segments": 8}, LIVE)
    shelf.note("train", "too much memory", is_permanent=True)
    assert permanent() == 1


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ('{"reason": "no", "is_permanent": true}', True),
        ('{"reason": "no", "is_permanent": false}', False),
        ('{"reason": "no"}', False),
        ('{"reason": "[Errno 28] No space left on device", "is_permanent": true}', False),
        (json.dumps({"reason": explain(NO_ROOM, Limits()), "is_permanent": True}), False),
        ("Killed", False),
        ("", False),
    ],
)
def test_who_was_ended_from_outside_may_try_again(
    tmp_path: Path, said: str, expected: bool
) -> None:
    assert is_permanent(Done(1, "train", 1, said), tmp_path) is expected


def test_segments_that_were_there_before_do_not_make_it_look_faster(tmp_path: Path) -> None:
    live = Live(Shelf(tmp_path), states=6, segments=8)
    live.take(Finished(slot=0, entry=Entry(number=6, state="0" * 64, step=60, train_s=7.0)))
    progress = Shelf(tmp_path).progress()
    assert (progress.segment_s, progress.left_s) == (7.0, 14.0)


def test_who_drains_leaves_what_has_not_begun_and_nothing_else() -> None:
    waiting = task(TaskState.OPEN, (ME,), terms=terms(slots=2))
    assert "1/leave/0" not in keys(situation(waiting, TRAINING))
    assert "1/leave/0" in keys(situation(waiting, TRAINING, is_draining=True))
    assert "1/leave/0" not in keys(situation(RUNNING, TRAINING, is_draining=True))
    past = replace(waiting, deadline=NOW)
    assert "1/leave/0" not in keys(situation(past, TRAINING, is_draining=True))
