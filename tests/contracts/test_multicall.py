"""Several acts in one transaction: `multicall`."""

import brownie
import pytest
from brownie import TrainingMarket

from tests.contracts.signing import key_holder, permit
from tests.contracts.yard import (
    CREDIT,
    ENV_CLASS,
    REWARD,
    STAKE,
    digest,
    reverts,
)
from trainyard.protocol.market import TaskState


def multicall(yard, account, *calls, **options):
    market = TrainingMarket.at(yard.market.address)
    return market.multicall(list(calls), {"from": account, **options})


def test_newcomer_permits_deposits_registers_and_joins_at_once(token_yard):
    """Rules T3, V7: a worker in a token market needs one transaction, and no allowance before."""
    yard = token_yard
    task = yard.post(audits=0)
    worker = key_holder("newcomer")
    yard.token.mint(worker, STAKE + 7, {"from": yard.owner})
    signed = permit(yard.token, worker, yard.market, STAKE + 7, yard.now() + 60)
    multicall(
        yard,
        worker,
        yard.market.depositWithPermit.encode_input(*signed),
        yard.market.register.encode_input(digest("profile"), ENV_CLASS, 0),
        yard.market.join.encode_input(task, digest("card"), []),
    )

    assert yard.market.slot(task, 0)["worker"] == worker
    assert yard.state(task) == TaskState.RUNNING
    assert yard.credit(worker) == 7
    assert yard.token.balanceOf(worker) == 0


def test_acts_of_all_parts_go_into_one_transaction(yard):
    """Rules T2, V2: also those that the market hands on."""
    task = yard.post()
    before = yard.stranger.balance()
    multicall(
        yard,
        yard.requester,
        yard.market.cancel.encode_input(task),
        yard.market.withdraw.encode_input(yard.stranger, CREDIT),
    )

    assert yard.state(task) == TaskState.CANCELLED
    assert yard.stranger.balance() == before + CREDIT


def test_all_acts_or_none(yard):
    """Rule V2: where one is refused, the transaction is, with that one's reason."""
    task = yard.post()
    credit = yard.credit(yard.requester)
    refund = yard.terms().escrow
    with reverts("MarketInsufficientCredit", yard.requester, credit + refund, CREDIT + 1):
        multicall(
            yard,
            yard.requester,
            yard.market.cancel.encode_input(task),
            yard.market.withdraw.encode_input(yard.requester, CREDIT + 1),
        )

    assert yard.state(task) == TaskState.OPEN
    assert yard.credit(yard.requester) == credit


def test_acts_are_the_callers(yard):
    """Rule V2: nobody acts for another account by going through the market itself."""
    with reverts("MarketInsufficientCredit", yard.stranger, 0, 1):
        multicall(yard, yard.stranger, yard.market.withdraw.encode_input(yard.stranger, 1))


@pytest.mark.parametrize("times", [1, 2])
def test_value_cannot_be_counted_twice(yard, times):
    """Rules V1, V7: a multicall takes no value, so none can be credited more than once."""
    held, owed = yard.market.solvency()
    deposit = yard.market.deposit.encode_input(7)
    # Solidity itself refuses value here, and gives no reason.
    with brownie.reverts(""):
        multicall(yard, yard.stranger, *[deposit] * times, value=7)
    with reverts("MarketWrongValue", 0, 7):
        multicall(yard, yard.stranger, *[deposit] * times)

    assert yard.market.solvency() == (held, owed)


def test_post_in_a_multicall_spends_credit_only(yard):
    """Rules T1, V7: two posts in one transaction lock two escrows."""
    escrow = yard.terms().escrow
    post = yard.market.post.encode_input(yard.terms().as_tuple())
    multicall(yard, yard.requester, post, post)

    assert yard.market.taskCount() == 2
    assert yard.credit(yard.requester) == CREDIT - 2 * escrow
    assert escrow > REWARD


def test_guard_is_lifted_between_the_acts(yard):
    """Rule V2: two withdrawals in one transaction are two withdrawals."""
    withdraw = yard.market.withdraw.encode_input(yard.stranger, 7)
    tx = multicall(yard, yard.requester, withdraw, withdraw)

    assert [entry["amount"] for entry in tx.events["Withdrawn"]] == [7, 7]
    assert yard.credit(yard.requester) == CREDIT - 14
