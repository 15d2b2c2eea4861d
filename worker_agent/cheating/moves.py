"""What a cheat decides: the honest decisions, bent. Pure like those."""

from collections.abc import Sequence

from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import OWN_PANEL, Policy, SeatState, TaskState
from worker_agent.actions import Action, Recompute, Seal, Send, Train
from worker_agent.cheating.plan import Cheat
from worker_agent.situation import Situation, slots_of

_OWN = (OWN_PANEL, 0)


def bend(cheat: Cheat, s: Situation, actions: Sequence[Action]) -> list[Action]:
    match cheat:
        case Cheat.WITHHOLD:
            return [one for one in actions if not _shows(one)]
        case Cheat.SILENT:
            return [one for one in actions if not _answers(one)]
        case Cheat.COPY:
            kept = [one for one in actions if not _works(one)]
            return kept + [move for number in s.book.tasks for move in _copies(s, number)]
        case _:
            return list(actions)


def _shows(action: Action) -> bool:
    if isinstance(action, Seal):
        return bool(action.served) or action.is_open
    acts = ("/open", "/serve/", "/expire/")
    return isinstance(action, Send) and any(act in action.key for act in acts)


def _answers(action: Action) -> bool:
    if isinstance(action, Send):
        return any(act in action.key for act in ("/audit-commit/", "/referee-commit/"))
    return isinstance(action, Recompute)


def _works(action: Action) -> bool:
    acts = ("/commit/", "/reveal/")
    is_claim = isinstance(action, Send) and any(act in action.key for act in acts)
    return isinstance(action, Train) or is_claim or _answers(action)


def _copies(s: Situation, number: int) -> list[Action]:
    task = s.book.tasks[number]
    return [*_copied_claim(s, number, task), *_copied_answers(s, number, task)]


def _copied_claim(s: Situation, number: int, task: Task) -> list[Send]:
    if task.terms.policy is not Policy.REPLICATE or not slots_of(task, s.me):
        return []
    [own] = slots_of(task, s.me)
    others = [slot for slot in task.slots if slot.worker != s.me]
    if task.state is TaskState.RUNNING and not task.answered >> own & 1:
        return [
            Send(f"{number}/copy/{own}", s.calls.commit(number, own, other.digest), task.deadline)
            for other in others
            if any(other.digest)
        ][:1]
    if task.state is TaskState.REVEALING:
        shown = [other.claim for other in others if other.claim is not None]
        # It knows what was claimed; what it committed to names somebody else.
        salt = s.salt(number, _OWN, own)
        return [
            Send(
                f"{number}/copied-reveal/{own}",
                s.calls.reveal(number, own, salt, claim.result, claim.root),
                task.deadline,
            )
            for claim in shown[:1]
        ]
    return []


def _copied_answers(s: Situation, number: int, task: Task) -> list[Send]:
    if task.state is not TaskState.AUDITING:
        return []
    seats = task.own_panel.seats
    told = [seat.answer for seat in seats if seat.state is SeatState.COMMITTED]
    return [
        Send(f"{number}/copied-audit/{index}", s.calls.audit_commit(number, index, told[0]))
        for index, seat in enumerate(seats)
        if seat.member == s.me and seat.state is SeatState.DRAWN and told
    ]
