"""The trace of a task: which segments somebody looked at, and what came of it."""

from collections.abc import Mapping

from dapp.reading.task import Known, verdict_of
from dapp.schemas.tasks import TraceSegment, TraceView
from trainyard.protocol.ledger.book import Dispute, Seat, Task
from trainyard.protocol.market import OWN_PANEL, UNSERVED, DisputeState, Policy, SeatState
from trainyard.protocol.offering import detection_of

_CHEATED = 0.1
_DISPUTES = {DisputeState.UPHELD: "upheld", DisputeState.REJECTED: "rejected"}
_DECIDED = (DisputeState.DISMISSED, DisputeState.INCONCLUSIVE, DisputeState.VOID)


def trace_of(known: Known, titles: Mapping[int, str]) -> TraceView:
    task = known.task
    lead = task.slots[task.lead].claim
    looked_at: dict[int, TraceSegment] = {}
    if task.terms.policy is Policy.AUDIT:
        revealed = known.revealed
        for index, seat in enumerate(task.own_panel.seats):
            dispute = task.disputes.get(seat.segment)
            audit = _audit(seat, is_shown=(OWN_PANEL, 0, index) in revealed)
            looked_at[seat.segment] = _segment(known, seat.segment, (seat, audit), dispute, titles)
        for segment, dispute in task.disputes.items():
            if segment not in looked_at:
                looked_at[segment] = _segment(known, segment, None, dispute, titles)
    return TraceView(
        segments=task.terms.segments,
        root=None if lead is None else f"0x{lead.root.hex()}",
        looked_at=[looked_at[segment] for segment in sorted(looked_at)],
        detection=detection_of(task.terms.segments, task.terms.audits, _CHEATED),
    )


def _segment(
    known: Known,
    segment: int,
    audited: tuple[Seat, str] | None,
    dispute: Dispute | None,
    titles: Mapping[int, str],
) -> TraceSegment:
    seat, audit = audited or (None, None)
    status = "drawn" if audit in ("waiting", "committed", "silent") else "audited"
    if audit in ("differs", "unserved"):
        status = "differs"
    if dispute is not None:
        status = _DISPUTES.get(dispute.state, "challenged")
        if dispute.state in _DECIDED:
            status = "undecided"
    claimed = seat.opened if seat is not None and any(seat.opened) else b""
    if dispute is not None and any(dispute.claimed):
        claimed = dispute.claimed
    is_shown = seat is not None and audit in ("agrees", "differs")
    found = seat.answer if seat is not None and is_shown else b""
    if dispute is not None and any(dispute.truth):
        found = dispute.truth
    return TraceSegment.model_validate(
        {
            "segment": segment,
            "title": titles.get(segment),
            "status": status,
            "auditor": None if seat is None else seat.member,
            "audit": audit,
            "challenger": None if dispute is None else dispute.accuser,
            "verdict": None if dispute is None else verdict_of(dispute.state),
            "referees": _referees(known.task, segment),
            "transaction": _transaction(known, segment),
            "claimed": f"0x{claimed.hex()}" if claimed else None,
            "found": f"0x{found.hex()}" if found else None,
        }
    )


def _audit(seat: Seat, *, is_shown: bool) -> str:
    if not is_shown:
        if seat.state is SeatState.CLOSED:
            return "silent"
        return "waiting" if seat.state is SeatState.DRAWN else "committed"
    if seat.answer == UNSERVED:
        return "unserved"
    return "agrees" if seat.answer == seat.opened else "differs"


def _referees(task: Task, segment: int) -> list[str]:
    return [
        seat.member
        for (disputed, _), panel in sorted(task.panels.items())
        if disputed == segment
        for seat in panel.seats
    ]


def _transaction(known: Known, segment: int) -> str | None:
    """Where the last that was said about a segment stands."""
    found = None
    for one in known.events:
        args = one.event.args
        if args.get("segment") == segment or args.get("duty") == segment:
            found = f"0x{one.transaction.hex()}"
    return found
