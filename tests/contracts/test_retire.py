"""Workers go: `retire`."""

from dataclasses import replace

import pytest

from tests.contracts.yard import (
    AUDITOR_BOND,
    CREDIT,
    ENV_CLASS,
    ETHER,
    FEE,
    PARAMS,
    digest,
    event,
    reverts,
)
from trainyard.protocol.market import TaskState

THIN_CLASS = digest("a class of few")


def test_worker_leaves_register_and_pool_at_once(yard):
    """Rule W3: the bond stays until the delay is over."""
    auditor = yard.auditors[11]
    members = yard.market.poolSize(ENV_CLASS)
    tx = yard.market.retire({"from": auditor})

    unbonds_at = tx.timestamp + PARAMS.unbond_for
    assert event(tx, "WorkerRetired") == {"worker": auditor, "unbondsAt": unbonds_at}
    worker = yard.market.worker(auditor)
    assert worker["envClass"] == "0x" + "00" * 32
    assert (worker["poolIndex"], worker["unbondsAt"]) == (0, unbonds_at)
    assert worker["bond"] == AUDITOR_BOND
    assert yard.credit(auditor) == CREDIT - AUDITOR_BOND
    assert yard.market.poolSize(ENV_CLASS) == members - 1


def test_worker_without_a_bond_need_not_wait(yard):
    """Rule W3: there is nothing that could be answerable."""
    worker = yard.workers[0]
    tx = yard.market.retire({"from": worker})

    assert event(tx, "WorkerRetired") == {"worker": worker, "unbondsAt": tx.timestamp}


@pytest.mark.parametrize("changed", [0, 30 * 86_400])
def test_delay_is_that_of_the_day_of_the_bond(yard, changed):
    """Rules O2, W3: the owner cannot hold back bonds that were put down under a shorter delay."""
    yard.market.setParams(replace(PARAMS, unbond_for=changed).as_tuple(), {"from": yard.owner})
    tx = yard.market.retire({"from": yard.auditors[0]})

    assert event(tx, "WorkerRetired")["unbondsAt"] == tx.timestamp + PARAMS.unbond_for


def test_retired_worker_joins_nothing(yard):
    """Rules T3, W1: workers join only while registered."""
    task = yard.post()
    yard.market.retire({"from": yard.workers[0]})
    with reverts("MarketNotRegistered", yard.workers[0]):
        yard.join(task, yard.workers[0])


def test_slot_that_is_held_stays_a_duty_and_is_paid(yard):
    """Rules P1, W3: who retires may finish what it began."""
    task = yard.running(audits=0)
    yard.market.retire({"from": yard.workers[0]})
    yard.submit(task, yard.workers[0])
    yard.draw(task)
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.SETTLED
    assert yard.credit(yard.workers[0]) == CREDIT + ETHER


def test_seat_that_is_held_stays_a_duty_and_is_paid(yard):
    """Rules A8, W3: a drawn member that retires still answers and earns the fee."""
    task = yard.auditing()
    seats = yard.seats(task)
    member = seats[0].member
    yard.market.retire({"from": member})
    for seat in seats:
        yard.audit_commit(task, seat)
    yard.open(task)
    for seat in seats:
        yard.audit_reveal(task, seat)
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})

    assert yard.credit(member) == CREDIT - AUDITOR_BOND + FEE
    assert yard.market.worker(member)["bondLocked"] == 0


def test_who_went_after_the_call_is_not_drawn(yard):
    """Rules A5, W3: its seat stays empty, and its fee with the requester."""
    yard.fund(yard.stranger)
    yard.register(yard.stranger, env_class=THIN_CLASS)
    yard.register(yard.challenger, env_class=THIN_CLASS, bond=AUDITOR_BOND)
    task = yard.post(env_class=THIN_CLASS, audits=1)
    yard.join(task, yard.stranger)
    yard.submit(task, yard.stranger)
    yard.market.retire({"from": yard.challenger})
    tx = yard.draw(task)

    assert "SeatDrawn" not in tx.events
    assert event(tx, "SeatsUnassigned")["missing"] == 1


@pytest.mark.parametrize("retired", [False, True])
def test_only_the_registered_retire(yard, retired):
    """Rules W1, W3: a stranger has nothing to retire from, and nobody retires twice."""
    account = yard.auditors[0] if retired else yard.stranger
    if retired:
        yard.market.retire({"from": account})
    with reverts("MarketNotRegistered", account):
        yard.market.retire({"from": account})
