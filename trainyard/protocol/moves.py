"""Who has to move next in a task, by when, and with which call."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainyard.protocol.ledger.book import Dispute, Panel, Task
from trainyard.protocol.market import DisputeState, Policy, SeatState, TaskState

ENDED = (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)
_LIVE = (
    DisputeState.UNSERVED,
    DisputeState.CALLED,
    DisputeState.HEARING,
    DisputeState.RULING,
)
_BLIND = (Policy.REPLICATE, Policy.CONTEST)


@dataclass(frozen=True, slots=True)
class Move:
    """Something that can be done: by those named, or by anyone. Times are the chain's."""

    who: tuple[str, ...]
    what: str
    call: str
    since: int | None = None
    by: int | None = None

    def is_open(self, now: int) -> bool:
        return (self.since is None or now >= self.since) and (self.by is None or now < self.by)


def next_moves(task: Task, now: int, block: int) -> list[Move]:
    """All that can be done or will be, without what has no sense any more at `now`."""
    found = [*_stage(task, block), *_dispute_moves(task, block)]
    return [move for move in found if move.by is None or now < move.by]


def next_move(task: Task, now: int, block: int) -> Move | None:
    """The one that the task waits for: of those open now, the one with the nearest end."""
    moves = next_moves(task, now, block)
    is_open = [move for move in moves if move.is_open(now) and move.call not in _FREE]
    soonest = sorted(is_open, key=lambda move: (move.by is None, move.by or 0))
    later = sorted((m for m in moves if m.since and now < m.since), key=lambda m: m.since or 0)
    return next(iter([*soonest, *later]), None)


# Nobody waits for these: a task goes on without them.
_FREE = ("cancel", "leave", "challenge", "challengeUnserved")


def _stage(task: Task, block: int) -> Iterator[Move]:
    match task.state:
        case TaskState.OPEN:
            yield from _open(task)
        case TaskState.RUNNING:
            yield from _running(task)
        case TaskState.REVEALING:
            yield from _revealing(task)
        case TaskState.SUBMITTED:
            yield from _draw(task.own_panel, block, "draw the panel", "draw", task.deadline)
        case TaskState.AUDITING:
            yield from _auditing(task)
        case TaskState.OPENING:
            what = "open the drawn states"
            yield Move(_behind(task), what, "open", by=task.deadline)
            yield Move((), "take the stakes of who withheld them", "expire", since=task.deadline)
        case TaskState.WINDOW | TaskState.DISPUTED:
            yield from _window(task)
        case _:
            return


def _open(task: Task) -> Iterator[Move]:
    inside = holders(task, task.joined)
    yield Move((), "take a free slot", "join", by=task.deadline)
    yield Move((task.requester,), "take the task back", "cancel", by=task.deadline)
    if inside:
        yield Move(inside, "leave, with the stake", "leave", by=task.deadline)
    yield Move((), "end it: everyone gets back what they put in", "expire", since=task.deadline)


def _running(task: Task) -> Iterator[Move]:
    for index, slot in enumerate(task.slots):
        if task.joined >> index & 1 and slot.pong_by and slot.worker:
            yield Move((slot.worker,), "give a sign of life", "pong", by=slot.pong_by)
            yield Move((), f"evict the silent slot {index}", "evict", since=slot.pong_by)
    missing = task.joined & ~task.answered
    if missing:
        what, call = ("commit to its claim", "commit") if task.terms.policy in _BLIND else _SUBMIT
        yield Move(holders(task, missing), what, call, by=task.deadline)
    if not task.answered and task.joined != (1 << len(task.slots)) - 1:
        yield Move((), "take the place of who was evicted", "join", by=task.deadline)
    is_done = bool(task.answered) and not missing
    since = None if is_done else task.deadline
    yield Move((), "end the training, with the answers that are there", "expire", since=since)


_SUBMIT = ("submit its claim", "submit")


def _revealing(task: Task) -> Iterator[Move]:
    hidden = task.answered & ~task.revealed
    if hidden:
        yield Move(holders(task, hidden), "reveal its claim", "reveal", by=task.deadline)
    since = task.deadline if hidden else None
    call = "settle" if task.terms.policy is Policy.REPLICATE else "expire"
    yield Move((), "count the claims", call, since=since)


def _auditing(task: Task) -> Iterator[Move]:
    waited = _members(task.own_panel, SeatState.DRAWN)
    if waited:
        yield Move(waited, "commit to what it found, blind", "auditCommit", by=task.deadline)
    if task.terms.policy is Policy.AUDIT:
        what = "open the drawn states"
        yield Move(_behind(task), what, "open", since=task.deadline)
    yield Move((), "go on without the silent", "expire", since=task.deadline)


def _window(task: Task) -> Iterator[Move]:
    panel, is_audited = task.own_panel, task.terms.policy is Policy.AUDIT
    waited = _members(panel, SeatState.COMMITTED)
    if waited:
        call = "auditReveal" if is_audited else "scoreReveal"
        yield Move(waited, "reveal what it found", call, by=panel.reveal_by)
    if is_audited:
        yield Move((), "challenge any other segment, with a bond", "challenge", by=task.deadline)
        what = "say that a segment's data is not served, with a bond"
        yield Move((), what, "challengeUnserved", by=task.deadline)
    if task.state is TaskState.DISPUTED:
        return
    due = max(panel.reveal_by if waited else 0, task.deadline if is_audited else 0)
    call = "settleShares" if task.terms.shares_agreed else "settle"
    yield Move((), "pay everyone", call, since=due or None)


def _dispute_moves(task: Task, block: int) -> Iterator[Move]:
    for segment, dispute in sorted(task.disputes.items()):
        if dispute.state not in _LIVE:
            continue
        if task.state in ENDED:
            what = f"void the dispute about segment {segment}: bonds come free"
            yield Move((), what, "resolve")
        else:
            yield from _dispute(task, segment, dispute, block)


def _dispute(task: Task, segment: int, dispute: Dispute, block: int) -> Iterator[Move]:
    panel = task.panels.get((segment, dispute.round))
    of = f"of segment {segment}"
    resolve = Move((), f"end the dispute about segment {segment}", "resolve", dispute.deadline)
    match dispute.state:
        case DisputeState.UNSERVED:
            yield Move(_behind(task), f"show the state {of}", "serve", by=dispute.deadline)
            yield resolve
        case DisputeState.CALLED if panel is not None:
            what = f"draw the referees {of}"
            yield from _draw(panel, block, what, "drawReferees", dispute.deadline)
        case DisputeState.HEARING | DisputeState.RULING if panel is not None:
            is_hearing = dispute.state is DisputeState.HEARING
            waited = _members(panel, SeatState.DRAWN if is_hearing else SeatState.COMMITTED)
            verb, call = ("commit to", "Commit") if is_hearing else ("reveal", "Reveal")
            if waited:
                what = f"{verb} what it found as referee {of}"
                yield Move(waited, what, f"referee{call}", by=dispute.deadline)
                yield resolve
            else:
                yield Move((), resolve.what, "resolve")
        case _:
            return


def _draw(panel: Panel, block: int, what: str, call: str, deadline: int) -> Iterator[Move]:
    if any(panel.seed):
        yield Move((), f"{what}, without those that are still busy", call, since=deadline)
    elif block > panel.draw_block:
        yield Move((), what, call)
    else:
        yield Move((), f"{what}, once block {panel.draw_block} is there", call)


def _members(panel: Panel, state: SeatState) -> tuple[str, ...]:
    return tuple(dict.fromkeys(s.member for s in panel.seats if s.state is state))


def holders(task: Task, slots: int) -> tuple[str, ...]:
    named = (slot.worker for index, slot in enumerate(task.slots) if slots >> index & 1)
    return tuple(who for who in named if who is not None)


def _behind(task: Task) -> tuple[str, ...]:
    """Those whose claim is verified, the holder of the lead slot first."""
    lead = task.slots[task.lead]
    same = (slot.worker for slot in task.slots if slot.claim and slot.digest == lead.digest)
    return tuple(dict.fromkeys(who for who in (lead.worker, *same) if who is not None))
