"""What to do next, decided from what is known and nothing else: no clock, no chain, no disk."""

from worker_agent.actions import Action, MakeCard, Send
from worker_agent.deciding.accusing import for_fraud
from worker_agent.deciding.forgetting import for_past
from worker_agent.deciding.hurrying import for_pending
from worker_agent.deciding.membership import for_membership
from worker_agent.deciding.offers import for_offers
from worker_agent.deciding.payout import for_payout
from worker_agent.deciding.readiness import for_readiness
from worker_agent.deciding.seats import for_seats
from worker_agent.deciding.slots import for_slots
from worker_agent.deciding.upkeep import for_upkeep
from worker_agent.situation import Situation


def decide(situation: Situation) -> list[Action]:
    """All that is to be done now, the most urgent first.

    The chain is the truth and progress a cache, so deciding again after a crash, a reorg or a
    duplicate event is safe.
    """
    actions = list[Action]()
    for number, task in situation.book.tasks.items():
        if number in situation.gone:
            if task.disputes:
                actions += for_upkeep(situation, number, task)
            continue
        actions += for_slots(situation, number, task)
        actions += for_seats(situation, number, task)
        is_paying = any(map(_puts_down, actions))
        actions += for_fraud(situation, number, task, is_paying=is_paying)
        actions += for_upkeep(situation, number, task)
        actions += for_readiness(situation, number, task)
    # One thing at a time is paid for, or two would count on the same money; and only what nothing
    # else counts on is taken home.
    for more in (for_membership, for_offers, for_payout):
        if not any(map(_puts_down, actions)):
            actions += more(situation)
    actions += for_pending(situation)
    actions += for_past(situation)
    return [action for action in actions if not _is_vain(action, situation.now)]


def _puts_down(action: Action) -> bool:
    # Who makes its card joins next.
    return isinstance(action, MakeCard) or (isinstance(action, Send) and action.stakes)


def _is_vain(action: Action, now: int) -> bool:
    return isinstance(action, Send) and action.by is not None and now >= action.by
