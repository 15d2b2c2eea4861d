"""Value that comes without a call, and calls that nobody answers."""

import brownie
import pytest
from brownie import ContractWallet

from tests.contracts.yard import event, reverts


def test_plain_value_is_a_deposit_of_its_sender(yard):
    """Rules V1, V2: nothing that is sent is lost."""
    held, owed = yard.market.solvency()
    tx = yard.stranger.transfer(yard.market, 7)

    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": 7}
    assert yard.credit(yard.stranger) == 7
    assert yard.market.solvency() == (held + 7, owed + 7)


def test_plain_value_of_a_contract_is_credited_to_the_contract(yard):
    """Rule V2: the sender is who pays, not who started the transaction."""
    wallet = ContractWallet.deploy(yard.stranger, {"from": yard.stranger})
    wallet.act(yard.market, 7, b"", {"from": yard.stranger, "value": 7})

    assert yard.credit(wallet) == 7
    assert yard.credit(yard.stranger) == 0


def test_empty_transaction_is_no_deposit(yard):
    """Rule V6: no event tells of money that did not move."""
    tx = yard.stranger.transfer(yard.market, 0)

    assert "Deposited" not in tx.events


def test_token_market_takes_no_plain_value(token_yard):
    """Rule V7: coin in a token market would be nobody's."""
    with reverts("MarketWrongValue", 7, 0):
        token_yard.stranger.transfer(token_yard.market, 7)


@pytest.mark.parametrize("data", ["0x12", "0x12345678", "0xffffffff" + "00" * 32])
@pytest.mark.parametrize("value", [0, 7])
def test_unknown_calls_are_refused_with_what_they_bring(yard, data, value):
    """Rule V1: no part of the market swallows a call that it does not know."""
    held, owed = yard.market.solvency()
    # Nobody is there to give a reason.
    with brownie.reverts():
        yard.stranger.transfer(yard.market, value, data=data)

    assert yard.market.solvency() == (held, owed)


def test_value_with_a_call_that_wants_none_is_refused(yard):
    """Rule V2: value rides along only where it becomes credit."""
    task = yard.post()
    with brownie.reverts(""):
        yard.market.cancel(task, {"from": yard.requester, "value": 7})
    with brownie.reverts(""):
        yard.market.withdraw(yard.stranger, 1, {"from": yard.requester, "value": 7})
