"""One task: slots, seats, disputes, the clock, and everybody's money."""

import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlalchemy import select
from sqlalchemy.orm import Session

from dapp.database.models import (
    AccountRow,
    Block,
    EventRow,
    FeedRow,
    ParamsRow,
    PersonRow,
    TaskRow,
)
from dapp.errors import not_found
from dapp.indexer.encoding import decode_task
from dapp.indexer.places import topics_of
from dapp.reading.contributions import contributions_of
from dapp.reading.money import money_of
from dapp.reading.tasks import summaries
from dapp.schemas import tasks as schemas
from dapp.timeline import Happened, stages_of, views_of
from trainyard.chain.codec import market_codec
from trainyard.protocol.explaining import namer, names_of
from trainyard.protocol.ledger import Book, Event
from trainyard.protocol.ledger.book import Account, Slot, Task
from trainyard.protocol.market import OWN_PANEL, DisputeState, Params
from trainyard.protocol.moves import ENDED, Move, next_move, next_moves

_SEGMENT = re.compile(r"segment (\d+)")
_SLOT = re.compile(r"slot (\d+)")
_VERDICTS = {
    DisputeState.UPHELD: "the workers are wrong",
    DisputeState.REJECTED: "the workers are right",
    DisputeState.DISMISSED: "nobody could judge it",
    DisputeState.INCONCLUSIVE: "no majority, everyone is refunded",
    DisputeState.VOID: "the task is over already",
}
_KEPT_EVENTS = 16_384


@dataclass(frozen=True, slots=True)
class Known:
    """A task with its events, as the index has them."""

    number: int
    row: TaskRow
    task: Task
    events: Sequence[Happened]
    head: Block

    @property
    def now(self) -> int:
        """The chain's time: its clock may be ahead of ours."""
        return max(self.head.time, int(time.time()))

    @property
    def book(self) -> Book:
        return Book(tasks={self.number: self.task})

    @property
    def revealed(self) -> frozenset[tuple[int, int, int]]:
        """Seats, by panel and place, whose answer was shown; of the others only a hash is known."""
        found = set[tuple[int, int, int]]()
        for one in self.events:
            args = one.event.args
            if one.event.name in ("AuditRevealed", "ScoresRevealed"):
                found.add((OWN_PANEL, 0, args["seat"]))
            elif one.event.name == "RefereeRevealed":
                found.add((args["segment"], args["round"], args["seat"]))
        return frozenset(found)

    @property
    def names(self) -> Mapping[str, str]:
        return names_of(self.book, self.number)


def know(session: Session, number: int) -> Known:
    row = session.get(TaskRow, number)
    head = session.scalar(select(Block).order_by(Block.number.desc()).limit(1))
    if row is None or head is None:
        raise not_found(f"there is no task {number}", "GET /api/v1/tasks lists those there are")
    found = select(EventRow).where(EventRow.task == number)
    rows = session.scalars(found.order_by(EventRow.block, EventRow.place))
    return Known(number, row, decode_task(row.ledger), [_happened(one) for one in rows], head)


def task_view(session: Session, known: Known, now: int) -> schemas.Task:
    task, terms = known.task, known.task.terms
    accounts = _accounts(session, known)
    params = params_of(session, task.params_id)
    feeds = {
        feed.worker: feed
        for feed in session.scalars(select(FeedRow).where(FeedRow.task == known.number))
    }
    money = money_of(known.number, task, accounts, [one.event for one in known.events], now)
    credited = {part.who: part.credited_wei for part in money.parts}
    return schemas.Task(
        task=summaries(session, [known.row])[0],
        join_for=terms.join_for,
        train_for=terms.train_for,
        audit_for=terms.audit_for,
        answer_for=terms.answer_for,
        challenge_for=terms.challenge_for,
        quorum=terms.quorum,
        min_audits=terms.min_audits,
        audit_fee_wei=terms.audit_fee,
        target=terms.target,
        tolerance=terms.tolerance,
        min_settled=terms.min_settled,
        shares_agreed=terms.shares_agreed,
        slots=_slots(task, feeds, credited),
        seats=seats_of(known, (OWN_PANEL, 0)),
        disputes=_disputes(known),
        clock=clock_of(task, now, known.head.number),
        money=money,
        names=dict(known.names),
        challenge_bond_wei=params.seat_bond if params else 0,
        has_result=any(slot.claim is not None for slot in task.slots),
    )


def timeline_of(known: Known) -> schemas.Timeline:
    name = namer(known.names)
    return schemas.Timeline(
        stages=stages_of(known.task, known.events),
        events=views_of(known.events, name, known.head.number),
    )


def clock_of(task: Task, now: int, block: int) -> schemas.Clock:
    move = next_move(task, now, block)
    return schemas.Clock(
        now=now,
        block=block,
        next=None if move is None else _move(move, now),
        moves=[_move(one, now) for one in next_moves(task, now, block)],
    )


def params_of(session: Session, number: int | None = None) -> Params | None:
    """Those of a version, or the present ones."""
    found = select(ParamsRow).order_by(ParamsRow.id.desc()).limit(1)
    if number is not None:
        found = select(ParamsRow).where(ParamsRow.id == number)
    row = session.scalar(found)
    return None if row is None else Params(**json.loads(row.document))


def claim_view(slot: Slot) -> schemas.Claim | None:
    if slot.claim is None:
        return None
    return schemas.Claim(
        result=f"0x{slot.claim.result.hex()}",
        root=f"0x{slot.claim.root.hex()}",
        shares_digest=f"0x{slot.claim.shares.hex()}",
        shares=list(slot.shares),
    )


def seats_of(
    known: Known, panel: tuple[int, int], claimed: bytes | None = None
) -> list[schemas.SeatView]:
    """The seats of a panel; referees are beside what was `claimed` in their dispute."""
    found, revealed = [], known.revealed
    for index, seat in enumerate(known.task.panels[panel].seats):
        opened = seat.opened if claimed is None else claimed
        is_shown = (*panel, index) in revealed
        agrees = seat.answer == opened if is_shown and any(opened) else None
        found.append(
            schemas.SeatView.model_validate(
                {
                    "index": index,
                    "member": seat.member,
                    "segment": seat.segment,
                    "status": seat.state.name.lower(),
                    "agrees": agrees,
                    "scores": list(seat.scores),
                }
            )
        )
    return found


def verdict_of(state: DisputeState) -> str | None:
    return _VERDICTS.get(state)


def _slots(
    task: Task, feeds: Mapping[str, FeedRow], credited: Mapping[str, int]
) -> list[schemas.SlotView]:
    contributions = contributions_of(task, feeds)
    found = []
    for index, slot in enumerate(task.slots):
        feed = feeds.get(slot.worker or "")
        values = {} if feed is None else json.loads(feed.values)
        found.append(
            schemas.SlotView.model_validate(
                {
                    "index": index,
                    "worker": slot.worker,
                    "status": _slot_status(task, index),
                    "is_lead": slot.claim is not None and index == task.lead,
                    "claim": claim_view(slot),
                    "pong_by": slot.pong_by or None,
                    "contribution": contributions[index],
                    "last_seen": None if feed is None else feed.last_seen,
                    "step": None if feed is None else feed.step,
                    "examples_per_s": values.get("examples_per_s"),
                    "phase": None if feed is None else feed.phase,
                    "credited_wei": credited.get(slot.worker or "", 0),
                }
            )
        )
    return found


def _slot_status(task: Task, index: int) -> str:
    slot = task.slots[index]
    if slot.worker is None:
        return "free"
    if not task.joined >> index & 1 and task.state not in ENDED:
        return "left"
    if task.revealed >> index & 1:
        return "revealed"
    return "answered" if task.answered >> index & 1 else "joined"


def _disputes(known: Known) -> list[schemas.DisputeView]:
    task, found = known.task, []
    for segment, one in sorted(task.disputes.items()):
        panels = [panel for panel in sorted(task.panels) if panel[0] == segment]
        referees = [seat for panel in panels for seat in seats_of(known, panel, one.claimed)]
        found.append(
            schemas.DisputeView.model_validate(
                {
                    "segment": segment,
                    # An accusation without a committee yet is as good as called.
                    "state": "called" if not one.state else one.state.name.lower(),
                    "accuser": one.accuser,
                    "by_auditor": bool(one.audit_seat),
                    "unserved": one.unserved,
                    "escalated": one.escalated,
                    "round": one.round,
                    "bond_wei": one.bond,
                    "deadline": one.deadline or None,
                    "referees": referees,
                    "verdict": verdict_of(one.state),
                }
            )
        )
    return found


def _move(move: Move, now: int) -> schemas.MoveView:
    segment, slot = _SEGMENT.search(move.what), _SLOT.search(move.what)
    return schemas.MoveView(
        who=list(move.who),
        what=move.what,
        call=move.call,
        segment=int(segment[1]) if segment else None,
        slot=int(slot[1]) if slot else None,
        since=move.since,
        by=move.by,
        is_open=move.is_open(now),
    )


def _accounts(session: Session, known: Known) -> dict[str, Account]:
    named = select(PersonRow.address).where(PersonRow.task == known.number)
    rows = session.scalars(select(AccountRow).where(AccountRow.address.in_(named)))
    return {
        row.address: Account(
            row.credit, row.settled, row.failed, row.audits_right, row.audits_wrong
        )
        for row in rows
    }


def _happened(row: EventRow) -> Happened:
    event = _decoded(row.topics, row.data)
    return Happened(event, row.block, row.block_hash, row.place, row.transaction, row.time)


# A log says the same for ever, and decoding it is what a look at a task costs most.
@lru_cache(maxsize=_KEPT_EVENTS)
def _decoded(topics: bytes, data: bytes) -> Event:
    return market_codec().event(topics_of(topics), data)
