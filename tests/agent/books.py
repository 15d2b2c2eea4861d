"""Markets made by hand, as an agent would see them, for tests of what it decides."""

import hmac
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from trainyard.protocol.commitments import Claim, Market
from trainyard.protocol.ledger.book import Account, Book, Dispute, Panel, Seat, Slot, Task, Worker
from trainyard.protocol.market import OWN_PANEL, Policy, SeatState, TaskState, Terms
from trainyard.protocol.trace import Trace
from worker_agent.policy import Policy as Wanted
from worker_agent.progress import Answer, Fetched, Progress, asked
from worker_agent.situation import Situation

MARKET = Market(1337, "0x" + "99" * 20)
ME, PEER, MEMBER, OTHER, REQUESTER = (f"0x{number:040x}" for number in range(1, 6))
CLASS = b"c" * 32
NOW, STAKE, SEGMENTS = 1_000_000, 10**18, 8
TRACE = Trace([bytes([number + 1]) * 32 for number in range(SEGMENTS + 1)])
CLAIM = Claim.of(b"r" * 32, TRACE.root)
OWN = (OWN_PANEL, 0)
FETCHED = Fetched("single", 1, SEGMENTS, 0.01, 1 << 20, 1 << 20)
# All that was done by somebody who has trained, and shows as much as was drawn.
TRAINED = Progress(fetched=FETCHED, card=b"k" * 32, claim=CLAIM, trace=TRACE)


def terms(policy: Policy = Policy.AUDIT, **changes: Any) -> Terms:
    given: dict[str, Any] = {
        "manifest": b"m" * 32,
        "env_class": CLASS,
        "policy": policy,
        "audits": 1,
        "min_audits": 1,
        "reward": STAKE,
        "stake": STAKE,
        "audit_fee": STAKE // 100,
        "segments": SEGMENTS,
        "answer_for": 600,
    }
    return Terms(**given | changes)


def task(state: TaskState, workers: Sequence[str] = (ME,), **changes: Any) -> Task:
    """A task in a state, whose `workers` all have answered alike where that is past."""
    offered = changes.pop("terms", None) or terms(slots=max(len(workers), 1))
    full = (1 << len(workers)) - 1
    has_answered = state not in (TaskState.OPEN, TaskState.RUNNING)
    is_shown = has_answered and state is not TaskState.REVEALING
    slots = [
        Slot(
            worker=worker,
            peer_card=b"k" * 32,
            digest=CLAIM.digest if has_answered else bytes(32),
            claim=CLAIM if is_shown else None,
        )
        for worker in workers
    ]
    made = Task(
        requester=REQUESTER,
        params_id=0,
        terms=offered,
        deadline=NOW + 500,
        state=state,
        joined=full,
        answered=full if has_answered else 0,
        slots=slots or [Slot() for _ in range(offered.slots)],
    )
    return replace(made, **changes)


def seated(found: Task, member: str, state: SeatState, *, segment: int = 2, **more: Any) -> Task:
    """The same with one auditor."""
    seat = Seat(member, segment, state, **more)
    done = state in (SeatState.COMMITTED, SeatState.REVEALED)
    panel = Panel(
        draw_block=5,
        called_at=NOW - 50,
        reveal_by=NOW + 400,
        pool=4,
        committed=int(done),
        revealed=int(state is SeatState.REVEALED),
        seats=[seat],
    )
    return replace(found, panels=found.panels | {OWN: panel})


def disputed(found: Task, segment: int, dispute: Dispute, seats: Sequence[Seat] = ()) -> Task:
    panels = dict(found.panels)
    if dispute.round:
        panels[segment, dispute.round] = Panel(
            draw_block=5,
            called_at=NOW - 50,
            pool=4,
            committed=sum(seat.state is not SeatState.DRAWN for seat in seats),
            revealed=sum(seat.state is SeatState.REVEALED for seat in seats),
            seats=list(seats),
        )
    return replace(found, disputes={**found.disputes, segment: dispute}, panels=panels)


def situation(found: Task, progress: Progress = TRAINED, **changes: Any) -> Situation:
    """What `ME` sees who has registered, and whose market has one task."""
    everybody = (ME, PEER, MEMBER, OTHER)
    book = Book(
        accounts={who: Account() for who in (*everybody, REQUESTER)},
        workers={who: Worker(CLASS, b"p" * 32) for who in everybody},
        tasks={1: found},
    )
    given: dict[str, Any] = {
        "me": ME,
        "market": MARKET,
        "book": book,
        "now": NOW,
        "block": 100,
        "clock": 0.0,
        "policy": Wanted(),
        "env_class": CLASS,
        "progress": {1: progress},
        "purse": 10 * STAKE,
        "salt": salt,
    }
    return Situation(**given | changes)


def salt(task_id: int, panel: tuple[int, int], seat: int) -> bytes:
    return hmac.digest(b"key", repr((task_id, panel, seat)).encode(), "sha256")


def committed(answer: bytes, place: tuple[int, int] = OWN, seat: int = 0) -> bytes:
    """What `ME` has committed to with an answer."""
    given = salt(1, place, seat)
    return MARKET.answer_commitment(1, seat, ME, given, answer, segment=place[0])


def answering(
    value: bytes, place: tuple[int, int] = OWN, seat: int = 0, *, segment: int = 2
) -> Progress:
    """Somebody who found `value` for a segment; as referee for that of the dispute."""
    about = asked([CLAIM], segment if place == OWN else place[0])
    return Progress(answers={(*place, seat): Answer(value, about=about)})
