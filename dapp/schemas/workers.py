"""Workers and their record."""

from dapp.schemas.tasks import TaskSummary
from dapp.schemas.values import Address, Answer, Hex32, Seconds, Wei


class WorkerSummary(Answer):
    rank: int | None = None
    address: Address
    env_class: Hex32 | None
    is_retired: bool
    bond_wei: Wei
    bond_locked_wei: Wei
    settled: int
    failed: int
    audits_right: int
    audits_wrong: int
    # Of tasks and answers that went well or badly; null without any.
    success_rate: float | None
    # What tasks brought it beyond its own stakes.
    earned_wei: Wei
    lost_wei: Wei
    slots_held: int
    seats_held: int
    since: Seconds | None


class WorkerPage(Answer):
    items: list[WorkerSummary]
    next: str | None
    total: int


class WorkerView(Answer):
    worker: WorkerSummary
    profile: Hex32 | None
    min_fee_wei: Wei
    min_audit_for: Seconds
    min_answer_for: Seconds
    unbonds_at: Seconds | None
    credit_wei: Wei
    # Its latest tasks, as worker, auditor or referee; `GET /tasks?worker=` pages through all.
    tasks: list[TaskSummary]
    # By day (UTC midnight), the latest last.
    earnings: list[tuple[Seconds, Wei]]
