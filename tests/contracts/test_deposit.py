"""Money enters: `deposit` in a market of the chain's coin and in one of a token."""

import brownie
import pytest

from tests.contracts.yard import ETHER, event, reverts


def test_value_becomes_credit_of_the_sender(yard):
    """Rules V1, V2: credited is exactly what was sent, and the market holds it."""
    held, owed = yard.market.solvency()
    tx = yard.market.deposit(7, {"from": yard.stranger, "value": 7})

    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": 7}
    assert yard.credit(yard.stranger) == 7
    assert yard.market.solvency() == (held + 7, owed + 7)
    assert yard.market.balance() == held + 7


def test_deposits_of_one_account_add_up_and_touch_no_other(yard):
    """Rule V2: each account has its own credit."""
    before = yard.credit(yard.requester)
    yard.market.deposit(3, {"from": yard.stranger, "value": 3})
    yard.market.deposit(4, {"from": yard.stranger, "value": 4})

    assert yard.credit(yard.stranger) == 7
    assert yard.credit(yard.requester) == before


def test_nothing_sent_is_nothing_credited(yard):
    """Rule V6: no event tells of money that did not move."""
    tx = yard.market.deposit(0, {"from": yard.stranger})

    assert "Deposited" not in tx.events
    assert yard.credit(yard.stranger) == 0


@pytest.mark.parametrize(("value", "amount"), [(0, 7), (6, 7), (8, 7), (7, 0)])
def test_value_must_be_the_announced_amount(yard, value, amount):
    """Rule V3: what was announced and what arrives are the same, or nothing happens."""
    with reverts("MarketWrongValue", value, amount):
        yard.market.deposit(amount, {"from": yard.stranger, "value": value})

    assert yard.credit(yard.stranger) == 0


def test_deposits_go_on_while_paused(yard):
    """Rule O1: a pause stops new posts alone."""
    yard.market.setPaused(True, {"from": yard.owner})
    yard.market.deposit(7, {"from": yard.stranger, "value": 7})

    assert yard.credit(yard.stranger) == 7


def test_tokens_become_credit_of_the_sender(token_yard):
    """Rules V1, V3: the tokens that arrived are credited."""
    yard = token_yard
    yard.supply(yard.stranger, amount=9)
    held, owed = yard.market.solvency()
    tx = yard.market.deposit(7, {"from": yard.stranger})

    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": 7}
    assert yard.credit(yard.stranger) == 7
    assert yard.token.balanceOf(yard.stranger) == 2
    assert yard.token.balanceOf(yard.market) == held + 7
    assert yard.market.solvency() == (held + 7, owed + 7)


def test_token_market_takes_no_value(token_yard):
    """Rule V7: coin in a token market would be nobody's."""
    yard = token_yard
    yard.supply(yard.stranger, amount=7)
    with reverts("MarketWrongValue", 1, 0):
        yard.market.deposit(7, {"from": yard.stranger, "value": 1})

    assert yard.market.balance() == 0


def test_tokens_are_taken_only_as_far_as_allowed(token_yard):
    """Rule V2: an account decides itself what it deposits."""
    yard = token_yard
    yard.supply(yard.stranger, amount=7)
    with reverts("ERC20InsufficientAllowance", yard.market, 7, 8):
        yard.market.deposit(8, {"from": yard.stranger})

    assert yard.credit(yard.stranger) == 0


def test_tokens_that_nobody_has_are_not_credited(token_yard):
    """Rule V3: an allowance is no money."""
    yard = token_yard
    yard.token.approve(yard.market, 7, {"from": yard.stranger})
    with reverts("ERC20InsufficientBalance", yard.stranger, 0, 7):
        yard.market.deposit(7, {"from": yard.stranger})

    assert yard.credit(yard.stranger) == 0


def test_tokens_of_others_cannot_be_deposited(token_yard):
    """Rule V2: the allowance of another account does not serve the caller."""
    yard = token_yard
    yard.supply(yard.challenger, amount=7)
    with reverts("ERC20InsufficientAllowance", yard.market, 0, 7):
        yard.market.deposit(7, {"from": yard.stranger})

    assert yard.token.balanceOf(yard.challenger) == 7


def test_credit_never_wraps_around(token_yard):
    """Rule V1: of a boundless token, all credits together take no more than 128 bits."""
    yard = token_yard
    room = 2**128 - 1 - yard.market.solvency()[1]
    yard.supply(yard.stranger, amount=room + 1)
    yard.market.deposit(room, {"from": yard.stranger})
    with reverts("SafeCastOverflowedUintDowncast", 128, 2**128):
        yard.market.deposit(1, {"from": yard.stranger})

    assert yard.credit(yard.stranger) == room
    assert yard.token.balanceOf(yard.stranger) == 1


def test_currency_is_named(yard, token_yard):
    """Rule V7: whoever pays can tell which kind of market it is."""
    assert yard.market.currency() == brownie.ZERO_ADDRESS
    assert token_yard.market.currency() == token_yard.token


def test_tokens_thrown_at_the_market_are_credited_to_nobody(token_yard):
    """Rules V1, V3: a transfer past `deposit` only makes the market richer."""
    yard = token_yard
    held, owed = yard.market.solvency()
    yard.token.mint(yard.market, ETHER, {"from": yard.stranger})
    yard.supply(yard.stranger, amount=7)
    yard.market.deposit(7, {"from": yard.stranger})

    assert yard.credit(yard.stranger) == 7
    assert yard.market.solvency() == (held + ETHER + 7, owed + 7)
