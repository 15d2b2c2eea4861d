"""A peer that begins anew for ever has nobody else give up, and is asked for a sign of life."""

import json
from pathlib import Path

from tests.agent.books import FETCHED, ME, NOW, PEER, situation, task, terms
from trainyard.protocol.market import TaskState
from worker_agent.actions import Send
from worker_agent.commands.wording import task_lines
from worker_agent.deciding import decide
from worker_agent.progress import LIVE, Progress, Shelf
from worker_agent.reporting import task_reports
from worker_agent.runner.live import Live
from worker_agent.runner.losing import MOST_LOSSES, Losses
from worker_agent.runner.sync import Standing, _is_with
from worker_agent.settings import Home

HOUR_S = 3600.0


def losses() -> Losses:
    return Losses(clock=lambda: 5.0)


def test_restarts_of_a_peer_are_never_our_failure() -> None:
    counted = losses()
    for number in range(10 * MOST_LOSSES):
        # Also if ours ended for want of it.
        assert counted.note(3, {1}, is_own=number % 2 == 0) == number + 1
        assert not counted.is_hopeless
    assert counted.own == 0
    assert counted.restless == {1: 5.0}


def test_who_is_lost_while_all_others_are_there_has_something_broken_of_its_own() -> None:
    counted = losses()
    for _ in range(MOST_LOSSES):
        assert not counted.is_hopeless
        counted.note(3, (), is_own=True)
    assert counted.is_hopeless
    assert counted.restless == {}


def test_a_loss_that_nobody_is_known_for_counts_against_nobody() -> None:
    counted = losses()
    for _ in range(2 * MOST_LOSSES):
        counted.note(3, ())
    assert (counted.is_hopeless, counted.restless) == (False, {})


def test_a_new_state_or_a_new_holder_is_a_new_beginning() -> None:
    counted = losses()
    for _ in range(MOST_LOSSES):
        counted.note(3, {1, 2})
    counted.leave(1)
    assert list(counted.restless) == [2]
    assert counted.note(4, {2}) == 1
    assert counted.restless == {}


def test_a_peer_is_with_us_only_as_the_one_we_began_with() -> None:
    said = Standing(generation=4, phase="running", states=1, name="it", met={})
    assert _is_with(said, 4, "it")
    assert not _is_with(said, 3, "it")
    assert not _is_with(said, 4, "before")
    assert not _is_with(None, 4, "it")


def test_restless_peer_is_shown_as_silent_and_asked_for_a_sign_of_life(tmp_path: Path) -> None:
    live = Live(Shelf(tmp_path))
    live.restless = {1: -HOUR_S}
    live.write(now=True)
    shown = json.loads((tmp_path / LIVE).read_text())
    assert shown["restless"] == [1]
    assert shown["silent"]["1"] > HOUR_S

    running = task(TaskState.RUNNING, (ME, PEER), terms=terms(slots=2), deadline=NOW + 9_000)
    progress = Progress(fetched=FETCHED, card=b"k" * 32, silent={1: shown["silent"]["1"]})
    sent = [one.key for one in decide(situation(running, progress)) if isinstance(one, Send)]
    assert sent == [f"1/ping/1/0/{PEER}"]


def test_who_holds_a_run_up_is_told_from_who_is_silent(tmp_path: Path) -> None:
    shelf = Shelf(Home(tmp_path).task(1))
    live = Live(shelf, restless={1: 0.0, 2: 0.0}, silent={2: 0.0})
    live.write(now=True)
    held = task(TaskState.RUNNING, (ME, PEER), terms=terms(slots=2))

    [told] = task_reports(Home(tmp_path), situation(held).book, ME, NOW, 5, ended=False)

    training = told["training"]
    assert (training["silent_slots"], training["awaited_slots"]) == ([2], [1])
    said = "\n".join(task_lines(told))
    assert "nothing heard of slots [2]" in said
    assert "held up by slots [1]" in said
