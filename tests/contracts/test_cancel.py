"""cancel: an open task is taken back, and everyone gets everything back."""

import pytest

from tests.contracts.money import add_up, credits_of_all, gains, is_drained
from tests.contracts.yard import FEE, REWARD, STAKE, event, reverts
from trainyard.protocol.market import Policy, TaskState


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize(("slots", "joined"), [(1, 0), (3, 0), (3, 2), (4, 3)])
def test_everyone_gets_everything_back(yard, policy, slots, joined):
    """Rules T2, V5: rewards and fees to the requester, stakes to the workers."""
    before = credits_of_all(yard)
    task = yard.post(policy, slots=slots)
    yard.join(task, *yard.workers[:joined])

    yard.market.cancel(task, {"from": yard.requester})

    assert gains(yard, before) == {}
    assert is_drained(yard, task)
    assert yard.state(task) == TaskState.CANCELLED


def test_event_says_what_the_requester_got(yard):
    """Rules T2, V6: the refund is the escrow; stakes have credits of their own."""
    task = yard.post(slots=3)
    yard.join(task, *yard.workers[:2])

    tx = yard.market.cancel(task, {"from": yard.requester})

    escrow = 3 * REWARD + 2 * FEE
    assert event(tx, "TaskCancelled") == {"id": task, "refunded": escrow}
    assert [dict(credit) for credit in tx.events["Credited"]] == [
        {"id": task, "account": yard.workers[0], "amount": STAKE},
        {"id": task, "account": yard.workers[1], "amount": STAKE},
        {"id": task, "account": yard.requester, "amount": escrow},
    ]


def test_worker_who_left_is_not_paid_again(yard):
    """Rules T2, V5: a stake goes back once."""
    task = yard.post(slots=3)
    yard.join(task, *yard.workers[:2])
    yard.market.leave(task, 0, {"from": yard.workers[0]})
    before = credits_of_all(yard)

    yard.market.cancel(task, {"from": yard.requester})

    assert gains(yard, before) == add_up(
        (yard.workers[1], STAKE), (yard.requester, 3 * REWARD + 2 * FEE)
    )


def test_nobody_gets_a_record(yard):
    """Rules T2, W4: what never began neither settled nor failed."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])

    tx = yard.market.cancel(task, {"from": yard.requester})

    assert "Recorded" not in tx.events


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_no_deadline_stops_the_requester(yard, offset):
    """Rules T2, C2: an open task whose time is over may be cancelled as well as expired."""
    task = yard.post(slots=2)
    yard.at(yard.market.task(task)["deadline"] + offset)

    yard.market.cancel(task, {"from": yard.requester})

    assert yard.state(task) == TaskState.CANCELLED


def test_only_the_requester_may(yard):
    """Rule T2: workers leave, and strangers have no say."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])

    for caller in (yard.workers[0], yard.stranger, yard.owner):
        with reverts("MarketNotRequester", task, caller):
            yard.market.cancel(task, {"from": caller})


def test_running_task_is_not_taken_back(yard):
    """Rule T2: from the last join on the workers rely on it."""
    task = yard.running(slots=2)

    with reverts("MarketUnexpectedState", task, TaskState.RUNNING):
        yard.market.cancel(task, {"from": yard.requester})


def test_cancelled_task_is_not_cancelled_again(yard):
    """Rules T2, V5: nothing is paid twice."""
    task = yard.post()
    yard.market.cancel(task, {"from": yard.requester})

    with reverts("MarketUnexpectedState", task, TaskState.CANCELLED):
        yard.market.cancel(task, {"from": yard.requester})


def test_unknown_task_is_refused(yard):
    """Rule T2: there is nothing to cancel."""
    with reverts("MarketUnexpectedState", 99, TaskState.NONE):
        yard.market.cancel(99, {"from": yard.requester})
