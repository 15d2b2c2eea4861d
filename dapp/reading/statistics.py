"""The market in numbers: as a whole, by class, and what an account has in it."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median, median_low

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from dapp.database.models import AccountRow, Block, PersonRow, TaskRow, WorkerRow
from dapp.errors import not_found
from dapp.schemas.market import AccountView, ClassPage, ClassView, MarketStats
from trainyard.protocol.market import TaskState
from trainyard.protocol.moves import ENDED

_ENDED = tuple(int(state) for state in ENDED)
_GOING_ON = tuple(int(state) for state in TaskState if state not in ENDED)
# Prices and times of long ago say little about now.
_RECENT = 500


def market_stats(session: Session) -> MarketStats:
    counts = Counter(
        {
            TaskState(state).name.lower(): count
            for state, count in session.execute(
                select(TaskRow.state, func.count()).group_by(TaskRow.state)
            )
        }
    )
    settled, failed = counts["settled"], counts["failed"]
    recent = session.execute(
        select(TaskRow.reward, TaskRow.posted_at, TaskRow.ended_at, TaskRow.state)
        .order_by(TaskRow.id.desc())
        .limit(_RECENT)
    ).all()
    lasted = [
        ended_at - posted_at
        for _, posted_at, ended_at, state in recent
        if state == TaskState.SETTLED and ended_at is not None
    ]
    rewards = [reward for reward, *_ in recent]
    disputes, upheld = session.execute(
        select(func.sum(TaskRow.disputes), func.sum(TaskRow.upheld)).where(TaskRow.disputes > 0)
    ).one()
    is_open = select(func.sum(TaskRow.slots - TaskRow.slots_joined)).where(
        TaskRow.state == int(TaskState.OPEN)
    )
    head = session.scalar(select(Block).order_by(Block.number.desc()).limit(1))
    return MarketStats(
        tasks=counts.total(),
        tasks_by_state=dict(sorted(counts.items())),
        open_slots=int(session.scalar(is_open) or 0),
        workers=session.scalar(select(func.count()).select_from(WorkerRow)) or 0,
        workers_ready=_ready(session),
        held_wei=_sum(session, TaskRow.escrow, TaskRow.state.in_(_GOING_ON)),
        paid_wei=_sum(session, TaskRow.paid, TaskRow.state == int(TaskState.SETTLED)),
        settled=settled,
        failed=failed,
        success_rate=settled / (settled + failed) if settled + failed else None,
        median_reward_wei=median_low(rewards) if rewards else None,
        median_settle_s=float(median(lasted)) if lasted else None,
        disputes=int(disputes or 0),
        disputes_upheld=int(upheld or 0),
        head_block=None if head is None else head.number,
        head_time=None if head is None else head.time,
    )


def _sum(
    session: Session, column: InstrumentedAttribute[int], condition: ColumnElement[bool]
) -> int:
    """No database adds up so many digits; but most tasks have one of few prices."""
    amounts = select(column, func.count()).where(condition).group_by(column)
    return sum(amount * count for amount, count in session.execute(amounts))


@dataclass(slots=True)
class _Class:
    workers: int = 0
    free: int = 0
    auditors: int = 0
    states: Counter[int] = field(default_factory=Counter)
    rewards: list[int] = field(default_factory=list)


def classes_of(session: Session) -> ClassPage:
    found: dict[str, _Class] = {}
    rows = session.execute(
        select(WorkerRow, AccountRow.slots_held)
        .join(AccountRow, AccountRow.address == WorkerRow.address)
        .where(WorkerRow.env_class.is_not(None))
    )
    for worker, held in rows:
        one = found.setdefault(worker.env_class or "", _Class())
        one.workers += 1
        one.free += held == 0
        one.auditors += worker.in_pool
    tasks = session.execute(
        select(TaskRow.env_class, TaskRow.state, func.count()).group_by(
            TaskRow.env_class, TaskRow.state
        )
    )
    for env_class, state, count in tasks:
        found.setdefault(env_class, _Class()).states[state] += count
    recent = (
        select(TaskRow.env_class, TaskRow.reward).order_by(TaskRow.id.desc()).limit(2 * _RECENT)
    )
    for env_class, reward in session.execute(recent):
        found[env_class].rewards.append(reward)
    views = [_class_view(name, one) for name, one in found.items()]
    return ClassPage(items=sorted(views, key=lambda one: (-one.workers, one.env_class)))


def account_view(session: Session, address: str) -> AccountView:
    row = session.get(AccountRow, address)
    worker = session.get(WorkerRow, address)
    posted = session.scalar(
        select(func.count()).select_from(TaskRow).where(TaskRow.requester == address)
    )
    worked = session.scalar(
        select(func.count())
        .select_from(PersonRow)
        .where(PersonRow.address == address, PersonRow.roles != "requester")
    )
    return AccountView(
        address=address,
        credit_wei=0 if row is None else max(0, row.credit),
        held_wei=_held(session, address) + (0 if worker is None else worker.bond),
        tasks_posted=posted or 0,
        tasks_worked=worked or 0,
        settled=0 if row is None else row.settled,
        failed=0 if row is None else row.failed,
        audits_right=0 if row is None else row.audits_right,
        audits_wrong=0 if row is None else row.audits_wrong,
        is_worker=worker is not None,
    )


def class_of(session: Session, env_class: str) -> ClassView:
    for one in classes_of(session).items:
        if one.env_class == env_class:
            return one
    raise not_found(f"nobody of the class {env_class} is registered")


def _held(session: Session, address: str) -> int:
    """What running tasks have of an account and did not give back yet."""
    rows = session.scalars(
        select(PersonRow)
        .join(TaskRow, TaskRow.id == PersonRow.task)
        .where(PersonRow.address == address, TaskRow.state.not_in(_ENDED))
    )
    return sum(max(0, row.put_in - row.credited) for row in rows)


def _ready(session: Session) -> int:
    found = (
        select(func.count())
        .select_from(WorkerRow)
        .join(AccountRow, AccountRow.address == WorkerRow.address)
        .where(WorkerRow.is_retired.is_(False), AccountRow.slots_held == 0)
    )
    return session.scalar(found) or 0


def _class_view(name: str, one: _Class) -> ClassView:
    settled, failed = one.states[TaskState.SETTLED], one.states[TaskState.FAILED]
    return ClassView(
        env_class=name,
        workers=one.workers,
        free=one.free,
        auditors=one.auditors,
        open_tasks=one.states[TaskState.OPEN],
        running_tasks=_running(one.states.items()),
        settled=settled,
        failed=failed,
        success_rate=settled / (settled + failed) if settled + failed else None,
        median_reward_wei=median_low(one.rewards) if one.rewards else None,
        lowest_reward_wei=min(one.rewards, default=None),
        highest_reward_wei=max(one.rewards, default=None),
    )


def _running(states: Iterable[tuple[int, int]]) -> int:
    return sum(count for state, count in states if state not in _ENDED and state != TaskState.OPEN)
