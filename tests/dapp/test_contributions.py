"""Whose work a run is."""

from dapp.database.models import FeedRow
from dapp.reading.contributions import contributions_of
from trainyard.protocol.ledger.book import Slot, Task
from trainyard.protocol.market import Policy, Terms

_A, _B, _GONE = "0x" + "aa" * 20, "0x" + "bb" * 20, "0x" + "cc" * 20


def task_of(*slots: Slot, lead: int = 0) -> Task:
    terms = Terms(
        manifest=bytes(32),
        env_class=bytes(32),
        policy=Policy.AUDIT,
        slots=len(slots),
        reward=1,
        stake=1,
    )
    return Task("0x" + "11" * 20, 1, terms, 0, lead=lead, slots=list(slots))


def feed(step: int, first_step: int | None) -> FeedRow:
    return FeedRow(step=step, first_step=first_step)


def test_all_of_a_cluster_have_the_same_part() -> None:
    task = task_of(Slot(_A), Slot(_B))

    assert contributions_of(task, {_A: feed(1000, 1), _B: feed(1000, 1)}) == [0.5, 0.5]


def test_who_came_late_has_not_done_what_was_before() -> None:
    task = task_of(Slot(_A), Slot(_B))
    feeds = {_A: feed(1000, 1), _GONE: feed(900, 1), _B: feed(1000, 901)}

    assert contributions_of(task, feeds) == [0.5, 0.05]


def test_what_the_slots_agreed_on_is_what_counts() -> None:
    """The leading claim's, whatever the feeds tell."""
    task = task_of(Slot(_A, shares=(5000, 5000)), Slot(_B, shares=(7500, 2500)), lead=1)

    assert contributions_of(task, {_A: feed(10, 1), _B: feed(10, 1)}) == [0.75, 0.25]


def test_nobody_knows_what_was_not_told() -> None:
    task = task_of(Slot(_A), Slot(None))

    assert contributions_of(task, {}) == [None, None]
    # Lines alone say nothing of steps; one of two has told of one.
    assert contributions_of(task, {_A: feed(0, None)}) == [None, None]
    assert contributions_of(task, {_A: feed(7, 7), _GONE: feed(0, None)}) == [1.0, None]


def test_a_feed_from_before_its_beginning_was_kept_counts_from_zero() -> None:
    task = task_of(Slot(_A), Slot(_B))

    assert contributions_of(task, {_A: feed(30, None), _B: feed(100, 91)}) == [0.75, 0.25]
