"""Which tasks are over for good, so that what they left here can go."""

from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from worker_agent.actions import Action, Forget
from worker_agent.deciding.draining import has_live_dispute
from worker_agent.situation import ENDED, Situation, is_behind, slots_of

_HOUR_S = 3600


def for_past(s: Situation) -> list[Action]:
    """All at once: to make room in the store means to look through it."""
    due = tuple(number for number in sorted(s.ended) if _is_due(s, number))
    return [Forget(due)] if due else []


def is_at_rest(s: Situation, number: int, task: Task) -> bool:
    """Whether nothing more can come of what lies in the folder of a task."""
    if task.state not in ENDED:
        return False
    held, progress = slots_of(task, s.me), s.of(number)
    is_paid = task.state is TaskState.SETTLED and bool(held) and is_behind(task, held[0])
    is_shown = progress.is_open or progress.trace is None
    return is_shown or not is_paid


def _had_part(s: Situation, task: Task) -> bool:
    """Whether we were in it: of what was only looked at nobody will ever ask for anything."""
    seats = (seat for panel in task.panels.values() for seat in panel.seats)
    return any(one.worker == s.me for one in task.slots) or any(one.member == s.me for one in seats)


def _is_due(s: Situation, number: int) -> bool:
    task, since = s.book.tasks[number], s.ended[number]
    # INVARIANT: nothing of a task goes that the market could still ask for.
    is_over = task.state in ENDED and not has_live_dispute(task)
    is_kept = _had_part(s, task) and s.now < since.at + s.policy.keep_hours * _HOUR_S
    return is_over and not is_kept and s.is_settled(since.block)
