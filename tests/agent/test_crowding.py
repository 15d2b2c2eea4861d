"""Several agents on one machine: they take turns, and do not all run for the same task."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.agent.books import ME, PEER, TRAINED, situation, task, terms
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import Policy, TaskState
from worker_agent.actions import Fetch, MakeCard, Send
from worker_agent.crowding import Turns, needs_turn
from worker_agent.deciding import decide
from worker_agent.deciding.offers import for_offers, why_not
from worker_agent.progress import Progress
from worker_agent.situation import Situation

_HOLDER = """
import sys, time
from pathlib import Path
from worker_agent.crowding import Turns
print(Turns(1, Path(sys.argv[1])).take(), flush=True)
turns = Turns(1, Path(sys.argv[1]))
print(turns.take(), flush=True)
time.sleep(600)
"""


def test_only_so_many_have_a_turn(tmp_path: Path) -> None:
    first, second, third = (Turns(2, tmp_path) for _ in range(3))
    assert first.take()
    assert second.take()
    assert not third.take()
    assert first.take()
    first.give_back()
    assert third.take()
    assert not first.take()
    for one in (second, third):
        one.give_back()


def test_without_a_number_there_is_always_room(tmp_path: Path) -> None:
    assert Turns(None, tmp_path / "none").take()
    assert not (tmp_path / "none").exists()


def test_turn_ends_with_the_agent_however_that_ends(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        # Whoever has forgotten that it has one keeps it all the same.
        assert [holder.stdout.readline().strip() for _ in range(2)] == ["True", "False"]
        mine = Turns(1, tmp_path)
        assert not mine.take()
        holder.send_signal(signal.SIGKILL)
        holder.wait(20)
        assert mine.take()
        mine.give_back()


def offer(slots: int = 1, joined: int = 0) -> Task:
    found = task(TaskState.OPEN, workers=(), terms=terms(Policy.REPLICATE, slots=slots))
    return replace(found, joined=joined)


def offered(tasks: dict[int, Task], me: str = ME, progress: Progress | None = None) -> Situation:
    s = situation(tasks[1], me=me)
    known = progress or replace(TRAINED, claim=None, card=None)
    return replace(s, book=replace(s.book, tasks=tasks), progress=dict.fromkeys(tasks, known))


def first_of(s: Situation) -> int:
    [action] = [one for one in for_offers(s) if isinstance(one, MakeCard)]
    return action.task


def test_who_has_no_turn_takes_nothing_and_says_why() -> None:
    s = replace(offered({1: offer()}), is_crowded=True)
    assert decide(s) == []
    assert [one.why for one in why_not(s, 1)] == ["other agents of this machine have their turn"]


def test_agents_do_not_all_run_for_the_same_task() -> None:
    tasks = {number: offer() for number in range(1, 41)}
    chosen = {first_of(offered(tasks, f"0x{who:040x}")) for who in range(1, 4)}
    assert len(chosen) == 3
    assert first_of(offered(tasks)) == first_of(offered(tasks))


def test_agents_meet_in_joint_tasks() -> None:
    tasks = {1: offer(slots=2), 2: offer(slots=2), 3: offer(slots=2, joined=1), 4: offer()}
    for me in (ME, PEER):
        assert first_of(offered(tasks, me)) == 3
        assert first_of(offered({1: tasks[1], 2: tasks[2]}, me)) == 1


def test_no_more_is_fetched_than_is_soon_taken() -> None:
    tasks = {number: offer() for number in range(1, 11)}
    nothing = offered(tasks, progress=Progress())
    assert len([one for one in for_offers(nothing) if isinstance(one, Fetch)]) == 2
    two = dict.fromkeys((1, 2), replace(TRAINED, claim=None, card=None))
    assert not [one for one in for_offers(replace(nothing, progress=two)) if isinstance(one, Fetch)]


def test_turn_is_needed_from_the_fetch_until_the_result_is_here() -> None:
    early = offered({1: offer()}, progress=Progress())
    assert needs_turn(early, decide(early))
    carded = offered({1: offer()})
    assert needs_turn(carded, decide(carded))
    joining = offered({1: offer()}, progress=replace(TRAINED, claim=None))
    assert any(isinstance(one, Send) for one in decide(joining))
    assert needs_turn(joining, decide(joining))

    ours = task(TaskState.RUNNING, terms=terms(Policy.REPLICATE, slots=1))
    training = situation(ours, replace(TRAINED, claim=None))
    assert needs_turn(training, decide(training))
    done = situation(ours, TRAINED)
    assert not needs_turn(done, decide(done))
    # Whoever waits for others to join keeps nobody of this machine from being one of them.
    waiting = situation(replace(offer(slots=2, joined=1), slots=ours.slots * 2))
    assert not needs_turn(waiting, [])
