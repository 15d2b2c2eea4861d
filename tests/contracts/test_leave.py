"""leave: a slot is given back while the task is open."""

import pytest

from tests.contracts.money import credits_of_all, gains
from tests.contracts.yard import STAKE, event, reverts
from trainyard.protocol.market import Policy, TaskState


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("slot", [0, 1])
def test_stake_comes_back(yard, policy, slot):
    """Rules T2, V5: all of it, and the task's lock shrinks by as much."""
    task = yard.post(policy, slots=3)
    yard.join(task, *yard.workers[:2])
    locked = yard.market.task(task)["locked"]
    before = credits_of_all(yard)

    tx = yard.market.leave(task, slot, {"from": yard.workers[slot]})

    assert gains(yard, before) == {yard.workers[slot]: STAKE}
    assert yard.market.task(task)["locked"] == locked - STAKE
    assert yard.market.task(task)["joined"] == 0b11 & ~(1 << slot)
    assert event(tx, "SlotLeft") == {"id": task, "worker": yard.workers[slot], "slot": slot}


def test_slot_is_free_for_another(yard):
    """Rules T2, T3: the next worker takes the first free slot."""
    task = yard.post(slots=3)
    yard.join(task, *yard.workers[:2])
    yard.market.leave(task, 0, {"from": yard.workers[0]})

    yard.join(task, yard.workers[2])

    assert yard.market.slot(task, 0)["worker"] == yard.workers[2]


def test_who_left_may_come_back(yard):
    """Rules T2, T3: leaving is no offence."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])
    yard.market.leave(task, 0, {"from": yard.workers[0]})

    yard.join(task, yard.workers[0])

    assert yard.market.task(task)["joined"] == 0b01
    assert yard.market.account(yard.workers[0])["failed"] == 0


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_no_deadline_stops_a_worker(yard, offset):
    """Rules T2, C2: an open task whose time is over does not hold a stake."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])
    yard.at(yard.market.task(task)["deadline"] + offset)

    yard.market.leave(task, 0, {"from": yard.workers[0]})

    assert yard.market.task(task)["joined"] == 0


@pytest.mark.parametrize("slot", [0, 2, 3, 32, 2**256 - 1])
def test_only_the_holder_may(yard, slot):
    """Rule T2: not from a slot of another, an empty one, or one that does not exist."""
    task = yard.post(slots=3)
    yard.join(task, *yard.workers[:2])

    with reverts("MarketNotSlotHolder", task, slot, yard.workers[1]):
        yard.market.leave(task, slot, {"from": yard.workers[1]})


def test_stake_does_not_come_back_twice(yard):
    """Rules T2, V5: who left holds no slot any more."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])
    yard.market.leave(task, 0, {"from": yard.workers[0]})

    with reverts("MarketNotSlotHolder", task, 0, yard.workers[0]):
        yard.market.leave(task, 0, {"from": yard.workers[0]})


def test_running_task_is_not_left(yard):
    """Rule T2: from the last join on the others rely on it."""
    task = yard.running(slots=2)

    with reverts("MarketUnexpectedState", task, TaskState.RUNNING):
        yard.market.leave(task, 0, {"from": yard.workers[0]})


def test_cancelled_task_is_not_left(yard):
    """Rules T2, V5: the stake went back already."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])
    yard.market.cancel(task, {"from": yard.requester})

    with reverts("MarketUnexpectedState", task, TaskState.CANCELLED):
        yard.market.leave(task, 0, {"from": yard.workers[0]})
