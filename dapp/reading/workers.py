"""Workers: the leaderboard, and one by one."""

from typing import Any

from sqlalchemy import BigInteger, ColumnElement, Row, and_, case, cast, func, or_, select
from sqlalchemy.orm import Session

from dapp.database.models import AccountRow, PersonRow, TaskRow, WorkerRow
from dapp.errors import invalid, not_found
from dapp.reading.cursors import BIG_INTEGER, INTEGER, Kind, decode_cursor, encode_cursor
from dapp.reading.tasks import Filter, list_tasks
from dapp.schemas.workers import WorkerPage, WorkerSummary, WorkerView

_DAY_S = 86_400
_SHOWN_TASKS = 20
_DIGITS = 78
# A record of one success is not better than one of fifty with a slip: failures are assumed first.
_DOUBT = 2
_RIGHT = AccountRow.settled + AccountRow.audits_right
_WRONG = AccountRow.failed + AccountRow.audits_wrong
_MILLION = 1_000_000
# Whole numbers, so that both databases sort alike; and large ones, since a few thousand successes
# are too many millionths for PostgreSQL's integers.
_SUCCESS = cast(_RIGHT, BigInteger) * _MILLION // (_RIGHT + _WRONG + _DOUBT)
# Who has no bond is not in the pool, and comes after all who are.
_SINCE = case((WorkerRow.since == 0, 2**62), else_=WorkerRow.since)

# The best first: of numbers the largest, and of moments the earliest.
SORTS: dict[str, tuple[ColumnElement[Any] | Any, Kind, bool]] = {
    "earned": (AccountRow.earned, str, True),
    "settled": (AccountRow.settled, INTEGER, True),
    "success": (_SUCCESS, range(_MILLION), True),
    "bond": (WorkerRow.bond, str, True),
    "since": (_SINCE, BIG_INTEGER, False),
}


def list_workers(
    session: Session,
    *,
    env_class: str | None,
    search: str | None,
    is_retired: bool | None,
    sort: str,
    limit: int,
    cursor: str | None,
) -> WorkerPage:
    column, kind, is_descending = SORTS[sort]
    conditions: list[ColumnElement[bool]] = [AccountRow.address == WorkerRow.address]
    if env_class is not None:
        conditions.append(WorkerRow.env_class == env_class)
    if is_retired is not None:
        conditions.append(WorkerRow.is_retired.is_(is_retired))
    if search:
        begins = search.strip().lower()
        both = (WorkerRow.address, WorkerRow.env_class)
        conditions.append(
            or_(*(func.lower(one).startswith(begins, autoescape=True) for one in both))
        )
    total = session.scalar(
        select(func.count())
        .select_from(WorkerRow)
        .join(AccountRow, conditions[0])
        .where(*conditions)
    )
    value = column.label("value")
    found = select(WorkerRow, AccountRow, value).join(AccountRow, conditions[0]).where(*conditions)
    before = 0
    if cursor is not None:
        place, address, before = decode_cursor(cursor, (kind, str, INTEGER))
        at = _amount(place) if kind is str else place
        beyond = column < at if is_descending else column > at
        found = found.where(or_(beyond, and_(column == at, WorkerRow.address > address)))
    order = column.desc() if is_descending else column.asc()
    found = found.order_by(order, WorkerRow.address).limit(limit + 1)
    rows = session.execute(found).all()
    more, rows = len(rows) > limit, rows[:limit]
    items = [_summary(row[0], row[1], before + place) for place, row in enumerate(rows, 1)]
    next_ = encode_cursor(_place(rows[-1], kind, before + len(rows))) if more else None
    return WorkerPage(items=items, next=next_, total=total or 0)


def worker_view(session: Session, address: str) -> WorkerView:
    worker, account = session.get(WorkerRow, address), session.get(AccountRow, address)
    if account is None or (worker is None and not _has_worked(session, address)):
        raise not_found(f"{address} is no worker of this market")
    tasks = list_tasks(session, Filter(worker=address), "newest", _SHOWN_TASKS, None)
    return WorkerView(
        worker=_summary(worker, account, None),
        profile=None if worker is None else worker.profile,
        min_fee_wei=0 if worker is None else worker.min_fee,
        min_audit_for=0 if worker is None else worker.min_audit_for,
        min_answer_for=0 if worker is None else worker.min_answer_for,
        unbonds_at=None if worker is None else worker.unbonds_at or None,
        credit_wei=max(0, account.credit),
        tasks=tasks.items,
        earnings=_earnings(session, address),
    )


def _summary(worker: WorkerRow | None, account: AccountRow, rank: int | None) -> WorkerSummary:
    right = account.settled + account.audits_right
    tried = right + account.failed + account.audits_wrong
    return WorkerSummary(
        rank=rank,
        address=account.address,
        env_class=None if worker is None else worker.env_class,
        is_retired=worker is None or worker.is_retired,
        bond_wei=0 if worker is None else worker.bond,
        bond_locked_wei=0 if worker is None else worker.bond_locked,
        settled=account.settled,
        failed=account.failed,
        audits_right=account.audits_right,
        audits_wrong=account.audits_wrong,
        success_rate=right / tried if tried else None,
        earned_wei=account.earned,
        lost_wei=account.lost,
        slots_held=account.slots_held,
        seats_held=account.seats_held,
        since=None if worker is None else worker.since or None,
    )


def _has_worked(session: Session, address: str) -> bool:
    found = select(PersonRow).where(PersonRow.address == address, PersonRow.roles != "requester")
    return session.scalar(found.limit(1)) is not None


def _earnings(session: Session, address: str) -> list[tuple[int, int]]:
    """What ended tasks brought beyond what was put in, by the day on which they ended."""
    found = (
        select(PersonRow, TaskRow.ended_at)
        .join(TaskRow, TaskRow.id == PersonRow.task)
        .where(
            PersonRow.address == address,
            PersonRow.roles != "requester",
            TaskRow.ended_at.is_not(None),
        )
    )
    days: dict[int, int] = {}
    for part, ended_at in session.execute(found):
        day = (ended_at or 0) // _DAY_S * _DAY_S
        days[day] = days.get(day, 0) + max(0, part.credited - part.put_in)
    return sorted(days.items())


def _place(row: Row[Any], kind: Kind, count: int) -> list[Any]:
    value = row.value
    return [f"{value:0{_DIGITS}d}" if kind is str else value, row[0].address, count]


def _amount(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= _DIGITS):
        raise invalid("the cursor is of another list", field="query.cursor")
    return int(text)
