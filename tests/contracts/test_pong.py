"""pong: a worker answers a ping."""

import pytest

from tests.contracts.crew import ask, lose
from tests.contracts.money import credits_of_all, gains
from tests.contracts.yard import event, reverts
from trainyard.protocol.market import Policy, TaskState


@pytest.mark.parametrize("policy", list(Policy))
def test_answer_buys_quiet(yard, policy):
    """Rule T4: for as long as the worker had to answer."""
    task = yard.running(policy, slots=2)
    ask(yard, task, 1)
    before = credits_of_all(yard)

    tx = yard.market.pong(task, 1, {"from": yard.workers[1]})

    quiet_until = tx.timestamp + yard.terms().answer_for
    assert event(tx, "SlotPonged") == {"id": task, "slot": 1, "quietUntil": quiet_until}
    assert yard.market.slot(task, 1)["pongBy"] == 0
    assert yard.market.slot(task, 1)["quietUntil"] == quiet_until
    assert gains(yard, before) == {}


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_answer_comes_before_pong_by(yard, offset):
    """Rules T4, C1: refused from the deadline's second on."""
    task = yard.running(slots=2)
    pong_by = ask(yard, task, 0)
    yard.at(pong_by + offset)

    if offset < 0:
        yard.market.pong(task, 0, {"from": yard.workers[0]})
        assert yard.market.slot(task, 0)["pongBy"] == 0
    else:
        with reverts("MarketTooLate", task, pong_by):
            yard.market.pong(task, 0, {"from": yard.workers[0]})


def test_answer_counts_after_train_by(yard):
    """Rules T4, C1: who was asked in the last second has its time nevertheless."""
    task = yard.running(slots=2)
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by - 1)
    pong_by = ask(yard, task, 0)
    yard.at(pong_by - 1)

    yard.market.pong(task, 0, {"from": yard.workers[0]})

    assert pong_by - 1 > train_by
    assert yard.market.slot(task, 0)["pongBy"] == 0


def test_who_answered_cannot_be_evicted(yard):
    """Rule T4: the question is closed."""
    task = yard.running(slots=2)
    pong_by = ask(yard, task, 0)
    yard.market.pong(task, 0, {"from": yard.workers[0]})
    yard.warp(pong_by)

    with reverts("MarketNotPinged", task, 0):
        yard.market.evict(task, 0, {"from": yard.stranger})


def test_nobody_answers_unasked(yard):
    """Rule T4: quiet cannot be had in advance."""
    task = yard.running(slots=2)
    ask(yard, task, 1)

    with reverts("MarketNotPinged", task, 0):
        yard.market.pong(task, 0, {"from": yard.workers[0]})


def test_one_answer_is_enough(yard):
    """Rule T4: quiet cannot be prolonged."""
    task = yard.running(slots=2)
    ask(yard, task, 0)
    yard.market.pong(task, 0, {"from": yard.workers[0]})

    with reverts("MarketNotPinged", task, 0):
        yard.market.pong(task, 0, {"from": yard.workers[0]})


@pytest.mark.parametrize("slot", [0, 2, 32, 2**32, 2**256 - 1])
def test_only_the_holder_answers(yard, slot):
    """Rule T4: not a peer, and not for a slot that does not exist."""
    task = yard.running(slots=2)
    ask(yard, task, 0)

    with reverts("MarketNotSlotHolder", task, slot, yard.workers[1]):
        yard.market.pong(task, slot, {"from": yard.workers[1]})


def test_requester_does_not_answer_for_a_worker(yard):
    """Rule T4: a sign of life is the worker's own."""
    task = yard.running()
    ask(yard, task, 0)

    with reverts("MarketNotSlotHolder", task, 0, yard.requester):
        yard.market.pong(task, 0, {"from": yard.requester})


def test_evicted_worker_answers_too_late(yard):
    """Rules T4, T5: it holds no slot any more."""
    task = yard.running(slots=2)
    lose(yard, task, 0)

    with reverts("MarketNotSlotHolder", task, 0, yard.workers[0]):
        yard.market.pong(task, 0, {"from": yard.workers[0]})


def test_task_that_moved_on_wants_no_answer(yard):
    """Rule T4: the submission was a sign of life."""
    task = yard.running()
    ask(yard, task, 0)
    yard.submit(task, yard.workers[0])

    with reverts("MarketUnexpectedState", task, TaskState.SUBMITTED):
        yard.market.pong(task, 0, {"from": yard.workers[0]})
