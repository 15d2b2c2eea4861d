"""No work for a task runs on when nobody can use it any more."""

import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.books import (
    ME,
    NOW,
    OTHER,
    OWN,
    PEER,
    TRAINED,
    disputed,
    seated,
    situation,
    task,
)
from tests.agent.sandboxes import probe
from tests.agent.worksites import SETTINGS, seeing, worksite
from trainyard.protocol.ledger.book import Dispute, Seat, Task
from trainyard.protocol.market import DisputeState, SeatState, TaskState
from worker_agent.actions import Action, Prepare, Recompute, Seal, Stop, Train
from worker_agent.deciding.seats import for_seats
from worker_agent.jobs import read_job
from worker_agent.lasting import SLACK_S
from worker_agent.opening import open_sandbox
from worker_agent.progress import JOBS, Shelf, answer_work
from worker_agent.runner.job import RunnerJob
from worker_agent.settings import Settings

RUNNING = task(TaskState.RUNNING)
AUDITED = seated(task(TaskState.AUDITING, (PEER,)), ME, SeatState.DRAWN)
LOST = replace(AUDITED, state=TaskState.WINDOW)
REFEREED = disputed(
    task(TaskState.DISPUTED, (PEER,)),
    5,
    Dispute(accuser=OTHER, state=DisputeState.HEARING, deadline=NOW + 70, round=1),
    [Seat(ME, 5, SeatState.DRAWN)],
)


@pytest.mark.parametrize(
    ("found", "action", "work", "wall_s"),
    [
        (RUNNING, Seal(1), "seal", 500),
        # What is shown after the end may take a while too.
        (replace(RUNNING, deadline=NOW - 900), Seal(1), "seal", 0),
        (AUDITED, Recompute(1, OWN, 0), answer_work(OWN, 0), 500),
        (LOST, Recompute(1, OWN, 0), answer_work(OWN, 0), 400),
        (REFEREED, Recompute(1, (5, 1), 0), answer_work((5, 1), 0), 70),
        # It is begun in one stage, and used in the next.
        (AUDITED, Prepare(1, "evidence"), "standby", 500 + 3600 + 600),
    ],
)
def test_work_ends_with_what_it_is_for(
    tmp_path: Path, found: Task, action: Action, work: str, wall_s: float
) -> None:
    with worksite(tmp_path) as place:
        place.site.perform(action, seeing(found))

        job = read_job(place.home.task(1) / JOBS / f"{work}.json")
    assert job.wall_s == wall_s + SLACK_S


def test_a_runner_is_told_anew_of_its_peers_and_not_of_the_time(tmp_path: Path) -> None:
    with worksite(tmp_path) as place:
        shelf = Shelf(place.home.task(1))
        place.site.perform(Train(1, 0), seeing(RUNNING))
        path = shelf.path(JOBS, "train.json")
        assert RunnerJob.read(path).wall_s == 500 + SLACK_S
        place.site.perform(Train(1, 0), seeing(RUNNING, now=NOW + 100))
        assert RunnerJob.read(path).wall_s == 500 + SLACK_S

        place.children.stop(1, "train")
        place.site.perform(Train(1, 0), seeing(RUNNING, now=NOW + 100))
        assert RunnerJob.read(path).wall_s == 400 + SLACK_S


def test_what_is_started_later_in_a_sandbox_has_less_time() -> None:
    sandbox = open_sandbox(Settings.model_validate(SETTINGS), 0.05)
    assert sandbox.limits.cpu_s is not None
    until = time.monotonic() + 0.05
    while time.monotonic() <= until:
        pass

    with sandbox.running([sys.executable, "-c", "import signal; signal.pause()"]) as process:
        assert process.breach() == "the task ran for more than 0 s"


def test_without_a_deadline_there_is_no_limit_of_time() -> None:
    sandbox = open_sandbox(Settings.model_validate(SETTINGS))
    assert (sandbox.limits.cpu_s, sandbox.limits.wall_s) == (None, None)
    assert probe(sandbox, "print('here')").output == "here\n"


def test_answers_for_a_task_that_is_over_are_not_computed_on() -> None:
    over = replace(AUDITED, state=TaskState.SETTLED)
    expected = Stop(1, "the task is over", works=(answer_work(OWN, 0),))
    assert for_seats(situation(over, TRAINED), 1, over) == [expected]
    others = seated(task(TaskState.SETTLED, (PEER,)), OTHER, SeatState.REVEALED)
    assert for_seats(situation(others), 1, others) == []
