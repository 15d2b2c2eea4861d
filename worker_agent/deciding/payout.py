"""Taking earnings home, and leaving what the next task is joined with."""

from trainyard.protocol.ledger.book import Task
from worker_agent.actions import Action, Send
from worker_agent.deciding.fees import fees_of, standing
from worker_agent.situation import ENDED, Situation, slots_of

# Less than so many times what it costs to take it home stays until there is more.
_WORTH = 10
_WITHDRAW_GAS = 60_000
# For the fees of so many a purse is filled.
_TASKS = 4


def for_payout(s: Situation) -> list[Action]:
    """Pay out what lies above the float once nothing is under way.

    A payout that is mined before a join would take away what the join counts on, so that it waits
    for all that is signed; what is taken in the same step the caller sees to.
    """
    if s.payout is None or s.pending or _is_busy(s):
        return []
    spare = s.credit - float_of(s)
    if spare <= _WORTH * _WITHDRAW_GAS * s.gas_price or spare <= 0:
        return []
    account = s.book.accounts[s.me]
    done = account.settled, account.failed, account.audits_right, account.audits_wrong
    # Also those that left no record, such as cancelled ones, so that no two are taken for one.
    joined = sum(any(slot.worker == s.me for slot in task.slots) for task in s.book.tasks.values())
    key = "withdraw/" + "-".join(map(str, (*done, joined, s.credit)))
    # Whoever has nothing left for fees answers no more, whatever it earns.
    lacking = _lacking_fees(s)
    target, amount = (s.me, min(spare, lacking)) if lacking else (s.payout, spare)
    return [Send(key, s.calls.withdraw(target, amount), adds_up=True)]


def float_of(s: Situation) -> int:
    """What stays in the market: what the operator says, or what was needed so far.

    That is the largest stake that we ever put down, for as many tasks as we take at once, and what
    a challenge costs if we audit. Who sets no float gets what it earns, and keeps what it works
    with.
    """
    if s.payout_float is not None:
        return s.payout_float
    largest = max((task.terms.stake for task in _joined(s)), default=0)
    if s.policy.max_stake is not None:
        # As much as that was once is not put down any more.
        largest = min(largest, s.policy.max_stake)
    known = s.book.workers.get(s.me)
    challenge = 0
    if known is not None and known.bond and s.book.params:
        challenge = max(params.seat_bond for params in s.book.params)
    return largest * s.policy.concurrency + challenge


def _lacking_fees(s: Situation) -> int:
    """What the purse lacks for the fees of a few tasks, once it has too little for one."""
    dearest = max((fees_of(s, task.terms) for task in _joined(s)), default=0)
    if s.purse >= standing(s) + dearest:
        return 0
    return standing(s) + _TASKS * dearest - s.purse


def _joined(s: Situation) -> list[Task]:
    return [
        task for task in s.book.tasks.values() if any(slot.worker == s.me for slot in task.slots)
    ]


def _is_busy(s: Situation) -> bool:
    """Whether we hold a slot: what its stake is topped up with is not known before its end."""
    return any(slots_of(task, s.me) for task in s.book.tasks.values() if task.state not in ENDED)
