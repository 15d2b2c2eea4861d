"""What the events of audits, challenges and referees mean."""

from collections.abc import Sequence

from trainyard.protocol.commitments import scores_answer
from trainyard.protocol.ledger.book import Book, Dispute, Panel, Seat
from trainyard.protocol.ledger.events import Handler
from trainyard.protocol.market import DisputeState, SeatState, TaskState


def seat_drawn(
    book: Book,
    task_id: int,
    segment: int,
    round_: int,
    seat: int,
    member: str,
    duty: int,
    bond: int,
) -> None:
    panel = book.tasks[task_id].panels[segment, round_]
    if seat != len(panel.seats):
        raise ValueError(f"seat {seat} of task {task_id} drawn after {len(panel.seats)} others")
    panel.seats.append(Seat(member, duty))
    book.workers[member].bond_locked += bond


def seats_unassigned(book: Book, task_id: int, segment: int, round_: int, missing: int) -> None:
    book.tasks[task_id].panels[segment, round_].unassigned = missing


def seats_awaited(
    book: Book, task_id: int, segment: int, round_: int, seed: bytes, found: int
) -> None:
    book.tasks[task_id].panels[segment, round_].seed = seed


def draw_postponed(book: Book, task_id: int, segment: int, round_: int, draw_block: int) -> None:
    book.tasks[task_id].panels[segment, round_].draw_block = draw_block


def seat_closed(
    book: Book,
    task_id: int,
    segment: int,
    round_: int,
    seat: int,
    member: str,
    bond: int,
    slashed: int,
) -> None:
    book.tasks[task_id].panels[segment, round_].seats[seat].state = SeatState.CLOSED
    worker = book.workers[member]
    worker.bond_locked -= bond
    worker.bond -= slashed


def audit_started(book: Book, task_id: int, seats: int, commit_by: int) -> None:
    task = book.tasks[task_id]
    task.state, task.deadline = TaskState.AUDITING, commit_by


def audit_committed(book: Book, task_id: int, seat: int, commitment: bytes) -> None:
    _commit(book.tasks[task_id].own_panel, seat, commitment)


def opening_started(book: Book, task_id: int, open_by: int) -> None:
    task = book.tasks[task_id]
    task.state, task.deadline = TaskState.OPENING, open_by


def window_started(
    book: Book, task_id: int, states: Sequence[bytes], reveal_by: int, challenge_by: int
) -> None:
    task = book.tasks[task_id]
    task.state, task.deadline = TaskState.WINDOW, challenge_by
    task.own_panel.reveal_by = reveal_by
    # Evaluators have nothing opened for them: then there are no states.
    for seat, state in zip(task.own_panel.seats, states, strict=False):
        seat.opened = state


def audit_revealed(book: Book, task_id: int, seat: int, answer: bytes) -> None:
    _reveal(book.tasks[task_id].own_panel, seat, answer)


def scores_revealed(book: Book, task_id: int, seat: int, scores: Sequence[int]) -> None:
    panel = book.tasks[task_id].own_panel
    _reveal(panel, seat, scores_answer(scores))
    panel.seats[seat].scores = tuple(scores)


def segment_challenged(
    book: Book,
    task_id: int,
    segment: int,
    accuser: str,
    audit_seat: int,
    bond: int,
    claimed: bytes,
    serve_by: int,
) -> None:
    task = book.tasks[task_id]
    book.account(accuser).credit -= bond
    dispute = Dispute(accuser, audit_seat=audit_seat, bond=bond, claimed=claimed)
    task.disputes[segment] = dispute
    if serve_by:
        dispute.state, dispute.deadline = DisputeState.UNSERVED, serve_by
        dispute.unserved = True
    task.own_panel.disputes += 1
    task.state = TaskState.DISPUTED


def segment_served(book: Book, task_id: int, segment: int, claimed: bytes) -> None:
    book.tasks[task_id].disputes[segment].claimed = claimed


def referees_called(
    book: Book,
    task_id: int,
    segment: int,
    round_: int,
    draw_block: int,
    pool: int,
    called_at: int,
    dismiss_at: int,
) -> None:
    task, dispute = book.tasks[task_id], book.tasks[task_id].disputes[segment]
    # Who is called after a ruling is the second, larger committee.
    dispute.escalated = dispute.state is DisputeState.RULING
    dispute.state, dispute.deadline, dispute.round = DisputeState.CALLED, dismiss_at, round_
    task.panels[segment, round_] = Panel(draw_block, called_at, pool=pool)


def hearing_started(
    book: Book, task_id: int, segment: int, round_: int, seats: int, commit_by: int
) -> None:
    dispute = book.tasks[task_id].disputes[segment]
    dispute.state, dispute.deadline = DisputeState.HEARING, commit_by


def referee_committed(
    book: Book, task_id: int, segment: int, round_: int, seat: int, commitment: bytes
) -> None:
    _commit(book.tasks[task_id].panels[segment, round_], seat, commitment)


def ruling_started(book: Book, task_id: int, segment: int, round_: int, reveal_by: int) -> None:
    dispute = book.tasks[task_id].disputes[segment]
    dispute.state, dispute.deadline = DisputeState.RULING, reveal_by


def referee_revealed(
    book: Book, task_id: int, segment: int, round_: int, seat: int, answer: bytes
) -> None:
    _reveal(book.tasks[task_id].panels[segment, round_], seat, answer)


def dispute_resolved(book: Book, task_id: int, segment: int, outcome: int, truth: bytes) -> None:
    task, dispute = book.tasks[task_id], book.tasks[task_id].disputes[segment]
    # The bond went to the judged or back to the accuser, which other events tell.
    dispute.state, dispute.truth, dispute.bond = DisputeState(outcome), truth, 0
    task.own_panel.disputes -= 1
    if task.own_panel.disputes == 0 and task.state is TaskState.DISPUTED:
        task.state = TaskState.WINDOW


def _commit(panel: Panel, index: int, commitment: bytes) -> None:
    seat = panel.seats[index]
    seat.state, seat.answer = SeatState.COMMITTED, commitment
    panel.committed += 1


def _reveal(panel: Panel, index: int, answer: bytes) -> None:
    seat = panel.seats[index]
    seat.state, seat.answer = SeatState.REVEALED, answer
    panel.revealed += 1


HANDLERS: dict[str, Handler] = {
    "SeatDrawn": seat_drawn,
    "SeatsUnassigned": seats_unassigned,
    "SeatsAwaited": seats_awaited,
    "DrawPostponed": draw_postponed,
    "SeatClosed": seat_closed,
    "AuditStarted": audit_started,
    "AuditCommitted": audit_committed,
    "OpeningStarted": opening_started,
    "WindowStarted": window_started,
    "AuditRevealed": audit_revealed,
    "ScoresRevealed": scores_revealed,
    "SegmentChallenged": segment_challenged,
    "SegmentServed": segment_served,
    "RefereesCalled": referees_called,
    "HearingStarted": hearing_started,
    "RefereeCommitted": referee_committed,
    "RulingStarted": ruling_started,
    "RefereeRevealed": referee_revealed,
    "DisputeResolved": dispute_resolved,
}
