"""The sequence of what was told, in the database, so that listeners can go on where they were."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, func, insert, select, text
from sqlalchemy.orm import Session

from dapp.database.models import LiveRow

MARKET = "market"
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
        insert(LiveRow).values(topics=" ".join(sorted(topics)), kind=kind, data=document)
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


def prune(session: Session, kept: int) -> None:
    first, last = bounds(session)
    if last - first > kept + _PRUNE_EVERY:
        session.execute(delete(LiveRow).where(LiveRow.id <= last - kept))


def is_wanted(told: Told, topics: Sequence[str]) -> bool:
    return not told.topics.isdisjoint(topics)
