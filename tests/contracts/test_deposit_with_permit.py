"""Money enters by a signature: `depositWithPermit`."""

import pytest

from tests.contracts.signing import key_holder, permit
from tests.contracts.yard import digest, event, reverts


@pytest.fixture
def holder(token_yard):
    """Has tokens that nobody may take yet."""
    holder = key_holder("holder")
    token_yard.token.mint(holder, 100, {"from": token_yard.owner})
    return holder


def test_permit_and_deposit_are_one_transaction(token_yard, holder):
    """Rule V7: no allowance is needed before, and none is left."""
    yard = token_yard
    held, owed = yard.market.solvency()
    signed = permit(yard.token, holder, yard.market, 60, yard.now() + 60)
    tx = yard.market.depositWithPermit(*signed, {"from": holder})

    assert event(tx, "Deposited") == {"account": holder, "amount": 60}
    assert yard.credit(holder) == 60
    assert yard.token.balanceOf(holder) == 40
    assert yard.token.allowance(holder, yard.market) == 0
    assert yard.market.solvency() == (held + 60, owed + 60)


def test_permit_that_was_used_before_does_no_harm(token_yard, holder):
    """Rule V7: who copies the permit out of the pool of transactions cannot stop the deposit."""
    yard = token_yard
    signed = permit(yard.token, holder, yard.market, 60, yard.now() + 60)
    yard.token.permit(holder, yard.market, *signed, {"from": yard.stranger})
    yard.market.depositWithPermit(*signed, {"from": holder})

    assert yard.credit(holder) == 60


def test_permit_works_once(token_yard, holder):
    """Rule V2: the second deposit needs a permit of its own."""
    yard = token_yard
    signed = permit(yard.token, holder, yard.market, 50, yard.now() + 60)
    yard.market.depositWithPermit(*signed, {"from": holder})
    with reverts("ERC20InsufficientAllowance", yard.market, 0, 50):
        yard.market.depositWithPermit(*signed, {"from": holder})

    assert yard.credit(holder) == 50


@pytest.mark.parametrize(("late", "accepted"), [(-1, True), (0, True), (1, False)])
def test_token_decides_when_its_permit_is_over(token_yard, holder, late, accepted):
    """Rule C1: ERC-2612 counts the deadline's own second in; after it nothing is taken."""
    yard = token_yard
    deadline = yard.now() + 60
    signed = permit(yard.token, holder, yard.market, 60, deadline)
    yard.at(deadline + late)
    if accepted:
        yard.market.depositWithPermit(*signed, {"from": holder})
    else:
        with reverts("ERC20InsufficientAllowance", yard.market, 0, 60):
            yard.market.depositWithPermit(*signed, {"from": holder})

    assert yard.now() == deadline + late
    assert yard.credit(holder) == (60 if accepted else 0)


def test_permit_of_another_account_serves_nobody(token_yard, holder):
    """Rule V2: a permit can be copied, but only its signer is credited by it."""
    yard = token_yard
    signed = permit(yard.token, holder, yard.market, 60, yard.now() + 60)
    with reverts("ERC20InsufficientAllowance", yard.market, 0, 60):
        yard.market.depositWithPermit(*signed, {"from": yard.stranger})

    assert yard.credit(yard.stranger) == yard.credit(holder) == 0
    assert yard.token.balanceOf(holder) == 100


def test_broken_permit_is_made_up_for_by_an_allowance(token_yard):
    """Rule V3: the allowance is what counts."""
    yard = token_yard
    yard.supply(yard.stranger, amount=60)
    broken = (60, 0, 27, digest("r"), digest("s"))
    yard.market.depositWithPermit(*broken, {"from": yard.stranger})

    assert yard.credit(yard.stranger) == 60


def test_coin_knows_no_permits(yard):
    """Rule V7: only a token has them."""
    with reverts("MarketNotToken"):
        yard.market.depositWithPermit(
            1, 2**32, 27, digest("r"), digest("s"), {"from": yard.stranger}
        )
