"""What anyone may do, done for the tasks in which we have money."""

from trainyard.protocol.ledger.book import Dispute, Task
from trainyard.protocol.market import DisputeState, Policy, TaskState
from worker_agent.actions import Action, Send
from worker_agent.situation import ENDED, TURN_S, Situation, parties

_LIVE = (
    DisputeState.UNSERVED,
    DisputeState.CALLED,
    DisputeState.HEARING,
    DisputeState.RULING,
)


def for_upkeep(s: Situation, number: int, task: Task) -> list[Action]:
    if task.state in ENDED and not task.disputes:
        return []
    concerned = parties(task)
    if s.me not in concerned:
        return []
    # One after the other, so that not all pay for what one can do.
    wait_s = concerned.index(s.me) * TURN_S
    actions = list[Action]()
    for segment, dispute in task.disputes.items():
        actions += _dispute(s, number, task, segment, dispute, wait_s)
    if task.state in ENDED:
        return actions
    actions += _evictions(s, number, task, wait_s)
    return actions + _stage(s, number, task, wait_s)


def _stage(s: Situation, number: int, task: Task, wait_s: int) -> list[Action]:
    is_over = s.now >= task.deadline + wait_s
    expire = Send(f"{number}/expire/{task.state.name}/{task.deadline}", s.calls.expire(number))
    match task.state:
        case TaskState.RUNNING:
            # All that are left have answered, after the last other one was evicted.
            is_done = bool(task.answered) and task.answered == task.joined
            return [expire] if is_over or (is_done and wait_s == 0) else []
        case TaskState.OPEN | TaskState.OPENING:
            return [expire] if is_over else []
        case TaskState.AUDITING:
            # Workers open then, which ends it too.
            slack = TURN_S if task.terms.policy is Policy.AUDIT else 0
            return [expire] if s.now >= task.deadline + wait_s + slack else []
        case TaskState.REVEALING:
            is_done = task.revealed == task.answered
            return [expire] if is_over or (is_done and wait_s == 0) else []
        case TaskState.SUBMITTED:
            return _draw(s, number, task, wait_s)
        case TaskState.WINDOW:
            return _settle(s, number, task, wait_s)
        case _:
            return []


def _draw(s: Situation, number: int, task: Task, wait_s: int) -> list[Action]:
    panel = task.own_panel
    if s.block <= panel.draw_block and task.terms.audits:
        return []
    if panel.seed != bytes(32):
        # It waits for members that are busy, until its time is over. Whoever is first in turn asks
        # now and then, which costs nothing while the market refuses.
        is_due = wait_s == 0 or s.now >= task.deadline + wait_s
        return [Send(f"{number}/draw/late", s.calls.draw(number))] if is_due else []
    if s.now < panel.called_at + wait_s:
        return []
    return [Send(f"{number}/draw/{panel.draw_block}", s.calls.draw(number))]


def _settle(s: Situation, number: int, task: Task, wait_s: int) -> list[Action]:
    panel = task.own_panel
    due = 0
    if panel.revealed != panel.committed:
        due = panel.reveal_by
    if task.terms.policy is Policy.AUDIT:
        due = max(due, task.deadline)
    if s.now < (due or panel.called_at) + wait_s:
        return []
    lead = task.slots[task.lead]
    if lead.claim is not None and lead.shares:
        call = s.calls.settle_shares(number, lead.claim, lead.shares)
    else:
        call = s.calls.settle(number)
    return [Send(f"{number}/settle", call)]


def _dispute(
    s: Situation, number: int, task: Task, segment: int, dispute: Dispute, wait_s: int
) -> list[Action]:
    if dispute.state not in _LIVE:
        return []
    resolve = Send(
        f"{number}/resolve/{segment}/{dispute.round}/{dispute.state.name}",
        s.calls.resolve(number, segment),
    )
    is_over = s.now >= dispute.deadline + wait_s
    if task.state in ENDED:
        # Nothing is left to decide, and bonds come free.
        return [resolve] if wait_s == 0 or is_over else []
    if dispute.state is DisputeState.CALLED:
        return _draw_referees(s, number, task, segment, wait_s)
    if dispute.state is DisputeState.RULING:
        panel = task.panels[segment, dispute.round]
        is_over = is_over or (panel.revealed == panel.committed and wait_s == 0)
    return [resolve] if is_over else []


def _draw_referees(
    s: Situation, number: int, task: Task, segment: int, wait_s: int
) -> list[Action]:
    dispute = task.disputes[segment]
    panel = task.panels[segment, dispute.round]
    call = s.calls.draw_referees(number, segment)
    if s.block <= panel.draw_block:
        return []
    if panel.seed != bytes(32):
        is_due = wait_s == 0 or s.now >= dispute.deadline + wait_s
        key = f"{number}/draw-referees/{segment}/{dispute.round}/late"
        return [Send(key, call)] if is_due else []
    if s.now < panel.called_at + wait_s:
        return []
    key = f"{number}/draw-referees/{segment}/{dispute.round}/{panel.draw_block}"
    return [Send(key, call)]


def _evictions(s: Situation, number: int, task: Task, wait_s: int) -> list[Action]:
    if task.state is not TaskState.RUNNING:
        return []
    return [
        Send(f"{number}/evict/{index}/{slot.pong_by}", s.calls.evict(number, index))
        for index, slot in enumerate(task.slots)
        if task.joined >> index & 1
        and slot.pong_by
        and s.now >= slot.pong_by + wait_s
        # Whoever comes back in time may still answer, ourselves first of all.
        and slot.worker != s.me
        and not task.answered >> index & 1
    ]
