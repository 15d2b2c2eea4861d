"""Ownership moves in two steps, and gives no way to anybody's money."""

import brownie
import pytest
from brownie import TrainingMarket

from tests.contracts.yard import PARAMS, inherited_event, reverts


@pytest.fixture
def market(yard):
    """The market with what `ITrainingMarket` leaves out."""
    return TrainingMarket.at(yard.market.address)


def test_deployer_names_the_owner(yard, market):
    """Rule O2: nobody is proposed at first."""
    assert market.owner() == yard.owner
    assert market.pendingOwner() == brownie.ZERO_ADDRESS


def test_proposal_alone_moves_nothing(yard, market):
    """Rule O2: the owner stays in charge until the other accepts."""
    tx = market.transferOwnership(yard.stranger, {"from": yard.owner})

    assert inherited_event(tx, "OwnershipTransferStarted") == {
        "previousOwner": yard.owner,
        "newOwner": yard.stranger,
    }
    assert (market.owner(), market.pendingOwner()) == (yard.owner, yard.stranger)
    with reverts("OwnableUnauthorizedAccount", yard.stranger):
        market.setPaused(True, {"from": yard.stranger})


def test_accepting_moves_ownership(yard, market):
    """Rule O2: the new owner is in charge, the old one no longer."""
    market.transferOwnership(yard.stranger, {"from": yard.owner})
    tx = market.acceptOwnership({"from": yard.stranger})

    assert inherited_event(tx, "OwnershipTransferred") == {
        "previousOwner": yard.owner,
        "newOwner": yard.stranger,
    }
    assert (market.owner(), market.pendingOwner()) == (yard.stranger, brownie.ZERO_ADDRESS)
    market.setParams(PARAMS.as_tuple(), {"from": yard.stranger})
    with reverts("OwnableUnauthorizedAccount", yard.owner):
        market.setParams(PARAMS.as_tuple(), {"from": yard.owner})


def test_only_the_proposed_account_accepts(yard, market):
    """Rule O2: neither the owner itself nor a stranger."""
    market.transferOwnership(yard.challenger, {"from": yard.owner})
    for account in (yard.owner, yard.stranger):
        with reverts("OwnableUnauthorizedAccount", account):
            market.acceptOwnership({"from": account})

    assert market.owner() == yard.owner


def test_proposal_can_be_taken_back(yard, market):
    """Rule O2: a mistyped address costs nothing."""
    market.transferOwnership(yard.challenger, {"from": yard.owner})
    market.transferOwnership(yard.stranger, {"from": yard.owner})
    with reverts("OwnableUnauthorizedAccount", yard.challenger):
        market.acceptOwnership({"from": yard.challenger})


def test_only_the_owner_proposes(yard, market):
    """Rule O2: nobody else gives the market away."""
    with reverts("OwnableUnauthorizedAccount", yard.stranger):
        market.transferOwnership(yard.stranger, {"from": yard.stranger})


def test_market_runs_on_without_an_owner(yard, market):
    """Rules O1, O2: what the owner gave up nobody has, and tasks need no owner."""
    market.renounceOwnership({"from": yard.owner})
    task = yard.post()

    assert market.owner() == brownie.ZERO_ADDRESS
    assert yard.market.task(task)["paramsId"] == 0
    with reverts("OwnableUnauthorizedAccount", yard.owner):
        market.setPaused(True, {"from": yard.owner})


def test_owner_has_no_credit_but_its_own(yard, market):
    """Rules O1, V2: owning the market is no claim on what it holds."""
    with reverts("MarketInsufficientCredit", yard.owner, 0, 1):
        market.withdraw(yard.owner, 1, {"from": yard.owner})


def test_owner_cannot_cancel_tasks_of_others(yard):
    """Rules C3, O1: an open task belongs to its requester."""
    task = yard.post()
    with reverts("MarketNotRequester", task, yard.owner):
        yard.market.cancel(task, {"from": yard.owner})
