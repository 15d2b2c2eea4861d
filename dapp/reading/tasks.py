"""Lists of tasks: filters, sorting, cursor pages."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, exists, func, or_, select
from sqlalchemy.orm import Session, defer

from dapp.database.models import FeedRow, ManifestRow, PersonRow, TaskRow
from dapp.errors import invalid
from dapp.reading.cursors import BIG_INTEGER, Kind, decode_cursor, encode_cursor
from dapp.schemas.tasks import ManifestSummary, TaskPage, TaskSummary
from trainyard.protocol.market import Failure, Policy, TaskState
from trainyard.protocol.moves import ENDED

_ENDED = tuple(int(state) for state in ENDED)
_DIGITS = 78
UNREAD = ManifestSummary(error="the manifest is not here yet")


@dataclass(frozen=True, slots=True)
class Filter:
    states: Sequence[str] = ()
    policies: Sequence[str] = ()
    env_class: str | None = None
    requester: str | None = None
    worker: str | None = None
    search: str | None = None
    min_reward: int | None = None
    is_listed: bool | None = None
    is_active: bool | None = None


@dataclass(frozen=True, slots=True)
class _Order:
    column: Any
    kind: Kind
    is_descending: bool


SORTS: dict[str, _Order] = {
    "newest": _Order(TaskRow.id, BIG_INTEGER, True),
    "oldest": _Order(TaskRow.id, BIG_INTEGER, False),
    "reward": _Order(TaskRow.reward, str, False),
    "-reward": _Order(TaskRow.reward, str, True),
    "deadline": _Order(TaskRow.deadline, BIG_INTEGER, False),
    "updated": _Order(TaskRow.updated_at, BIG_INTEGER, True),
}


def list_tasks(
    session: Session, wanted: Filter, sort: str, limit: int, cursor: str | None
) -> TaskPage:
    order = SORTS[sort]
    conditions = _conditions(wanted)
    total = session.scalar(select(func.count()).select_from(TaskRow).where(*conditions)) or 0
    # The whole task is long, and no list shows it.
    found = select(TaskRow).options(defer(TaskRow.ledger)).where(*conditions)
    if cursor is not None:
        found = found.where(_after(order, cursor))
    both = (order.column, TaskRow.id)
    found = found.order_by(*(one.desc() if order.is_descending else one.asc() for one in both))
    rows = list(session.scalars(found.limit(limit + 1)))
    more, rows = len(rows) > limit, rows[:limit]
    return TaskPage(
        items=summaries(session, rows),
        next=encode_cursor(_place(order, rows[-1])) if more else None,
        total=total,
    )


def summaries(session: Session, rows: Sequence[TaskRow]) -> list[TaskSummary]:
    """Rows of tasks with what their manifests and feeds say."""
    digests = {row.manifest for row in rows}
    manifests = {
        one.digest: ManifestSummary.model_validate_json(one.summary)
        for one in session.scalars(select(ManifestRow).where(ManifestRow.digest.in_(digests)))
    }
    progress: dict[int, float] = {}
    wanted = select(FeedRow).where(FeedRow.task.in_([row.id for row in rows]))
    for feed in session.scalars(wanted):
        if feed.steps:
            share = min(1.0, feed.step / feed.steps)
            progress[feed.task] = max(share, progress.get(feed.task, 0.0))
    return [
        summary_of(row, manifests.get(row.manifest, UNREAD), progress.get(row.id)) for row in rows
    ]


def summary_of(row: TaskRow, manifest: ManifestSummary, progress: float | None) -> TaskSummary:
    is_over = row.state in _ENDED
    return TaskSummary.model_validate(
        {
            "id": row.id,
            "state": TaskState(row.state).name.lower(),
            "failure": None if row.failure is None else Failure(row.failure).name.lower(),
            "policy": Policy(row.policy).name.lower(),
            "requester": row.requester,
            "env_class": row.env_class,
            "manifest": row.manifest,
            "summary": manifest,
            "slots": row.slots,
            "slots_joined": row.slots_joined,
            "reward_wei": row.reward,
            "stake_wei": row.stake,
            "escrow_wei": row.escrow,
            "audits": row.audits,
            "segments": row.segments,
            "disputes": row.disputes,
            "is_listed": row.is_listed,
            "posted_at": row.posted_at,
            "updated_at": row.updated_at,
            "deadline": None if is_over else row.deadline,
            "ended_at": row.ended_at,
            "progress": progress,
        }
    )


def latest_values(session: Session, number: int) -> dict[str, float]:
    """The newest numbers of a run, from whichever worker told them last."""
    found = select(FeedRow).where(FeedRow.task == number).order_by(FeedRow.last_seen)
    values: dict[str, float] = {}
    for feed in session.scalars(found):
        values |= json.loads(feed.values)
    return values


def _conditions(wanted: Filter) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.states:
        found.append(TaskRow.state.in_([int(TaskState[one.upper()]) for one in wanted.states]))
    if wanted.policies:
        found.append(TaskRow.policy.in_([int(Policy[one.upper()]) for one in wanted.policies]))
    if wanted.env_class is not None:
        found.append(TaskRow.env_class == wanted.env_class)
    if wanted.requester is not None:
        found.append(TaskRow.requester == wanted.requester)
    if wanted.worker is not None:
        found.append(_is_in(wanted.worker, "worker", "auditor", "referee", "accuser"))
    if wanted.min_reward is not None:
        found.append(TaskRow.reward >= wanted.min_reward)
    if wanted.is_listed is not None:
        found.append(TaskRow.is_listed.is_(wanted.is_listed))
    if wanted.is_active is not None:
        ended = TaskRow.state.in_(_ENDED)
        found.append(~ended if wanted.is_active else ended)
    if wanted.search:
        found.append(_matches(wanted.search.strip()))
    return found


def _is_in(address: str, *roles: str) -> ColumnElement[bool]:
    named = or_(*(PersonRow.roles.contains(role) for role in roles))
    mine = and_(PersonRow.task == TaskRow.id, PersonRow.address == address, named)
    return exists().where(mine)


def _matches(text: str) -> ColumnElement[bool]:
    """By number, by the beginning of an address or a digest, or by words of the title."""
    lower = text.lower()
    found: list[ColumnElement[bool]] = []
    number = lower.removeprefix("#")
    if number.isascii() and number.isdigit() and len(number) < 19:
        found.append(TaskRow.id == int(number))
    if lower.startswith("0x"):
        columns = (TaskRow.requester, TaskRow.manifest, TaskRow.env_class)
        found += [func.lower(one).startswith(lower, autoescape=True) for one in columns]
        person = func.lower(PersonRow.address).startswith(lower, autoescape=True)
        found.append(exists().where(and_(PersonRow.task == TaskRow.id, person)))
    title = func.lower(ManifestRow.title).contains(lower, autoescape=True)
    found.append(exists().where(and_(ManifestRow.digest == TaskRow.manifest, title)))
    return or_(*found)


def _place(order: _Order, row: TaskRow) -> list[Any]:
    value = getattr(row, order.column.key)
    # As it stands in the column: longer numbers than cursors carry are texts there.
    return [f"{value:0{_DIGITS}d}" if order.kind is str else value, row.id]


def _after(order: _Order, cursor: str) -> ColumnElement[bool]:
    value, number = decode_cursor(cursor, (order.kind, BIG_INTEGER))
    if order.kind is str:
        value = decode_amount(value)
    beyond = order.column < value if order.is_descending else order.column > value
    next_ = TaskRow.id < number if order.is_descending else TaskRow.id > number
    return or_(beyond, and_(order.column == value, next_))


def decode_amount(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise invalid("the cursor is of another list", field="query.cursor")
    return int(text)
