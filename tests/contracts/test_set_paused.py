"""The owner stops new posts: `setPaused`."""

import pytest
from brownie import TrainingMarket

from tests.contracts.yard import CREDIT, FEE, inherited_event, reverts
from trainyard.protocol.market import TaskState


@pytest.fixture
def paused(yard):
    yard.market.setPaused(True, {"from": yard.owner})
    return yard


def test_no_task_is_posted_while_paused(paused):
    """Rule O1: the requester keeps its credit."""
    with reverts("EnforcedPause"):
        paused.post()

    assert paused.credit(paused.requester) == CREDIT
    assert paused.market.taskCount() == 0


def test_value_of_a_refused_post_goes_back(paused):
    """Rules O1, V7: what rides along is not kept either."""
    held, owed = paused.market.solvency()
    with reverts("EnforcedPause"):
        paused.market.post(paused.terms().as_tuple(), {"from": paused.stranger, "value": 7})

    assert paused.credit(paused.stranger) == 0
    assert paused.market.solvency() == (held, owed)


def test_posting_goes_on_afterwards(paused):
    """Rule O1: a pause is lifted as it was set."""
    paused.market.setPaused(False, {"from": paused.owner})

    assert paused.post() == 1


def test_pausing_is_told(yard):
    """Rule V6: by an event and by a view."""
    market = TrainingMarket.at(yard.market.address)
    tx = yard.market.setPaused(True, {"from": yard.owner})

    assert inherited_event(tx, "Paused") == {"account": yard.owner}
    assert market.paused() is True
    tx = yard.market.setPaused(False, {"from": yard.owner})
    assert inherited_event(tx, "Unpaused") == {"account": yard.owner}
    assert market.paused() is False


@pytest.mark.parametrize(("now", "error"), [(True, "EnforcedPause"), (False, "ExpectedPause")])
def test_setting_what_is_set_is_refused(yard, now, error):
    """Rule O1: no event tells of a change that was none."""
    if now:
        yard.market.setPaused(True, {"from": yard.owner})
    with reverts(error):
        yard.market.setPaused(now, {"from": yard.owner})


@pytest.mark.parametrize("now", [True, False])
def test_only_the_owner_pauses(yard, now):
    """Rule O1: nobody else does, nor lifts it."""
    with reverts("OwnableUnauthorizedAccount", yard.stranger):
        yard.market.setPaused(now, {"from": yard.stranger})


def test_task_that_runs_is_audited_and_paid_while_paused(yard):
    """Rules O1, V4: from joining to withdrawing, nothing of a posted task waits for the owner."""
    task = yard.post()
    worker = yard.workers[0]
    yard.market.setPaused(True, {"from": yard.owner})
    yard.join(task, worker)
    yard.submit(task, worker)
    yard.draw(task)
    seats = yard.seats(task)
    for seat in seats:
        yard.audit_commit(task, seat)
    yard.open(task)
    for seat in seats:
        yard.audit_reveal(task, seat)
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})
    reward = yard.market.task(task)["reward"]
    yard.market.withdraw(worker, CREDIT + reward, {"from": worker})

    assert yard.state(task) == TaskState.SETTLED
    assert yard.credit(worker) == 0
    assert yard.credit(yard.requester) == CREDIT - reward - 2 * FEE


def test_open_task_is_left_and_cancelled_while_paused(yard):
    """Rules O1, T2: everyone gets back what they put in."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])
    yard.market.setPaused(True, {"from": yard.owner})
    yard.market.leave(task, 0, {"from": yard.workers[0]})
    yard.market.cancel(task, {"from": yard.requester})

    assert yard.state(task) == TaskState.CANCELLED
    assert yard.credit(yard.workers[0]) == yard.credit(yard.requester) == CREDIT
