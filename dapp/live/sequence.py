"""The sequence of what was told, in the database, so that listeners can go on where they were."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select, text
from sqlalchemy.orm import Session

from dapp.database.models import LiveRow

MARKET = "market"
# Of what concerns whoever listens, to whatever it is.
EVERYBODY = "*"
# Any number, the same for all who tell.
_LOCK = 7_260_114
_PRUNE_EVERY = 256


@dataclass(frozen=True, slots=True)
class Told:
    id: int
    topics: frozenset[str]
    kind: str
    data: str

    @property
    def encoded(self) -> bytes:
        return f"id: {self.id}\nevent: {self.kind}\ndata: {self.data}\n\n".encode()


def task_topic(number: int) -> str:
    return f"task:{number}"


def account_topic(address: str) -> str:
    return f"account:{address}"


def tell(session: Session, kind: str, data: dict[str, Any], topics: Iterable[str]) -> None:
    """Add to the sequence, as a part of the transaction that made it true."""
    if session.get_bind().dialect.name == "postgresql":
        # INVARIANT: whoever sees a number has seen all before it. Two transactions must not take
        # numbers side by side, or the later one could end first.
        session.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
    document = json.dumps(data, separators=(",", ":"))
    session.execute(
        insert(LiveRow).values(
            topics=" ".join(sorted(topics)),
            kind=kind,
            data=document,
            bytes=len(document.encode()),
        )
    )


def told_after(session: Session, after: int, most: int) -> list[Told]:
    found = select(LiveRow).where(LiveRow.id > after).order_by(LiveRow.id).limit(most)
    return [
        Told(row.id, frozenset(row.topics.split()), row.kind, row.data)
        for row in session.scalars(found)
    ]


def bounds(session: Session) -> tuple[int, int]:
    """The first and the last number that are kept; zeros where nothing is."""
    first, last = session.execute(select(func.min(LiveRow.id), func.max(LiveRow.id))).one()
    return first or 0, last or 0


def prune(session: Session, kept: int, kept_bytes: int) -> None:
    """Forget the oldest, where there are more than `kept` or they are larger than `kept_bytes`."""
    first, last = bounds(session)
    if last - first > kept + _PRUNE_EVERY:
        session.execute(delete(LiveRow).where(LiveRow.id <= last - kept))
    size = session.scalar(select(func.coalesce(func.sum(LiveRow.bytes), 0))) or 0
    if size > kept_bytes:
        # INVARIANT: the newest stays, however large it is.
        session.execute(delete(LiveRow).where(LiveRow.id <= _too_old(session, kept_bytes)))


def _too_old(session: Session, kept_bytes: int) -> int:
    """The newest number that has to go. A tenth more goes, so that not each word costs a look."""
    room, newest = kept_bytes * 9 // 10, True
    found = select(LiveRow.id, LiveRow.bytes).order_by(LiveRow.id.desc())
    for number, size in session.execute(found):
        room -= size
        if room < 0 and not newest:
            return int(number)
        newest = False
    return 0


def is_wanted(told: Told, topics: Sequence[str]) -> bool:
    return EVERYBODY in told.topics or not told.topics.isdisjoint(topics)
