"""What has to stay in the purse for fees: a stake is lost by whoever cannot pay for its answer."""

from trainyard.protocol.gas import AUDIT_GAS, gas_of
from trainyard.protocol.market import Terms
from worker_agent.situation import Situation, taken

# A transaction offers twice the base fee, so that it holds for a while, and nodes ask for all of
# what it offers beforehand.
_MAX_FEE = 2
# Of the gas as measured: limits lie above it, and some calls are made for others who do not.
_GAS_PERCENT = 150
# Registering, or a duty, while we are in no task.
_STANDING_GAS = 300_000 + sum(AUDIT_GAS.values())
# 0.01 of the chain's currency: on a chain where gas is cheap now, it may be a hundred times dearer
# within the hours that a task takes.
_LEAST_WEI = 10**16


def fees_of(s: Situation, terms: Terms) -> int:
    """What taking part in a task may cost, at what gas costs now."""
    return _wei(s, gas_of(terms))


def left_of(s: Situation) -> int:
    """What of the purse can be put down, when the fees of all that we owe are laid aside.

    Less than nothing, if even those are not there.
    """
    held = (s.book.tasks[number].terms for number in taken(s))
    return s.purse - sum(fees_of(s, terms) for terms in held) - standing(s)


def spare(s: Situation) -> int:
    """What of the purse can be put down, if anything."""
    return max(0, left_of(s))


def standing(s: Situation) -> int:
    """What is laid aside for fees also when nothing is under way; none where gas is free."""
    return max(_LEAST_WEI, _wei(s, _STANDING_GAS)) if s.gas_price else 0


def _wei(s: Situation, gas: int) -> int:
    return gas * _GAS_PERCENT // 100 * s.gas_price * _MAX_FEE
