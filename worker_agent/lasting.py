"""How long the work for a task may run: what comes after its deadline is of no use to anybody."""

from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import OWN_PANEL, TaskState

# The next stage may be known a little late, and the chain's time goes by leaps.
SLACK_S = 120.0


def stage_s(task: Task, now: int) -> float:
    """Of work for the stage that a task is in."""
    return _until(task.deadline, now)


def answer_s(task: Task, panel: tuple[int, int], now: int) -> float:
    """Of finding what a seat of a panel answers, or finding it again so as to reveal it."""
    segment, _ = panel
    if segment != OWN_PANEL:
        return _until(task.disputes[segment].deadline, now)
    is_revealing = task.state in (TaskState.WINDOW, TaskState.DISPUTED)
    return _until(task.own_panel.reveal_by if is_revealing else task.deadline, now)


def standby_s(task: Task, now: int) -> float:
    """Of what is begun in one stage for the next: it waits for the draw, and is then used once."""
    return stage_s(task, now) + task.terms.audit_for + task.terms.answer_for


def _until(deadline: int, now: int) -> float:
    return max(0, deadline - now) + SLACK_S
