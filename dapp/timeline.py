"""The life of a task: events as sentences, and the steps that people think in."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dapp.schemas.tasks import Stage, StageName, StageStatus, TimelineEvent
from trainyard.protocol.ledger import Event
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import Failure, Policy, TaskState
from trainyard.protocol.telling import Name, sentence

# Which step an event belongs to; those that are not named go with the step before them.
_STAGES: dict[str, StageName] = {
    "TaskPosted": "posted",
    "SlotJoined": "joined",
    "SlotLeft": "joined",
    "TaskStarted": "joined",
    "SlotPinged": "training",
    "SlotPonged": "training",
    "SlotEvicted": "training",
    "ClaimCommitted": "submitted",
    "ClaimRevealed": "submitted",
    "ClaimSubmitted": "submitted",
    "RevealStarted": "submitted",
    "TaskSubmitted": "submitted",
    "TaskSettled": "settled",
    "TaskFailed": "settled",
    "TaskCancelled": "settled",
    "Credited": "settled",
    "Recorded": "settled",
}
_ORDER: tuple[StageName, ...] = (
    "posted",
    "joined",
    "training",
    "submitted",
    "audited",
    "settled",
)
_TITLES: dict[StageName, str] = {
    "posted": "Posted",
    "joined": "Joined",
    "training": "Training",
    "submitted": "Submitted",
    "audited": "Audited",
    "settled": "Settled",
}
# Which step a task is in.
_NOW: dict[TaskState, StageName] = {
    TaskState.OPEN: "joined",
    TaskState.RUNNING: "training",
    TaskState.REVEALING: "submitted",
    TaskState.SUBMITTED: "audited",
    TaskState.AUDITING: "audited",
    TaskState.OPENING: "audited",
    TaskState.WINDOW: "audited",
    TaskState.DISPUTED: "audited",
}
# What ends a step.
_ENDS: dict[str, StageName] = {
    "TaskPosted": "posted",
    "TaskStarted": "joined",
    "ClaimSubmitted": "training",
    "ClaimCommitted": "training",
    "TaskSubmitted": "submitted",
    "TaskSettled": "settled",
    "TaskFailed": "settled",
    "TaskCancelled": "settled",
}
_WHY = {
    Failure.NO_QUORUM: "too few workers agreed",
    Failure.FRAUD: "the workers' claim was wrong",
    Failure.WITHHELD: "the workers did not show what they had claimed",
    Failure.INCONCLUSIVE: "nobody could tell who was right",
    Failure.UNAUDITED: "too few auditors were found",
    Failure.BELOW_TARGET: "the score missed its target",
}


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a task with its place."""

    event: Event
    block: int
    block_hash: bytes
    place: int
    transaction: bytes
    time: int


def stage_of(name: str) -> StageName:
    return _STAGES.get(name, "audited")


def event_view(
    event: Event,
    name: Name,
    *,
    block: int,
    block_hash: bytes,
    place: int,
    transaction: bytes,
    time: int,
    head: int,
) -> TimelineEvent:
    return TimelineEvent(
        key=f"{block}-{place}",
        name=event.name,
        what=sentence(event, name, fully=True),
        stage=stage_of(event.name),
        block=block,
        block_hash=f"0x{block_hash.hex()}",
        index=place,
        transaction=f"0x{transaction.hex()}",
        time=time,
        confirmations=max(0, head - block + 1),
    )


def views_of(events: Iterable[Happened], name: Name, head: int) -> list[TimelineEvent]:
    return [
        event_view(
            one.event,
            name,
            block=one.block,
            block_hash=one.block_hash,
            place=one.place,
            transaction=one.transaction,
            time=one.time,
            head=head,
        )
        for one in events
    ]


def stages_of(task: Task, events: Sequence[Happened]) -> list[Stage]:
    """Posted → Joined → Training → Submitted → Audited → Settled, each with its end."""
    ends: dict[StageName, Happened] = {}
    for one in events:
        ended = _ENDS.get(one.event.name)
        if ended is not None:
            ends[ended] = one
    closing = ends.get("settled")
    if closing is not None and any(stage_of(one.event.name) == "audited" for one in events):
        ends["audited"] = closing
    now = _NOW.get(task.state)
    found: list[Stage] = []
    began: int | None = None
    for name in _ORDER:
        end = ends.get(name)
        status = _status(task, name, now, is_ended=end is not None)
        is_reached = status in ("done", "now", "failed")
        found.append(
            Stage(
                name=name,
                title=_title(task, name),
                status=status,
                began_at=(began if name != "posted" else events[0].time) if is_reached else None,
                ended_at=None if end is None else end.time,
                transaction=None if end is None else f"0x{end.transaction.hex()}",
                block=None if end is None else end.block,
                detail=_detail(task, name),
            )
        )
        began = end.time if end is not None else began
    return found


def _status(task: Task, name: StageName, now: StageName | None, *, is_ended: bool) -> StageStatus:
    if now is not None:
        if name == now:
            return "now"
        return "done" if _ORDER.index(name) < _ORDER.index(now) else "waiting"
    if name == "settled":
        return "done" if task.state is TaskState.SETTLED else "failed"
    return "done" if is_ended else "skipped"


def _title(task: Task, name: StageName) -> str:
    if name == "settled" and task.state is TaskState.FAILED:
        return "Failed"
    if name == "settled" and task.state is TaskState.CANCELLED:
        return "Cancelled"
    if name == "audited" and task.terms.policy in (Policy.SCORE, Policy.CONTEST):
        return "Scored"
    return _TITLES[name]


def _detail(task: Task, name: StageName) -> str | None:
    if name == "joined":
        return f"{task.joined.bit_count()} of {task.terms.slots} slots are taken"
    if name == "audited" and task.own_panel.seats:
        answered = sum(int(seat.state) >= 2 for seat in task.own_panel.seats)
        return f"{answered} of {len(task.own_panel.seats)} drawn have answered"
    if name == "settled" and task.failure is not None:
        return _WHY[task.failure]
    return None
