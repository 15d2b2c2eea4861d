"""By which way a settled task was found to be right, in words and in numbers. No I/O."""

from trainyard.protocol.ledger.book import ZERO_WORD, Task
from trainyard.protocol.market import Policy
from trainyard.protocol.tally import median
from trainyard.protocol.telling import amount, counted

_MILLION = 1_000_000
SCORED = (Policy.SCORE, Policy.CONTEST)


def copies_of(task: Task) -> int:
    """How many slots came to the claim that was paid for, each by itself."""
    lead = task.slots[task.lead].claim
    return sum(slot.claim == lead for slot in task.slots if slot.claim is not None)


def audits_of(task: Task) -> int:
    """How many were answered with what was opened for them; some are drawn and never answer."""
    seats = task.own_panel.seats
    return sum(one.answer == one.opened != ZERO_WORD for one in seats)


def score_of(task: Task) -> float | None:
    """The median of what evaluators found, as a share of one; None if nobody said anything."""
    place = task.lead if task.terms.policy is Policy.CONTEST else 0
    given = [one.scores[place] for one in task.own_panel.seats if len(one.scores) > place]
    return median(given) / _MILLION if given else None


def target_of(task: Task) -> float:
    return task.terms.target / _MILLION


def how_checked(task: Task) -> str:
    """In one clause, by whichever way it was."""
    seats = task.own_panel.seats
    if task.terms.policy is Policy.REPLICATE:
        return f"{copies_of(task)} of {len(task.slots)} trained the same, each alone"
    score = score_of(task)
    if task.terms.policy in SCORED and score is not None:
        heard = sum(bool(one.scores) for one in seats)
        return (
            f"{counted(heard, 'evaluator')} found a score of {score:g}, and {target_of(task):g} "
            "was asked for"
        )
    return f"{audits_of(task)} of {counted(len(seats), 'audit')} agree" if seats else "no audits"


def conclusion(number: int, task: Task, result: str) -> str:
    return (
        f"task {number} is settled: {how_checked(task)}, {amount(task.terms.escrow)} were locked; "
        f"the result is {result}"
    )
