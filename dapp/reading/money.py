"""What the task holds of the requester, what was spent, and what comes back by which call."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal

from dapp.schemas.tasks import Money, Part
from trainyard.protocol.explaining import names_of
from trainyard.protocol.holdings import parts_of
from trainyard.protocol.ledger import Book, Event
from trainyard.protocol.ledger.book import Account, Task
from trainyard.protocol.market import BURN_ADDRESS, TaskState
from trainyard.protocol.moves import ENDED
from trainyard.protocol.telling import amount


def money_of(
    number: int, task: Task, accounts: Mapping[str, Account], events: Sequence[Event], now: int
) -> Money:
    book = Book(tasks={number: task}, accounts=dict(accounts))
    names = names_of(book, number)
    parts = parts_of(book, number, events)
    is_over = task.state in ENDED
    escrow = task.terms.escrow
    # INVARIANT: what is held, spent and refunded is the escrow, whatever stakes were lost.
    refunded = min(escrow, _refunded(events)) if is_over else 0
    compensated = _compensated(task.requester, events, refunded) if is_over else 0
    call, since = _way_back(task)
    refundable = escrow if call is not None else 0
    return Money(
        escrow_wei=escrow,
        held_wei=0 if is_over else escrow,
        spent_wei=escrow - refunded if is_over else 0,
        refunded_wei=refunded,
        compensated_wei=compensated,
        refundable_wei=refundable,
        refundable_from=since,
        refund_call=call,
        rule=_rule(task, (refunded, compensated), call, since, now),
        parts=[
            Part(
                who=one.who,
                name="burned" if one.who == BURN_ADDRESS else names.get(one.who, "somebody"),
                role=one.role,
                held_wei=max(0, one.held),
                credited_wei=one.credited,
                lost_wei=max(0, one.lost),
                credit_wei=max(0, one.credit),
                claim=one.claim,
            )
            for one in parts
        ],
    )


def _refunded(events: Sequence[Event]) -> int:
    ends = ("TaskSettled", "TaskFailed", "TaskCancelled")
    return sum(int(one.args["refunded"]) for one in events if one.name in ends)


def _compensated(requester: str, events: Sequence[Event], refunded: int) -> int:
    """What the requester got beyond its own: of the stakes of workers that were wrong."""
    credited = bonds = 0
    for one in events:
        if one.name == "Credited" and one.args["account"] == requester:
            credited += one.args["amount"]
        elif one.name == "SegmentChallenged" and one.args["accuser"] == requester:
            bonds += one.args["bond"]
    return max(0, credited - refunded - bonds)


def _way_back(task: Task) -> tuple[Literal["cancel", "expire"] | None, int | None]:
    """How the requester gets its whole escrow back if nobody does anything more, and from when."""
    match task.state:
        case TaskState.OPEN:
            return "cancel", None
        case TaskState.RUNNING if not task.answered:
            return "expire", task.deadline
        case TaskState.OPENING:
            return "expire", task.deadline
        case _:
            return None, None


def _rule(
    task: Task,
    came_back: tuple[int, int],
    call: Literal["cancel", "expire"] | None,
    since: int | None,
    now: int,
) -> str:
    escrow = amount(task.terms.escrow)
    if task.state in ENDED:
        refunded, more = came_back
        extra = f", and {amount(more)} of the workers' stakes" if more else ""
        return f"It is over: {amount(refunded)} of {escrow} came back{extra}."
    if call == "cancel":
        return f"{escrow} can be taken back by cancelling, until the last slot is taken."
    if since is not None:
        when = f"{datetime.fromtimestamp(since, UTC):%Y-%m-%d %H:%M} UTC"
        verb = "can be taken back" if now >= since else "come back"
        return f"{escrow} {verb} if nothing is submitted or shown by {when}."
    return f"{escrow} are held until the claim is checked; what is not owed comes back then."
