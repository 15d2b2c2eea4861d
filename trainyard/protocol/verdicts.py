"""Who was right: what a task's answers mean for the money of its slots and seats.

Pure functions of the ledger, from the rules of `docs/protocol.md`. They say what would follow if
the task, or the dispute, ended now.
"""

from enum import Enum, auto

from trainyard.protocol.ledger.book import Dispute, Panel, Seat, Task
from trainyard.protocol.market import (
    UNSERVED,
    DisputeState,
    Params,
    Policy,
    SeatState,
    TaskState,
)
from trainyard.protocol.money import Duty, Part
from trainyard.protocol.tally import best_entry, lead_of, majority, outliers


class Outcome(Enum):
    """How a task ends."""

    PAID = auto()
    UNPAID = auto()
    FRAUD = auto()


_BLIND = (Policy.REPLICATE, Policy.CONTEST)
_SCORED = (Policy.SCORE, Policy.CONTEST)


def holders(task: Task) -> dict[int, str]:
    """The workers of the slots that are taken."""
    return {
        index: slot.worker
        for index, slot in enumerate(task.slots)
        if slot.worker is not None and task.joined >> index & 1
    }


def claims(task: Task) -> list[bytes | None]:
    """What each slot answered: its commitment while a blind task runs, later what it revealed."""
    revealing = task.terms.policy in _BLIND and task.state is not TaskState.RUNNING
    answers = task.revealed if revealing else task.answered
    return [slot.digest if answers >> index & 1 else None for index, slot in enumerate(task.slots)]


def agreed(task: Task) -> bool:
    """Whether as many slots as the quorum answered: alike, unless the answers are still hidden."""
    if task.terms.policy in _BLIND and task.state is TaskState.RUNNING:
        return task.answered.bit_count() >= task.terms.quorum
    return lead_of(claims(task))[1] >= task.terms.quorum


def parts(task: Task, outcome: Outcome, winner: int | None = None) -> dict[str, Part]:
    """What each worker did. In a contest the winner alone stands behind the claim that is paid.

    Slots that work together are excused for having no answer if one of them was lost, or if nobody
    is paid although others had one.
    """
    answers = claims(task)
    lead, _ = lead_of(answers)
    joined = holders(task)
    lost = len(joined) < task.terms.slots
    in_vain = outcome is not Outcome.PAID and task.answered != 0
    excused = (lost or in_vain) and task.terms.policy not in _BLIND

    def part(slot: int) -> Part:
        if answers[slot] is None:
            return Part.EXCUSED if excused else Part.ABSENT
        if task.terms.policy is Policy.CONTEST:
            return Part.SIGNED if slot == winner else Part.DISSENTED
        return Part.SIGNED if answers[slot] == answers[lead] else Part.DISSENTED

    return {worker: part(slot) for slot, worker in joined.items()}


def shares(task: Task) -> dict[str, int] | None:
    """The shares that the claim names, by worker; None for equal parts.

    A majority must not vote the others' parts to itself: shares need the word of all that answered.
    """
    answers = [claim for claim in claims(task) if claim is not None]
    lead, votes = lead_of(claims(task))
    if not task.terms.shares_agreed or votes < len(answers):
        return None
    named = task.slots[lead].shares
    return {worker: named[slot] for slot, worker in holders(task).items()}


def winner(task: Task) -> int | None:
    """The slot whose result reaches the target; None if no result does."""
    rows = [seat.scores for seat in task.own_panel.seats if seat.scores]
    if not rows:
        return None
    entry, score = best_entry(rows, _entries(task))
    if score < task.terms.target:
        return None
    return entry if task.terms.policy is Policy.CONTEST else lead_of(claims(task))[0]


def duties(task: Task, now: int, outcome: Outcome) -> dict[str, Duty]:
    """How the members of the task's own panel served, if the task ends `now` with this outcome."""
    panel = task.own_panel
    # A task that fails early leaves no time to reveal: then a commitment is enough.
    early = outcome is not Outcome.PAID and (panel.reveal_by == 0 or now < panel.reveal_by)
    off = _off(task)

    def duty(index: int, seat: Seat) -> Duty:
        match seat.state:
            case SeatState.REVEALED if task.terms.policy in _SCORED:
                return Duty.WRONG if index in off else Duty.RIGHT
            case SeatState.REVEALED:
                return _audit_duty(task, seat, outcome)
            case SeatState.COMMITTED:
                # Who sees that it was wrong must not save its bond by keeping silent.
                return Duty.RIGHT if early else Duty.WRONG
            case _:
                return Duty.SILENT

    return {
        seat.member: duty(index, seat)
        for index, seat in enumerate(panel.seats)
        if seat.state is not SeatState.CLOSED
    }


def truth_of(task: Task, segment: int, params: Params) -> bytes | None:
    """What the sitting committee found; None if it found nothing."""
    dispute = task.disputes[segment]
    committee = params.escalation if dispute.escalated else params.referees
    revealed = [
        seat.answer
        for seat in task.panels[segment, dispute.round].seats
        if seat.state is SeatState.REVEALED
    ]
    return majority(revealed, committee)


def referee_duties(task: Task, segment: int, truth: bytes) -> dict[str, Duty]:
    """How both committees served, given what is true."""

    def duty(seat: Seat) -> Duty:
        if seat.state is not SeatState.REVEALED:
            return _unrevealed(seat)
        if seat.answer == truth:
            return Duty.RIGHT
        # Who was not served says so at the price of silence.
        return Duty.SILENT if seat.answer == UNSERVED else Duty.WRONG

    return {seat.member: duty(seat) for seat in _referees(task, segment)}


def undecided_duties(task: Task, segment: int, *, due: bool) -> dict[str, Duty]:
    """How both committees served where nothing was decided, and answers were `due` or not."""
    return {
        seat.member: _unrevealed(seat)
        if due and seat.state is not SeatState.REVEALED
        else Duty.RELEASED
        for seat in _referees(task, segment)
    }


def finder_of(task: Task, segment: int, truth: bytes) -> str | None:
    """Who is rewarded for a fraud: an auditor that knew the truth, or else the accuser.

    An accusing auditor that answered neither what the workers did nor what is true was guessing.
    """
    dispute = task.disputes[segment]
    answers = {
        seat.member: seat.answer
        for seat in task.own_panel.seats
        if seat.segment == segment and seat.state is SeatState.REVEALED
    }
    if truth != UNSERVED:
        for member, answer in answers.items():
            if answer == truth:
                return member
        if dispute.audit_seat:
            return None
    return dispute.accuser


def contested(task: Task, segment: int) -> bool:
    """Whether a drawn auditor of the segment found something else than the workers."""
    return any(
        seat.segment == segment and seat.state is SeatState.REVEALED and seat.answer != seat.opened
        for seat in task.own_panel.seats
    )


def starved(task: Task, segment: int) -> bool:
    """Whether the accuser said that it was not served."""
    dispute = task.disputes[segment]
    if not dispute.audit_seat:
        return dispute.unserved
    return task.own_panel.seats[dispute.audit_seat - 1].answer == UNSERVED


def _referees(task: Task, segment: int) -> list[Seat]:
    committees: list[Panel] = [
        panel for (disputed, _), panel in task.panels.items() if disputed == segment
    ]
    return [seat for panel in committees for seat in panel.seats]


def _unrevealed(seat: Seat) -> Duty:
    return Duty.SILENT if seat.state is SeatState.DRAWN else Duty.WRONG


def _audit_duty(task: Task, seat: Seat, outcome: Outcome) -> Duty:
    dispute = task.disputes.get(seat.segment, Dispute())
    rejected = dispute.state is DisputeState.REJECTED
    upheld = dispute.state is DisputeState.UPHELD and dispute.truth != UNSERVED
    if rejected or upheld:
        truth = dispute.claimed if rejected else dispute.truth
        if seat.answer == UNSERVED:
            # Who was not served could find nothing, whatever others found.
            return Duty.RIGHT if upheld else Duty.SILENT
        return Duty.RIGHT if seat.answer == truth else Duty.WRONG
    # Nobody said who was right. Where there was fraud, differing from the workers is likely to be.
    if seat.answer != seat.opened and outcome is not Outcome.FRAUD:
        return Duty.RELEASED
    return Duty.RIGHT


def _off(task: Task) -> set[int]:
    panel = task.own_panel
    rows = {index: seat.scores for index, seat in enumerate(panel.seats) if seat.scores}
    if not rows:
        return set()
    return outliers(rows, _entries(task), tolerance=task.terms.tolerance, seats=len(panel.seats))


def _entries(task: Task) -> list[int]:
    if task.terms.policy is not Policy.CONTEST:
        return [0]
    return [index for index in range(task.terms.slots) if task.revealed >> index & 1]
