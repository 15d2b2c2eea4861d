"""What is begun before it is asked for, and by whom: pure decisions."""

from dataclasses import replace
from typing import Any

import pytest

from tests.agent.books import (
    CLASS,
    FETCHED,
    ME,
    MEMBER,
    OWN,
    PEER,
    STAKE,
    TRAINED,
    seated,
    situation,
    task,
    terms,
)
from trainyard.protocol.ledger.book import Panel, Task, Worker
from trainyard.protocol.market import Policy, SeatState, TaskState
from worker_agent.actions import Action, Prepare
from worker_agent.deciding import decide
from worker_agent.machine import memory_for_tasks
from worker_agent.policy import Policy as Wanted
from worker_agent.progress import Failure, Progress, Shelf
from worker_agent.situation import Situation

TRAINING = Progress(fetched=FETCHED, card=b"k" * 32, left_s=5.0)
LATER = Failure("no", 1, again_at=50.0)


def prepared(s: Situation) -> list[Action]:
    return [action for action in decide(s) if isinstance(action, Prepare)]


def joint(**changes: Any) -> Task:
    return task(TaskState.RUNNING, workers=(ME, PEER), **changes)


def test_near_the_end_of_joint_training_an_auditor_stands_by() -> None:
    assert prepared(situation(joint(), TRAINING)) == [Prepare(1, "run")]


@pytest.mark.parametrize(
    "progress",
    [
        replace(TRAINING, left_s=None),
        replace(TRAINING, left_s=3600.0),
        replace(TRAINING, left_s=float("nan")),
        # Training and audit together would need more than the operator gives.
        replace(TRAINING, fetched=replace(FETCHED, memory_bytes=memory_for_tasks())),
        replace(TRAINING, failures={"standby": LATER}),
        replace(TRAINING, failures={"seal": LATER}),
        TRAINED,
    ],
)
def test_else_nothing_is_kept_ready(progress: Progress) -> None:
    assert prepared(situation(joint(), progress)) == []


def test_who_does_not_audit_itself_needs_no_auditor() -> None:
    assert prepared(situation(joint(), TRAINING, policy=Wanted(self_audits=0))) == []
    assert prepared(situation(task(TaskState.RUNNING), TRAINING)) == []
    replicated = terms(Policy.REPLICATE, slots=2, audits=0, min_audits=0)
    assert prepared(situation(joint(terms=replicated), TRAINING)) == []


def test_who_has_submitted_is_ready_to_serve_without_tensorflow() -> None:
    assert prepared(situation(task(TaskState.SUBMITTED), TRAINED)) == [Prepare(1, None)]
    drawn = seated(task(TaskState.AUDITING), MEMBER, SeatState.DRAWN)
    assert prepared(situation(drawn, TRAINED)) == []


def called(pool: int, seed: bytes = bytes(32), **changes: Any) -> Task:
    found = task(TaskState.SUBMITTED, workers=(PEER,), **changes)
    return replace(found, panels={OWN: Panel(draw_block=200, called_at=0, pool=pool, seed=seed)})


def as_member(found: Task, **changes: Any) -> Situation:
    s = situation(found, Progress(), **changes)
    s.book.workers[ME] = Worker(CLASS, b"p" * 32, bond=STAKE, pool_index=1)
    return s


def test_member_that_is_as_likely_drawn_as_not_stands_by() -> None:
    assert prepared(as_member(called(pool=1))) == [Prepare(1, "evidence")]
    assert prepared(as_member(called(pool=2))) == [Prepare(1, "evidence")]


def test_many_members_do_not_start_tensorflow_for_one_seat() -> None:
    assert prepared(as_member(called(pool=3))) == []


def test_member_that_cannot_be_drawn_does_not_stand_by() -> None:
    other_class = terms(env_class=b"d" * 32)
    assert prepared(as_member(called(pool=1, terms=other_class))) == []
    assert prepared(as_member(called(pool=1, requester=ME))) == []
    assert prepared(as_member(called(pool=1, seed=b"s" * 32))) == []
    busy = as_member(called(pool=1))
    busy.book.workers[ME].bond_locked = STAKE
    assert prepared(busy) == []
    outside = as_member(called(pool=1))
    outside.book.workers[ME].pool_index = 0
    assert prepared(outside) == []


@pytest.mark.parametrize(
    ("live", "left_s"),
    [
        ({}, None),
        ({"phase": "waiting for peers", "states": 0, "segments": 0, "train_s": 0.0}, None),
        # Nothing is known of its pace yet but the estimate.
        ({"phase": "training", "states": 0, "segments": 0, "train_s": 0.0}, 36.0),
        ({"phase": "training", "states": 1, "segments": 8, "train_s": 0.0}, 36.0),
        ({"states": 3, "segments": 8, "train_s": 10.0, "timed": 2}, 30.0),
        ({"states": 9, "segments": 8, "train_s": 40.0, "timed": 8}, 0.0),
        # Resumed after six states: only what was done since says how long one takes.
        ({"states": 7, "segments": 8, "train_s": 5.0, "timed": 1}, 10.0),
    ],
)
def test_what_is_left_is_known_by_what_it_took(
    tmp_path: Any, live: dict[str, Any], left_s: float | None
) -> None:
    shelf = Shelf(tmp_path)
    fetched = {
        "mode": "sync",
        "workers": 2,
        "segments": 8,
        "hours": 0.01,
        "memory_bytes": 1,
        "disk_bytes": 1,
    }
    shelf.write(fetched, "fetched.json")
    shelf.write(live, "live.json")

    assert shelf.progress().left_s == left_s
