"""A worker that is found elsewhere from now on says so, once."""

from dataclasses import replace

from tests.agent.books import CLASS, ME, NOW, situation, task
from trainyard.protocol.market import TaskState
from worker_agent.actions import Send
from worker_agent.deciding.membership import for_membership
from worker_agent.situation import Situation

OLD, NEW = b"p" * 32, b"q" * 32


def moves(s: Situation) -> list[Send]:
    found = [one for one in for_membership(s) if isinstance(one, Send)]
    return [one for one in found if one.key.startswith("profile/")]


def test_other_profile_than_the_registered_one_is_told() -> None:
    s = situation(task(TaskState.OPEN), profile=NEW)

    [move] = moves(s)
    assert move.call == s.calls.set_profile(NEW)
    # As long as it is not mined it is the same one, which is sent once.
    assert moves(replace(s, now=NOW + 1)) == [move]
    s.book.workers[ME].profile = NEW
    assert moves(s) == []


def test_who_comes_back_to_where_it_was_says_so_again() -> None:
    s = situation(task(TaskState.OPEN), profile=NEW)
    [first] = moves(s)
    s.book.workers[ME].profile = NEW
    [back] = moves(replace(s, profile=OLD))
    s.book.workers[ME].profile = OLD
    [again] = moves(replace(s, now=NOW + 3600))

    assert len({first.key, back.key, again.key}) == 3


def test_also_who_has_become_another_machine_serves_what_it_had() -> None:
    s = situation(task(TaskState.OPEN), profile=NEW, env_class=b"z" * 32)
    assert s.env_class != CLASS
    assert [move.call for move in moves(s)] == [s.calls.set_profile(NEW)]


def test_nothing_is_told_by_who_is_not_registered_or_knows_none() -> None:
    s = situation(task(TaskState.OPEN), profile=NEW)
    del s.book.workers[ME]
    assert moves(s) == []
    assert moves(situation(task(TaskState.OPEN))) == []
