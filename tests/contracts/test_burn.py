"""What was burned leaves the market: `burn`."""

import pytest

from tests.contracts.yard import PARAMS, STAKE, event, reverts
from trainyard.protocol.market import BPS, BURN_ADDRESS, Policy

# The penalty of an absent worker burns whole.
BURNED = STAKE * PARAMS.fault_bps // BPS


@pytest.fixture(params=["yard", "token_yard"])
def burning(request):
    """Markets in which a worker was absent, so that part of its stake waits to be burned."""
    yard = request.getfixturevalue(request.param)
    task = yard.running(Policy.REPLICATE)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    return yard


def test_burned_money_waits_as_credit_that_nobody_holds(burning):
    """Rules P4, V5: the burned part is on record to the unit."""
    assert burning.credit(BURN_ADDRESS) == BURNED


def test_anyone_sends_it_off(burning):
    """Rules P4, V1: it arrives where nobody has a key, and is owed no more."""
    held, owed = burning.market.solvency()
    before = burning.holdings(BURN_ADDRESS)
    tx = burning.market.burn({"from": burning.stranger})

    assert event(tx, "Withdrawn") == {
        "account": BURN_ADDRESS,
        "to": BURN_ADDRESS,
        "amount": BURNED,
    }
    assert burning.holdings(BURN_ADDRESS) == before + BURNED
    assert burning.credit(BURN_ADDRESS) == 0
    assert burning.market.solvency() == (held - BURNED, owed - BURNED)


def test_it_burns_once(burning):
    """Rule V2: a second call finds nothing."""
    burning.market.burn({"from": burning.stranger})
    before = burning.holdings(BURN_ADDRESS)
    tx = burning.market.burn({"from": burning.stranger})

    assert event(tx, "Withdrawn")["amount"] == 0
    assert burning.holdings(BURN_ADDRESS) == before


def test_burned_money_cannot_be_withdrawn_by_others(burning):
    """Rule V2: not even by the owner."""
    with reverts("MarketInsufficientCredit", burning.owner, 0, BURNED):
        burning.market.withdraw(burning.owner, BURNED, {"from": burning.owner})
