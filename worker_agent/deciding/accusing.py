"""Accusing the workers of a task of what we found wrong, as one of them or as their auditor."""

from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import OWN_PANEL, TaskState
from worker_agent.actions import Action, LookBehind, Send
from worker_agent.deciding.fees import spare
from worker_agent.postings import plain
from worker_agent.situation import Situation


def for_fraud(s: Situation, number: int, task: Task, *, is_paying: bool = False) -> list[Action]:
    """Challenge what others signed for, unless somebody else already does.

    Audits are drawn and may miss it. The bond comes back with half of what the guilty lose. With
    `is_paying` something else counts on our money already, and this waits for the next step.
    """
    if task.state is not TaskState.WINDOW or not s.in_time(task.deadline):
        return []
    found = _look_behind(s, number, task)
    return found or ([] if is_paying else _challenge(s, number, task))


def _look_behind(s: Situation, number: int, task: Task) -> list[Action]:
    """What was drawn after the end of a run tells nothing: look at how it came to that end."""
    progress = s.of(number)
    if progress.has_looked or task.terms.env_class != s.env_class:
        return []
    answers = progress.answers
    idle = [
        seat.segment
        for index, seat in enumerate(task.own_panel.seats)
        if seat.member == s.me
        and (known := answers.get((OWN_PANEL, 0, index))) is not None
        and known.is_idle
    ]
    return [LookBehind(number, idle[0])] if idle and s.may_try(number, "look") else []


def _challenge(s: Situation, number: int, task: Task) -> list[Action]:
    wrong, claim = s.of(number).wrong, task.slots[task.lead].claim
    if wrong is None or claim is None:
        return []
    # Of another run we have no proofs, and know nothing.
    is_ours = claim.root == wrong.trace.root
    if not is_ours or wrong.segment in task.disputes:
        return []
    challenge = f"{number}/challenge/{wrong.segment}"
    deposit = f"{number}/accuse/deposit/{wrong.segment}"
    if {challenge, deposit} & set(map(plain, s.pending)):
        # What it takes with it would seem to be missing.
        return []
    missing = s.book.params[task.params_id].seat_bond - s.credit
    if missing > spare(s):
        return []
    if missing > 0:
        call = s.calls.deposit(missing, value=missing)
        return [Send(deposit, call, task.deadline, adds_up=True, stakes=True)]
    state, proof = wrong.trace.after(wrong.segment), wrong.trace.proof_after(wrong.segment)
    call = s.calls.challenge(number, wrong.segment, claim, state, proof)
    return [Send(challenge, call, task.deadline, stakes=True)]
