"""A worker puts down a bond, or more of it: `addBond`."""

from dataclasses import replace

import pytest
from brownie import chain

from tests.contracts.yard import (
    AUDITOR_BOND,
    BOND,
    CREDIT,
    ENV_CLASS,
    ETHER,
    PARAMS,
    digest,
    event,
    reverts,
)

THIN_CLASS = digest("a class of few")


def test_first_bond_opts_in(yard):
    """Rule W2: the worker enters the pool, at its end."""
    worker = yard.workers[0]
    members = yard.market.poolSize(ENV_CLASS)
    tx = yard.market.addBond(PARAMS.seat_bond, {"from": worker})

    assert event(tx, "BondAdded") == {
        "worker": worker,
        "amount": PARAMS.seat_bond,
        "poolIndex": members + 1,
        "since": tx.timestamp,
    }
    assert yard.market.poolSize(ENV_CLASS) == members + 1
    assert yard.market.poolMember(ENV_CLASS, members) == worker
    assert yard.market.worker(worker)["since"] == tx.timestamp
    assert yard.credit(worker) == CREDIT - PARAMS.seat_bond


def test_more_bond_keeps_the_place(yard):
    """Rules V2, W2: only the bond grows, out of the credit."""
    auditor = yard.auditors[2]
    size = yard.market.poolSize(ENV_CLASS)
    credit = yard.credit(auditor)
    tx = yard.market.addBond(7, {"from": auditor})

    assert event(tx, "BondAdded") == {
        "worker": auditor,
        "amount": 7,
        "poolIndex": 3,
        "since": tx.timestamp,
    }
    assert yard.market.worker(auditor)["bond"] == AUDITOR_BOND + 7
    assert yard.market.poolSize(ENV_CLASS) == size
    assert yard.credit(auditor) == credit - 7


def test_value_rides_along(yard):
    """Rule V7: value is credited first; the rest stays credited."""
    yard.register(yard.stranger)
    tx = yard.market.addBond(ETHER, {"from": yard.stranger, "value": ETHER + 7})

    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": ETHER + 7}
    assert yard.market.worker(yard.stranger)["bond"] == ETHER
    assert yard.credit(yard.stranger) == 7


def test_token_market_takes_no_value(token_yard):
    """Rule V7: coin in a token market would be nobody's."""
    with reverts("MarketWrongValue", 7, 0):
        token_yard.market.addBond(ETHER, {"from": token_yard.workers[0], "value": 7})


@pytest.mark.parametrize("amount", [0, PARAMS.seat_bond - 1])
def test_bond_below_the_seat_bond_is_refused(yard, amount):
    """Rule W2: a bond is enough for a seat, or it is none."""
    with reverts("MarketBondTooLow", amount, PARAMS.seat_bond):
        yard.market.addBond(amount, {"from": yard.workers[0]})


def test_nothing_is_no_addition(yard):
    """Rule A2: a member cannot renew its place in time for nothing."""
    auditor = yard.auditors[0]
    since = yard.market.worker(auditor)["since"]
    with reverts("MarketBondTooLow", AUDITOR_BOND, PARAMS.seat_bond):
        yard.market.addBond(0, {"from": auditor})

    assert yard.market.worker(auditor)["since"] == since


def test_bond_is_measured_by_the_seat_bond_of_today(yard):
    """Rules O2, W2: after a raise, the old bond and the new together must reach it."""
    worker = yard.workers[0]
    yard.market.addBond(PARAMS.seat_bond, {"from": worker})
    yard.market.setParams(replace(PARAMS, seat_bond=ETHER).as_tuple(), {"from": yard.owner})
    missing = ETHER - PARAMS.seat_bond
    with reverts("MarketBondTooLow", ETHER - 1, ETHER):
        yard.market.addBond(missing - 1, {"from": worker})
    yard.market.addBond(missing, {"from": worker})

    assert yard.market.worker(worker)["bond"] == ETHER


def test_bond_needs_credit(yard):
    """Rule V2: what is not credited cannot be put down."""
    with reverts("MarketInsufficientCredit", yard.workers[0], CREDIT, CREDIT + 1):
        yard.market.addBond(CREDIT + 1, {"from": yard.workers[0]})


def test_strangers_put_down_no_bond(yard):
    """Rules W1, W2: only who is registered has a class to be drawn for; its value stays its own."""
    with reverts("MarketNotRegistered", yard.stranger):
        yard.market.addBond(ETHER, {"from": yard.stranger, "value": ETHER})

    assert yard.credit(yard.stranger) == 0


def test_retired_workers_put_down_no_bond(yard):
    """Rule W3: retiring is not taken back by adding to the bond."""
    auditor = yard.auditors[0]
    yard.market.retire({"from": auditor})
    with reverts("MarketNotRegistered", auditor):
        yard.market.addBond(ETHER, {"from": auditor})


@pytest.fixture
def thin_task(yard):
    """A running task; the pool of its class has one member, whose bond is a unit too low by now."""
    yard.fund(yard.stranger)
    yard.register(yard.stranger, env_class=THIN_CLASS)
    yard.register(yard.challenger, env_class=THIN_CLASS, bond=BOND)
    yard.market.setParams(replace(PARAMS, seat_bond=BOND + 1).as_tuple(), {"from": yard.owner})
    task = yard.post(env_class=THIN_CLASS, audits=1)
    yard.join(task, yard.stranger)
    return task


def test_bond_that_is_too_low_is_not_drawn(yard, thin_task):
    """Rules A5, W2: who was in the pool before the raise stays there, but sits on no new panel."""
    yard.submit(thin_task, yard.stranger)
    tx = yard.draw(thin_task)

    assert "SeatDrawn" not in tx.events
    assert event(tx, "SeatsUnassigned")["missing"] == 1


def test_bond_before_the_call_is_drawn(yard, thin_task):
    """Rules A5, W2: a bond that covers a seat puts its member there, and stands behind it."""
    yard.market.addBond(1, {"from": yard.challenger})
    yard.submit(thin_task, yard.stranger)
    seat = event(yard.draw(thin_task), "SeatDrawn")

    assert (seat["member"], seat["bond"]) == (yard.challenger, BOND + 1)
    assert yard.market.worker(yard.challenger)["bondLocked"] == BOND + 1


def test_bond_after_the_call_is_passed_over(yard, thin_task):
    """Rule A2: a member cannot become eligible when it knows whom the draw will hit."""
    yard.submit(thin_task, yard.stranger)
    chain.mine(2)
    yard.market.addBond(1, {"from": yard.challenger})
    tx = yard.market.draw(thin_task, {"from": yard.owner})

    assert "SeatDrawn" not in tx.events
    assert event(tx, "SeatsUnassigned")["missing"] == 1
