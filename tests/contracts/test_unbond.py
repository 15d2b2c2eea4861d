"""A retired worker takes its bond back: `unbond`."""

import pytest

from tests.contracts.yard import (
    AUDITOR_BOND,
    BOND,
    CREDIT,
    ENV_CLASS,
    PARAMS,
    digest,
    event,
    reverts,
)
from trainyard.protocol.market import BPS, BURN_ADDRESS


def retire(yard, worker) -> int:
    return event(yard.market.retire({"from": worker}), "WorkerRetired")["unbondsAt"]


@pytest.mark.parametrize(("late", "free"), [(-1, False), (0, True), (1, True)])
def test_bond_is_free_from_the_end_of_the_delay_on(yard, late, free):
    """Rules C1, W3: refused a second before, allowed in the second itself."""
    auditor = yard.auditors[0]
    unbonds_at = retire(yard, auditor)
    yard.at(unbonds_at + late)
    if free:
        yard.market.unbond({"from": auditor})
    else:
        with reverts("MarketUnbonding", auditor, unbonds_at):
            yard.market.unbond({"from": auditor})

    assert yard.now() == unbonds_at + late
    assert yard.credit(auditor) == CREDIT - (0 if free else AUDITOR_BOND)


def test_whole_bond_becomes_credit(yard):
    """Rules V2, V6, W3: both events tell of it, and nothing of the worker is left."""
    auditor = yard.auditors[0]
    held, owed = yard.market.solvency()
    yard.warp(retire(yard, auditor))
    tx = yard.market.unbond({"from": auditor})

    assert event(tx, "BondReturned") == {"worker": auditor, "amount": AUDITOR_BOND}
    assert event(tx, "Credited") == {"id": 0, "account": auditor, "amount": AUDITOR_BOND}
    assert yard.market.worker(auditor) == yard.market.worker(BURN_ADDRESS)
    assert yard.market.solvency() == (held, owed)


def test_bond_that_was_slashed_comes_back_as_what_is_left(yard):
    """Rules A8, W3: silence cost the fault part of the bond behind the seat."""
    task = yard.auditing(audits=1)
    [seat] = yard.seats(task)
    yard.pass_deadline(task)
    yard.open(task)
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})
    yard.warp(retire(yard, seat.member))
    tx = yard.market.unbond({"from": seat.member})

    left = AUDITOR_BOND - BOND * PARAMS.fault_bps // BPS
    assert event(tx, "BondReturned") == {"worker": seat.member, "amount": left}
    assert yard.credit(seat.member) == CREDIT - AUDITOR_BOND + left


def test_bond_behind_a_seat_stays_until_the_seat_is_closed(yard):
    """Rule W3: also when the delay is long over; then all of it is free."""
    task = yard.auditing(audits=1, audit_for=30 * 86_400)
    [seat] = yard.seats(task)
    yard.warp(retire(yard, seat.member))
    with reverts("MarketBondInUse", seat.member, BOND):
        yard.market.unbond({"from": seat.member})

    yard.audit_commit(task, seat)
    yard.open(task)
    yard.audit_reveal(task, seat)
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})
    tx = yard.market.unbond({"from": seat.member})
    assert event(tx, "BondReturned")["amount"] == AUDITOR_BOND


def test_worker_may_come_back_as_a_newcomer(yard):
    """Rules W1, W3: with new profile, class and duties, at the end of the pool."""
    auditor = yard.auditors[0]
    yard.market.setDuty(5, 6, 7, {"from": auditor})
    yard.warp(retire(yard, auditor))
    yard.market.unbond({"from": auditor})
    tx = yard.market.register(digest("new"), ENV_CLASS, AUDITOR_BOND, {"from": auditor})

    worker = yard.market.worker(auditor)
    assert worker["profile"] == "0x" + digest("new").hex()
    assert worker["poolIndex"] == yard.market.poolSize(ENV_CLASS)
    assert (worker["minFee"], worker["minAuditFor"], worker["minAnswerFor"]) == (0, 0, 0)
    assert (worker["since"], worker["unbondsAt"]) == (tx.timestamp, 0)


def test_bond_comes_back_once(yard):
    """Rule V2: afterwards there is nothing to take."""
    auditor = yard.auditors[0]
    yard.warp(retire(yard, auditor))
    yard.market.unbond({"from": auditor})
    with reverts("MarketNotRetired", auditor):
        yard.market.unbond({"from": auditor})

    assert yard.credit(auditor) == CREDIT


@pytest.mark.parametrize("who", ["stranger", "auditor"])
def test_only_the_retired_unbond(yard, who):
    """Rule W3: neither strangers nor who is still in the pool."""
    account = {"stranger": yard.stranger, "auditor": yard.auditors[0]}[who]
    with reverts("MarketNotRetired", account):
        yard.market.unbond({"from": account})


def test_unbonding_works_while_paused(yard):
    """Rules O1, W3: the owner cannot hold anybody's bond."""
    auditor = yard.auditors[0]
    yard.market.setPaused(True, {"from": yard.owner})
    yard.warp(retire(yard, auditor))
    yard.market.unbond({"from": auditor})

    assert yard.credit(auditor) == CREDIT
