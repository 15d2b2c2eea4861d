"""Money leaves: `withdraw`."""

import brownie
import pytest
from brownie import HostileReceiver

from tests.contracts.yard import CREDIT, event, reverts


def test_credit_goes_to_the_named_account(yard):
    """Rules V1, V2: what leaves the credit arrives, and the market owes as much less."""
    held, owed = yard.market.solvency()
    before = yard.owner.balance()
    tx = yard.market.withdraw(yard.owner, 7, {"from": yard.requester})

    assert event(tx, "Withdrawn") == {"account": yard.requester, "to": yard.owner, "amount": 7}
    assert yard.owner.balance() == before + 7
    assert yard.credit(yard.requester) == CREDIT - 7
    assert yard.credit(yard.owner) == 0
    assert yard.market.solvency() == (held - 7, owed - 7)


def test_credit_can_be_withdrawn_to_the_last_unit(yard):
    """Rule V2: nothing is kept back."""
    yard.market.withdraw(yard.stranger, CREDIT, {"from": yard.requester})

    assert yard.credit(yard.requester) == 0


def test_nobody_withdraws_more_than_its_credit(yard):
    """Rule V2: one unit more is refused, however much the market holds."""
    with reverts("MarketInsufficientCredit", yard.requester, CREDIT, CREDIT + 1):
        yard.market.withdraw(yard.requester, CREDIT + 1, {"from": yard.requester})

    assert yard.credit(yard.requester) == CREDIT


def test_credit_cannot_be_withdrawn_twice(yard):
    """Rule V2: the first withdrawal took it."""
    yard.market.withdraw(yard.requester, CREDIT, {"from": yard.requester})
    with reverts("MarketInsufficientCredit", yard.requester, 0, 1):
        yard.market.withdraw(yard.requester, 1, {"from": yard.requester})


def test_locked_money_is_no_credit(yard):
    """Rules T1, V2: the escrow of a task cannot be withdrawn beside it."""
    escrow = yard.terms().escrow
    yard.post()
    with reverts("MarketInsufficientCredit", yard.requester, CREDIT - escrow, CREDIT):
        yard.market.withdraw(yard.requester, CREDIT, {"from": yard.requester})


def test_bond_is_no_credit(yard):
    """Rules V2, W3: a bond comes back by `unbond` alone."""
    auditor = yard.auditors[0]
    credit = yard.credit(auditor)
    with reverts("MarketInsufficientCredit", auditor, credit, credit + 1):
        yard.market.withdraw(auditor, credit + 1, {"from": auditor})


def test_withdrawing_works_while_paused(yard):
    """Rules O1, V4: the owner cannot hold anybody's money."""
    yard.market.setPaused(True, {"from": yard.owner})
    before = yard.stranger.balance()
    yard.market.withdraw(yard.stranger, CREDIT, {"from": yard.requester})

    assert yard.stranger.balance() == before + CREDIT


def test_withdrawing_nothing_is_allowed(yard):
    """Rule V2: also to who has no credit."""
    tx = yard.market.withdraw(yard.owner, 0, {"from": yard.stranger})

    assert event(tx, "Withdrawn") == {"account": yard.stranger, "to": yard.owner, "amount": 0}


@pytest.mark.parametrize("yard_name", ["yard", "token_yard"])
@pytest.mark.parametrize("nowhere", ["zero", "market"])
def test_credit_is_not_sent_where_nobody_gets_it_back(request, yard_name, nowhere):
    """Rules V1, V2: neither the zero address nor the market itself can withdraw."""
    yard = request.getfixturevalue(yard_name)
    to = {"zero": brownie.ZERO_ADDRESS, "market": yard.market.address}[nowhere]
    with reverts("MarketTransferFailed", to, 7):
        yard.market.withdraw(to, 7, {"from": yard.requester})

    assert yard.credit(yard.requester) == CREDIT


def test_receiver_that_refuses_leaves_the_credit_where_it_was(yard):
    """Rule V4: the account may name another receiver."""
    receiver = HostileReceiver.deploy({"from": yard.stranger})
    receiver.setMood(1, yard.market, b"", {"from": yard.stranger})
    with reverts("MarketTransferFailed", receiver, 7):
        yard.market.withdraw(receiver, 7, {"from": yard.requester})

    assert yard.credit(yard.requester) == CREDIT
    yard.market.withdraw(yard.stranger, CREDIT, {"from": yard.requester})
    assert yard.credit(yard.requester) == 0


def test_tokens_go_to_the_named_account(token_yard):
    """Rules V1, V2: as in a market of the chain's coin."""
    yard = token_yard
    held, owed = yard.market.solvency()
    tx = yard.market.withdraw(yard.stranger, 7, {"from": yard.requester})

    assert event(tx, "Withdrawn") == {"account": yard.requester, "to": yard.stranger, "amount": 7}
    assert yard.token.balanceOf(yard.stranger) == 7
    assert yard.credit(yard.requester) == CREDIT - 7
    assert yard.market.solvency() == (held - 7, owed - 7)


def test_nobody_withdraws_more_tokens_than_its_credit(token_yard):
    """Rule V2: one unit more is refused."""
    yard = token_yard
    with reverts("MarketInsufficientCredit", yard.requester, CREDIT, CREDIT + 1):
        yard.market.withdraw(yard.requester, CREDIT + 1, {"from": yard.requester})
