"""Tasks: in the list, one by one, and what happened to them."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from dapp.schemas.values import (
    Address,
    Answer,
    FailureName,
    Hex32,
    ModeName,
    PolicyName,
    Seconds,
    StateName,
    Wei,
)

StageName: TypeAlias = Literal["posted", "joined", "training", "submitted", "audited", "settled"]
StageStatus: TypeAlias = Literal["done", "now", "waiting", "failed", "skipped"]


class ManifestSummary(Answer):
    """What the manifest says is to be trained; null fields where it cannot be read."""

    title: str | None = None
    mode: ModeName | None = None
    workers: int | None = None
    parameters: int | None = None
    layers: int | None = None
    records: int | None = None
    batch: int | None = None
    steps: int | None = None
    segments: int | None = None
    epochs: float | None = None
    # Why nothing is known.
    error: str | None = None


class TaskSummary(Answer):
    """A row of the market."""

    id: int
    state: StateName
    failure: FailureName | None = None
    policy: PolicyName
    requester: Address
    env_class: Hex32
    manifest: Hex32
    summary: ManifestSummary
    slots: int
    slots_joined: int
    reward_wei: Wei
    stake_wei: Wei
    escrow_wei: Wei
    audits: int
    segments: int
    disputes: int
    # Whether only workers on the requester's list may join.
    is_listed: bool
    posted_at: Seconds
    updated_at: Seconds
    # End of the present stage; null when it is over.
    deadline: Seconds | None
    ended_at: Seconds | None = None
    # How far training is, 0 to 1, from the run's feed; null without one.
    progress: float | None = None


class TaskPage(Answer):
    items: list[TaskSummary]
    # For `cursor` of the next page; null on the last.
    next: str | None
    total: int


class Claim(Answer):
    result: Hex32
    root: Hex32
    # What else `settleShares`, `open` and `challenge` need to be shown again.
    shares_digest: Hex32
    shares: list[int] = Field(default_factory=list)


class SlotView(Answer):
    index: int
    worker: Address | None
    # joined, answered, revealed, left: where the slot is now; free if nobody has it.
    status: Literal["free", "joined", "answered", "revealed", "left"]
    is_lead: bool
    claim: Claim | None = None
    # Whom somebody asked for a sign of life, and by when it has to answer.
    pong_by: Seconds | None = None
    # Its part of the work, 0 to 1, from the feed or from agreed shares; null if unknown.
    contribution: float | None = None
    # The last that was heard of it in the feed.
    last_seen: Seconds | None = None
    step: int | None = None
    examples_per_s: float | None = None
    phase: str | None = None
    credited_wei: Wei = 0


class MoveView(Answer):
    """Something that can be done: by those in `who`, or by anyone if that is empty."""

    who: list[Address]
    what: str = Field(examples=["submit its claim"])
    # The market's function; the page builds the call with the ABI.
    call: str = Field(examples=["submit"])
    # For `resolve`, `drawReferees` and `serve`: the disputed segment.
    segment: int | None = None
    slot: int | None = None
    since: Seconds | None = None
    by: Seconds | None = None
    is_open: bool


class Clock(Answer):
    """Who must move next, and by when. `now` is the chain's time as the server has it."""

    now: Seconds
    block: int
    next: MoveView | None
    moves: list[MoveView]


class Part(Answer):
    """What an account has to do with a task, and what the task holds of it or brought it."""

    who: Address
    name: str = Field(examples=["worker 0"])
    role: str
    held_wei: Wei
    credited_wei: Wei
    lost_wei: Wei
    credit_wei: Wei
    claim: str


class Money(Answer):
    """Of the requester's escrow, which is what is held, spent and refunded together."""

    escrow_wei: Wei
    held_wei: Wei
    spent_wei: Wei
    refunded_wei: Wei
    # What came from the stakes of workers that were wrong, beyond the escrow.
    compensated_wei: Wei
    # What would come back if the task ended now by what the requester or anyone may call, by which
    # call, and from when; null where nothing is.
    refundable_wei: Wei
    refundable_from: Seconds | None
    refund_call: Literal["cancel", "expire"] | None
    # One sentence for people.
    rule: str
    parts: list[Part]


class SeatView(Answer):
    index: int
    member: Address
    segment: int
    status: Literal["drawn", "committed", "revealed", "closed"]
    # Only revealed ones: whether the answer is what the workers claimed.
    agrees: bool | None = None
    scores: list[int] = Field(default_factory=list)


class DisputeView(Answer):
    segment: int
    state: Literal[
        "unserved",
        "called",
        "hearing",
        "ruling",
        "upheld",
        "rejected",
        "dismissed",
        "inconclusive",
        "void",
    ]
    accuser: Address | None
    by_auditor: bool
    unserved: bool
    escalated: bool
    round: int
    bond_wei: Wei
    deadline: Seconds | None
    referees: list[SeatView]
    verdict: str | None = Field(default=None, examples=["the workers are wrong"])


class Task(Answer):
    """All about a task but its history, its trace and its feed."""

    task: TaskSummary
    join_for: Seconds
    train_for: Seconds
    audit_for: Seconds
    answer_for: Seconds
    challenge_for: Seconds
    quorum: int
    min_audits: int
    audit_fee_wei: Wei
    target: int
    tolerance: int
    min_settled: int
    shares_agreed: bool
    slots: list[SlotView]
    seats: list[SeatView]
    disputes: list[DisputeView]
    clock: Clock
    money: Money
    # Names for addresses, by what they were in the task first.
    names: dict[str, str]
    # The bond that a challenge takes.
    challenge_bond_wei: Wei
    has_result: bool


class TimelineEvent(Answer):
    """One event of the chain."""

    # Unique and in the order of the chain.
    key: str = Field(examples=["120-3"])
    name: str = Field(examples=["SlotJoined"])
    what: str | None
    stage: StageName
    block: int
    block_hash: Hex32
    index: int
    transaction: Hex32
    time: Seconds
    # Blocks on top of it, its own included.
    confirmations: int


class Stage(Answer):
    """A step of Posted → Joined → Training → Submitted → Audited → Settled."""

    name: StageName
    title: str
    status: StageStatus
    began_at: Seconds | None = None
    ended_at: Seconds | None = None
    # The event that ended it.
    transaction: Hex32 | None = None
    block: int | None = None
    detail: str | None = None


class Timeline(Answer):
    stages: list[Stage]
    events: list[TimelineEvent]


class TraceSegment(Answer):
    """A segment that somebody looked at; all others were not drawn and nobody challenged them."""

    segment: int
    title: str | None = None
    status: Literal["drawn", "audited", "differs", "challenged", "upheld", "rejected", "undecided"]
    auditor: Address | None = None
    audit: Literal["waiting", "committed", "agrees", "differs", "unserved", "silent"] | None = None
    challenger: Address | None = None
    verdict: str | None = None
    referees: list[Address] = Field(default_factory=list)
    transaction: Hex32 | None = None
    # The state that the workers claim after the segment, where it was opened.
    claimed: Hex32 | None = None
    found: Hex32 | None = None


class TraceView(Answer):
    segments: int
    root: Hex32 | None
    looked_at: list[TraceSegment]
    # Chance that cheating one of ten segments would have been found; null without audits.
    detection: float | None


class StateProof(Answer):
    """What `challenge` and `serve` have to be shown about a segment, from the published run."""

    segment: int
    claim: Claim
    state: Hex32
    proof: list[Hex32]


Limit: TypeAlias = Annotated[int, Field(ge=1, le=100)]
