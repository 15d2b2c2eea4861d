"""What the events in the life of a task mean."""

from collections.abc import Mapping, Sequence
from typing import Any

from trainyard.protocol.commitments import Claim
from trainyard.protocol.ledger.book import Book, Slot, Task
from trainyard.protocol.ledger.events import Handler, struct_fields
from trainyard.protocol.market import Failure, Policy, TaskState, Terms


def task_posted(
    book: Book,
    task_id: int,
    requester: str,
    params_id: int,
    join_by: int,
    terms: Mapping[str, Any],
) -> None:
    values = struct_fields(terms)
    offered = Terms(**values | {"policy": Policy(values["policy"])})
    slots = [Slot() for _ in range(offered.slots)]
    task = Task(requester, params_id, offered, deadline=join_by, slots=slots)
    book.tasks[task_id] = task
    _lock(book, task, requester, offered.escrow)


def slot_joined(book: Book, task_id: int, worker: str, slot: int, peer_card: bytes) -> None:
    task = book.tasks[task_id]
    task.slots[slot] = Slot(worker, peer_card=peer_card)
    task.joined |= 1 << slot
    _lock(book, task, worker, task.terms.stake)


def slot_left(book: Book, task_id: int, worker: str, slot: int) -> None:
    _vacate(book.tasks[task_id], slot)


def slot_evicted(book: Book, task_id: int, slot: int, worker: str, penalty: int) -> None:
    _vacate(book.tasks[task_id], slot)


def task_started(book: Book, task_id: int, train_by: int) -> None:
    _enter(book, task_id, TaskState.RUNNING, train_by)


def slot_pinged(book: Book, task_id: int, slot: int, by: str, pong_by: int) -> None:
    book.tasks[task_id].slots[slot].pong_by = pong_by


def slot_ponged(book: Book, task_id: int, slot: int, quiet_until: int) -> None:
    asked = book.tasks[task_id].slots[slot]
    asked.pong_by, asked.quiet_until = 0, quiet_until


def claim_committed(book: Book, task_id: int, slot: int, commitment: bytes) -> None:
    task = book.tasks[task_id]
    task.slots[slot].digest = commitment
    task.answered |= 1 << slot


def claim_revealed(book: Book, task_id: int, slot: int, claim: Mapping[str, Any]) -> None:
    task = book.tasks[task_id]
    _claim(task.slots[slot], claim)
    task.revealed |= 1 << slot


def claim_submitted(
    book: Book, task_id: int, slot: int, claim: Mapping[str, Any], shares: Sequence[int]
) -> None:
    task = book.tasks[task_id]
    _claim(task.slots[slot], claim)
    task.slots[slot].shares = tuple(shares)
    task.answered |= 1 << slot


def reveal_started(book: Book, task_id: int, reveal_by: int) -> None:
    _enter(book, task_id, TaskState.REVEALING, reveal_by)


def task_submitted(
    book: Book, task_id: int, lead: int, draw_block: int, pool: int, draw_by: int
) -> None:
    task = book.tasks[task_id]
    task.lead = lead
    panel = task.own_panel
    panel.draw_block, panel.pool = draw_block, pool
    panel.called_at = draw_by - task.terms.audit_for
    _enter(book, task_id, TaskState.SUBMITTED, draw_by)


def task_settled(book: Book, task_id: int, lead: int, paid: int, refunded: int) -> None:
    book.tasks[task_id].lead = lead
    _end(book, task_id, TaskState.SETTLED)


def task_failed(book: Book, task_id: int, reason: int, refunded: int) -> None:
    book.tasks[task_id].failure = Failure(reason)
    _end(book, task_id, TaskState.FAILED)


def task_cancelled(book: Book, task_id: int, refunded: int) -> None:
    _end(book, task_id, TaskState.CANCELLED)


def _lock(book: Book, task: Task, account: str, amount: int) -> None:
    book.account(account).credit -= amount
    task.locked += amount


def _enter(book: Book, task_id: int, state: TaskState, deadline: int) -> None:
    task = book.tasks[task_id]
    task.state, task.deadline = state, deadline


def _end(book: Book, task_id: int, state: TaskState) -> None:
    task = book.tasks[task_id]
    task.state, task.locked = state, 0


def _vacate(task: Task, slot: int) -> None:
    task.joined &= ~(1 << slot)
    task.locked -= task.terms.stake


def _claim(slot: Slot, claim: Mapping[str, Any]) -> None:
    slot.claim = Claim(**claim)
    slot.digest = slot.claim.digest


HANDLERS: dict[str, Handler] = {
    "TaskPosted": task_posted,
    "SlotJoined": slot_joined,
    "SlotLeft": slot_left,
    "SlotEvicted": slot_evicted,
    "TaskStarted": task_started,
    "SlotPinged": slot_pinged,
    "SlotPonged": slot_ponged,
    "ClaimCommitted": claim_committed,
    "ClaimRevealed": claim_revealed,
    "ClaimSubmitted": claim_submitted,
    "RevealStarted": reveal_started,
    "TaskSubmitted": task_submitted,
    "TaskSettled": task_settled,
    "TaskFailed": task_failed,
    "TaskCancelled": task_cancelled,
}
