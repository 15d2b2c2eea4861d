"""What a drawn auditor, evaluator or referee owes: an answer, blind, and then in the open."""

from trainyard.protocol.commitments import scores_answer
from trainyard.protocol.ledger.book import Panel, Task
from trainyard.protocol.market import (
    OWN_PANEL,
    UNSERVED,
    DisputeState,
    Policy,
    SeatState,
    TaskState,
)
from worker_agent.actions import Action, Recompute, Send, Stop, Tell
from worker_agent.progress import Answer, answer_work, asked
from worker_agent.situation import ENDED, Situation, in_question

_OWN = (OWN_PANEL, 0)


def for_seats(s: Situation, number: int, task: Task) -> list[Action]:
    if task.state in ENDED:
        works = tuple(
            answer_work(place, index)
            for place, panel in task.panels.items()
            for index in _seats(s, panel)
        )
        return [Stop(number, "the task is over", works=works)] if works else []
    actions = list[Action]()
    for index in _seats(s, task.own_panel):
        actions += _as_auditor(s, number, task, index)
    for segment, dispute in task.disputes.items():
        panel = task.panels.get((segment, dispute.round))
        for index in _seats(s, panel) if panel is not None else []:
            actions += _as_referee(s, number, task, segment, index)
    return actions


def _seats(s: Situation, panel: Panel) -> list[int]:
    return [index for index, seat in enumerate(panel.seats) if seat.member == s.me]


def _as_auditor(s: Situation, number: int, task: Task, index: int) -> list[Action]:
    seat, panel = task.own_panel.seats[index], task.own_panel
    if task.state is TaskState.AUDITING and seat.state is SeatState.DRAWN:
        return _commit(s, number, task, _OWN, index, task.deadline)
    is_open = task.state in (TaskState.WINDOW, TaskState.DISPUTED)
    if not is_open or seat.state is not SeatState.COMMITTED or s.now >= panel.reveal_by:
        return []
    answer = _committed(s, number, task, _OWN, index, _worthless(task))
    if answer is None:
        return _find_again(s, number, task, _OWN, index)
    salt = s.salt(number, _OWN, index)
    if task.terms.policy is Policy.AUDIT:
        call = s.calls.audit_reveal(number, index, salt, answer.value)
    else:
        call = s.calls.score_reveal(number, index, salt, answer.scores)
    return [Send(f"{number}/audit-reveal/{index}", call, panel.reveal_by)]


def _as_referee(s: Situation, number: int, task: Task, segment: int, index: int) -> list[Action]:
    dispute = task.disputes[segment]
    place = (segment, dispute.round)
    seat = task.panels[place].seats[index]
    if dispute.state is DisputeState.HEARING and seat.state is SeatState.DRAWN:
        return _commit(s, number, task, place, index, dispute.deadline)
    if dispute.state is not DisputeState.RULING or seat.state is not SeatState.COMMITTED:
        return []
    if s.now >= dispute.deadline:
        return []
    answer = _committed(s, number, task, place, index)
    if answer is None:
        return _find_again(s, number, task, place, index)
    salt = s.salt(number, place, index)
    call = s.calls.referee_reveal(number, segment, index, salt, answer.value)
    key = f"{number}/referee-reveal/{segment}/{dispute.round}/{index}"
    return [Send(key, call, dispute.deadline)]


def _commit(
    s: Situation, number: int, task: Task, place: tuple[int, int], index: int, deadline: int
) -> list[Action]:
    is_scored = place == _OWN and task.terms.policy is not Policy.AUDIT
    if s.now >= deadline or (not is_scored and task.terms.env_class != s.env_class):
        # Bits of another class would accuse the honest: to say nothing costs less.
        return []
    answer = s.of(number).answers.get((*place, index))
    question = _asked(task, place, index)
    if answer is not None and answer.about != question:
        # The chain has drawn anew since: it is the answer to another question.
        answer = None
    is_whole = answer is not None and answer.value != UNSERVED and not (is_scored and answer.reason)
    if answer is None or (not is_whole and s.in_time(deadline)):
        # What was not served may yet be: that is said at the last moment only.
        return _recompute(s, number, place, index)
    if not s.is_settled(task.panels[place].draw_block) and s.in_time(deadline):
        # A commitment does not name its segment. What is signed can be sent by others too, and
        # after a reorg that draws anew it would answer for another one: so the draw has to stay.
        return []
    if is_scored and answer.value == UNSERVED:
        # What nobody can have is worth nothing, and there is no other way to say so.
        answer = _worthless(task)
    if is_scored and len(answer.scores) != _scores_of(task):
        # It could not be revealed, which costs the whole bond.
        return []
    segment, round_ = place
    salt = s.salt(number, place, index)
    commitment = s.market.answer_commitment(
        number, index, s.me, salt, answer.value, segment=segment
    )
    if place == _OWN:
        call = s.calls.audit_commit(number, index, commitment)
        drawn = task.own_panel.seats[index].segment
        return [Send(f"{number}/audit-commit/{index}/{drawn}/{question[:8]}", call, deadline)]
    call = s.calls.referee_commit(number, segment, index, commitment)
    key = f"{number}/referee-commit/{segment}/{round_}/{index}/{question[:8]}"
    return [Send(key, call, deadline)]


def _committed(
    s: Situation, number: int, task: Task, place: tuple[int, int], index: int, *others: Answer
) -> Answer | None:
    """The answer that was committed to, which may have been that nothing was served."""
    known = s.of(number).answers.get((*place, index))
    if known is not None and known.about not in ("", _asked(task, place, index)):
        # To show it would accuse the honest: to say nothing costs no more.
        known = None
    committed = task.panels[place].seats[index].answer
    salt = s.salt(number, place, index)
    for answer in (known, Answer(UNSERVED), *others):
        if answer is not None and committed == s.market.answer_commitment(
            number, index, s.me, salt, answer.value, segment=place[0]
        ):
            return answer
    return None


def _find_again(
    s: Situation, number: int, task: Task, place: tuple[int, int], index: int
) -> list[Action]:
    """The answer is lost, and the salt cannot be: whoever computes the same may yet show it."""
    known = s.of(number).answers.get((*place, index))
    if known is None or known.about != _asked(task, place, index) or known.value == UNSERVED:
        return _recompute(s, number, place, index)
    what = f"segment {task.panels[place].seats[index].segment}"
    return [
        Tell(
            number,
            f"the answer that was committed to for {what} is lost, and comes out differently now: "
            "it cannot be revealed, and the bond of the seat is lost",
        )
    ]


def _recompute(s: Situation, number: int, place: tuple[int, int], index: int) -> list[Action]:
    is_due = s.may_try(number, answer_work(place, index))
    return [Recompute(number, place, index)] if is_due else []


def _asked(task: Task, place: tuple[int, int], index: int) -> str:
    return asked(in_question(task), task.panels[place].seats[index].segment)


def _scores_of(task: Task) -> int:
    """How many scores an evaluator has to show."""
    return task.terms.slots if task.terms.policy is Policy.CONTEST else 1


def _worthless(task: Task) -> Answer:
    return scored((0,) * _scores_of(task))


def scored(scores: tuple[int, ...]) -> Answer:
    """An evaluator's answer."""
    return Answer(scores_answer(scores), scores)
