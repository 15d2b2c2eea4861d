"""Calls that the market must refuse, whatever state it is in."""

from collections.abc import Iterator
from typing import Any

from tests.contracts.shadow import Shadow
from tests.contracts.yard import digest
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import DisputeState, TaskState

ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
JUNK = digest("junk")
Call = tuple[str, tuple[Any, ...], Any]


def wrong_calls(shadow: Shadow) -> list[Call]:
    """Function, arguments and sender of calls that are all out of place now."""
    calls = list(_of_people(shadow))
    for task_id, task in shadow.book.tasks.items():
        calls += _of_task(shadow, task_id, task)
    return calls


def _of_people(shadow: Shadow) -> Iterator[Call]:
    yard = shadow.yard
    for who in [yard.requester, yard.stranger, *yard.auditors[:2]]:
        yield "withdraw", (who.address, shadow.money.credits[who.address] + 1), who
        yield "addBond", (shadow.money.credits[who.address] + 1,), who
        # Nobody here retires without unbonding at once.
        yield "unbond", (), who
    yield "deposit", (1,), yard.requester
    yield "post", (yard.terms().as_tuple(),), yard.stranger


def _of_task(shadow: Shadow, task_id: int, task: Task) -> Iterator[Call]:
    yard, requester = shadow.yard, shadow.person(task.requester)
    nobody = yard.stranger
    yield "cancel", (task_id,), nobody
    yield "join", (task_id, JUNK, []), requester
    yield "join", (task_id, JUNK, []), nobody
    yield "leave", (task_id, 0), nobody
    yield "pong", (task_id, 0), nobody
    yield "ping", (task_id, 0), nobody
    yield "submit", (task_id, 0, JUNK, JUNK, []), nobody
    yield "commit", (task_id, 0, JUNK), nobody
    yield "reveal", (task_id, 0, JUNK, JUNK, JUNK), nobody
    yield "auditCommit", (task_id, 0, JUNK), nobody
    yield "auditReveal", (task_id, 0, JUNK, JUNK), nobody
    yield "scoreReveal", (task_id, 0, JUNK, [1]), nobody
    yield "open", (task_id, (JUNK, JUNK, JUNK), [], []), nobody
    yield "challengeUnserved", (task_id, 0), nobody
    yield "settleShares", (task_id, (JUNK, JUNK, JUNK), [1]), nobody
    if task.state is not TaskState.SUBMITTED:
        yield "draw", (task_id,), nobody
    if task.state in (TaskState.SUBMITTED, TaskState.WINDOW, TaskState.DISPUTED, *ENDED):
        yield "expire", (task_id,), nobody
    if task.state not in (TaskState.WINDOW, TaskState.REVEALING):
        yield "settle", (task_id,), nobody
    for slot, asked in enumerate(task.slots):
        if asked.pong_by == 0:
            yield "evict", (task_id, slot), nobody
    for segment in range(task.terms.segments):
        dispute = task.disputes.get(segment)
        yield "refereeCommit", (task_id, segment, 0, JUNK), nobody
        yield "refereeReveal", (task_id, segment, 0, JUNK, JUNK), nobody
        if dispute is None:
            yield "resolve", (task_id, segment), nobody
            yield "drawReferees", (task_id, segment), nobody
            yield "serve", (task_id, segment, (JUNK, JUNK, JUNK), JUNK, []), nobody
        elif dispute.state is DisputeState.CALLED and task.state is TaskState.DISPUTED:
            yield "resolve", (task_id, segment), nobody
