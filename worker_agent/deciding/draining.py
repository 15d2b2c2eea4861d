"""What an agent has to see through before it may end."""

from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import DisputeState, SeatState
from worker_agent.deciding.membership import NEVER_WEI
from worker_agent.situation import ENDED, Situation, slots_of

_OPEN = (SeatState.DRAWN, SeatState.COMMITTED)
_LIVE = (
    DisputeState.UNSERVED,
    DisputeState.CALLED,
    DisputeState.HEARING,
    DisputeState.RULING,
)


def under_way(s: Situation) -> list[str]:
    """Each in a few words; nothing if the agent may end."""
    found = []
    for number, task in s.book.tasks.items():
        if task.state not in ENDED and slots_of(task, s.me):
            found.append(f"task {number}, in which we hold a slot")
        elif _has_seat(s, task):
            found.append(f"task {number}, in which we hold a seat")
    known = s.book.workers.get(s.me)
    if known is not None and known.pool_index and known.min_fee != NEVER_WEI:
        found.append("our notice to the market that we want to be drawn no more")
    return found


def has_live_dispute(task: Task) -> bool:
    return any(dispute.state in _LIVE for dispute in task.disputes.values())


def _has_seat(s: Situation, task: Task) -> bool:
    """One whose bond is held: an ended task may have a dispute that nobody has voided yet."""
    is_live = task.state not in ENDED or has_live_dispute(task)
    seats = (seat for panel in task.panels.values() for seat in panel.seats)
    return is_live and any(seat.member == s.me and seat.state in _OPEN for seat in seats)
