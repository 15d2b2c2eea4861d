"""Whose work a run is, as far as its workers tell. No I/O."""

from collections.abc import Mapping

from dapp.database.models import FeedRow
from trainyard.protocol.ledger.book import Task

_SHARES = 10_000


def contributions_of(task: Task, feeds: Mapping[str, FeedRow]) -> list[float | None]:
    """The part of each slot's worker in the work, 0 to 1; None where nobody knows.

    Of what the slots have agreed on, or else of the steps that all took, those who left included:
    in one cluster all are at the same step, and who came late has not done what was before.
    """
    shares = task.slots[task.lead].shares
    if shares:
        return [share / _SHARES for share in shares]
    done = {who: _steps_of(feed) for who, feed in feeds.items()}
    total = sum(done.values())
    return [
        done.get(slot.worker, 0) / total if total and slot.worker is not None else None
        for slot in task.slots
    ]


def _steps_of(feed: FeedRow) -> int:
    """Since its first point, with the one that this tells of."""
    if feed.first_step is None:
        return feed.step
    return max(0, feed.step - feed.first_step) + 1
