"""Notifications: what happened in somebody's tasks, read from the events of the chain itself."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, takewhile
from typing import Any

from sqlalchemy import ColumnElement, and_, or_, select
from sqlalchemy.orm import Session

from dapp.database.models import EventRow, PersonRow, ReadMark
from dapp.indexer.indexing import timed_of
from dapp.reading.cursors import BIG_INTEGER, decode_cursor, encode_cursor
from dapp.schemas.personal import Notification, NotificationPage
from dapp.services import Services
from trainyard.protocol.ledger import Event
from trainyard.protocol.telling import amount, sentence

_PAGE = 30
# Beyond that nobody counts.
_MOST_UNREAD = 100
# Places of events as one number: more of them are in no block.
_PLACES = 1_000_000
_FOR_REQUESTER = {
    "SlotJoined": "joined",
    "TaskStarted": "started",
    "TaskSubmitted": "submitted",
    "SegmentChallenged": "disputed",
    "DisputeResolved": "disputed",
    "TaskSettled": "settled",
    "TaskFailed": "failed",
}
_FOR_WORKER = {
    "TaskStarted": "started",
    "SegmentChallenged": "disputed",
    "DisputeResolved": "disputed",
    "TaskSettled": "settled",
    "TaskFailed": "failed",
}
# Of these only what concerns the reader itself.
_OWN = {"SeatDrawn": ("member", "move"), "Credited": ("account", "paid")}


def notifications(
    services: Services, address: str, cursor: str | None, *, most: int = _PAGE
) -> NotificationPage:
    with services.database.reading() as session:
        return _page(session, address, cursor, most)


def mark_read(services: Services, address: str, up_to: int) -> NotificationPage:
    def mark(session: Session) -> NotificationPage:
        known = session.get(ReadMark, address)
        if known is None:
            session.add(ReadMark(address=address, up_to=up_to))
        else:
            known.up_to = max(known.up_to, up_to)
        session.flush()
        return _page(session, address, None, _PAGE)

    return services.database.write(mark)


def _page(session: Session, address: str, cursor: str | None, most: int) -> NotificationPage:
    mark = session.get(ReadMark, address)
    read = 0 if mark is None else mark.up_to
    before = decode_cursor(cursor, (BIG_INTEGER,))[0] if cursor is not None else None
    some = list(islice(_told(session, address, before), most + 1))
    more, some = len(some) > most, some[:most]
    return NotificationPage(
        items=[_view(one, read) for one in some],
        unread=_unread(session, address, read),
        next=encode_cursor([some[-1].number]) if more else None,
    )


def _unread(session: Session, address: str, read: int) -> int:
    """How many of those that are shown are newer than what was read; at most so many."""
    new = takewhile(lambda one: one.number > read, _told(session, address, None))
    return sum(1 for _ in islice(new, _MOST_UNREAD))


@dataclass(frozen=True, slots=True)
class _Told:
    row: EventRow
    event: Event
    kind: str
    reader: str

    @property
    def number(self) -> int:
        return _number(self.row)


def _told(session: Session, address: str, before: int | None) -> Iterator[_Told]:
    """What concerns an address, the newest first."""
    while True:
        rows = _rows(session, address, before)
        for row, roles in rows:
            before = _number(row)
            event = timed_of(row).event
            kind = _kind(event, roles.split(), address)
            if kind is not None:
                yield _Told(row, event, kind, address)
        if len(rows) < _PAGE:
            return


def _rows(session: Session, address: str, before: int | None) -> list[tuple[EventRow, str]]:
    found = (
        select(EventRow, PersonRow.roles)
        .join(PersonRow, and_(PersonRow.task == EventRow.task, PersonRow.address == address))
        .where(_is_told())
        .order_by(EventRow.block.desc(), EventRow.place.desc())
        .limit(_PAGE)
    )
    if before is not None:
        block, place = divmod(before, _PLACES)
        found = found.where(
            or_(EventRow.block < block, and_(EventRow.block == block, EventRow.place < place))
        )
    return [(row, roles) for row, roles in session.execute(found)]


def _is_told() -> ColumnElement[bool]:
    return EventRow.name.in_([*_FOR_REQUESTER, *_FOR_WORKER, *_OWN])


def _view(told: _Told, read: int) -> Notification:
    return Notification.model_validate(
        {
            "id": told.number,
            "task": told.row.task,
            "kind": told.kind,
            "text": _text(told.event, told.reader),
            "time": told.row.time,
            "transaction": f"0x{told.row.transaction.hex()}",
            "is_read": told.number <= read,
        }
    )


def _kind(event: Event, roles: list[str], address: str) -> str | None:
    if event.name in _OWN:
        who, kind = _OWN[event.name]
        return kind if event.args[who] == address else None
    if "requester" in roles and event.name in _FOR_REQUESTER:
        return _FOR_REQUESTER[event.name]
    return _FOR_WORKER.get(event.name) if set(roles) - {"requester"} else None


def _text(event: Event, address: str) -> str:
    args: dict[str, Any] = dict(event.args)

    def name(who: str) -> str:
        return "you" if who == address else f"{who[:8]}…"

    if event.name == "Credited":
        return f"Task {args['id']} has credited you {amount(args['amount'])}"
    said = sentence(event, name, fully=True) or event.name
    return f"Task {args['id']}: {said}"


def _number(row: EventRow) -> int:
    return row.block * _PLACES + row.place
