"""What an operator wants: which tasks to take, at which price, and which duties."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from worker_agent.machine import memory_for_tasks

Address = Annotated[str, Field(pattern="^0x[0-9a-fA-F]{40}$")]
Mode = Literal["single", "sync", "rounds", "async", "predict"]


class Policy(BaseModel):
    """Amounts in wei, or the smallest unit of the market's token."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Of an hour of this whole machine, as estimated from its measured speed.
    min_wei_per_hour: int = Field(default=0, ge=0)
    # What energy costs, by which the estimate of a task is priced.
    energy_wei_per_kwh: int = Field(default=0, ge=0)
    # Whether tasks are taken whose reward does not cover their gas and energy.
    at_a_loss: bool = False
    max_hours: float = Field(default=24.0, gt=0)
    # The largest stake that one task may hold.
    max_stake: int | None = Field(default=None, ge=0)
    # Whose tasks are taken: everybody's if nobody is named.
    allow_requesters: tuple[Address, ...] = ()
    deny_requesters: tuple[Address, ...] = ()
    modes: tuple[Mode, ...] = ("single", "sync", "rounds", "async", "predict")
    # Tasks at once.
    concurrency: int = Field(default=1, ge=0)
    # Agents of this machine that take and train tasks at once, of those that say so here.
    turns: int | None = Field(default=None, gt=0)
    max_memory_bytes: int = Field(default_factory=memory_for_tasks, gt=0)
    max_disk_bytes: int = Field(default=20 << 30, gt=0)
    # Put down so as to be drawn as auditor, evaluator and referee; zero for none of that.
    bond: int = Field(default=0, ge=0)
    min_audit_fee: int = Field(default=0, ge=0)
    # The shortest times for which to be drawn: less than it takes here to answer costs the bond.
    min_audit_for_s: int = Field(default=60, ge=0)
    min_answer_for_s: int = Field(default=5, ge=0)
    # Of the segments that were computed together with others, how many are computed again
    # before the result is signed.
    self_audits: int = Field(default=1, ge=0)
    # For so long after a task is over its result can be fetched here, and its files stay.
    keep_hours: float = Field(default=72.0, ge=0)
