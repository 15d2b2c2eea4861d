"""ping: a party asks a silent slot for a sign of life."""

import pytest

from tests.contracts.crew import ask, lose
from tests.contracts.money import credits_of_all, gains
from tests.contracts.yard import event, reverts
from trainyard.protocol.market import NATIVE_CURRENCY, Policy, TaskState

NOBODY = NATIVE_CURRENCY


@pytest.mark.parametrize("policy", list(Policy))
@pytest.mark.parametrize("by_requester", [True, False])
def test_parties_may_ask(yard, policy, by_requester):
    """Rule T4: the requester and the other slots' holders."""
    task = yard.running(policy, slots=3)
    asker = yard.requester if by_requester else yard.workers[0]
    before = credits_of_all(yard)

    tx = yard.market.ping(task, 2, {"from": asker})

    pong_by = tx.timestamp + yard.terms().answer_for
    assert event(tx, "SlotPinged") == {"id": task, "slot": 2, "by": asker, "pongBy": pong_by}
    assert yard.market.slot(task, 2)["pongBy"] == pong_by
    assert gains(yard, before) == {}


def test_slots_are_asked_apart(yard):
    """Rule T4: a ping is for one slot."""
    task = yard.running(slots=3)

    ask(yard, task, 1)

    assert [yard.market.slot(task, slot)["pongBy"] > 0 for slot in range(3)] == [False, True, False]


def test_stranger_may_not(yard):
    """Rule T4: nobody is kept busy by outsiders."""
    task = yard.running(slots=2)

    for outsider in (yard.stranger, yard.workers[3], yard.owner):
        with reverts("MarketNotParty", task, outsider):
            yard.market.ping(task, 0, {"from": outsider})


def test_evicted_worker_is_no_party(yard):
    """Rules T4, T5: its slot is no longer its own."""
    task = yard.running(slots=3)
    lose(yard, task, 0)

    with reverts("MarketNotParty", task, yard.workers[0]):
        yard.market.ping(task, 1, {"from": yard.workers[0]})


@pytest.mark.parametrize("slot", [2, 31, 32, 2**32, 2**256 - 1])
def test_slot_that_does_not_exist_cannot_be_asked(yard, slot):
    """Rule T4: there is nobody to answer."""
    task = yard.running(slots=2)

    with reverts("MarketNotSlotHolder", task, slot, NOBODY):
        yard.market.ping(task, slot, {"from": yard.requester})


def test_empty_slot_cannot_be_asked(yard):
    """Rules T4, T5: its worker was evicted."""
    task = yard.running(slots=2)
    lose(yard, task, 0)

    with reverts("MarketNotSlotHolder", task, 0, NOBODY):
        yard.market.ping(task, 0, {"from": yard.requester})


@pytest.mark.parametrize("policy", list(Policy))
def test_slot_that_has_answered_is_left_alone(yard, policy):
    """Rule T4: its work is done."""
    task = yard.running(policy, slots=2)
    if policy in (Policy.AUDIT, Policy.SCORE):
        yard.submit(task, yard.workers[0])
    else:
        yard.commit(task, yard.workers[0])

    with reverts("MarketAlreadyAnswered", task, 0):
        yard.market.ping(task, 0, {"from": yard.requester})


def test_second_ping_does_not_prolong_the_first(yard):
    """Rule T4: one question at a time, also by another party."""
    task = yard.running(slots=2)
    pong_by = ask(yard, task, 0)

    for asker in (yard.requester, yard.workers[1]):
        with reverts("MarketAlreadyPinged", task, 0, pong_by):
            yard.market.ping(task, 0, {"from": asker})


def test_unanswered_ping_stands(yard):
    """Rule T4: who let the time pass cannot be asked anew, only evicted."""
    task = yard.running(slots=2)
    pong_by = ask(yard, task, 0)
    yard.warp(pong_by)

    with reverts("MarketAlreadyPinged", task, 0, pong_by):
        yard.market.ping(task, 0, {"from": yard.requester})


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_who_answered_is_left_in_peace(yard, offset):
    """Rules T4, C1: until the second that the pong named."""
    task = yard.running(slots=2)
    ask(yard, task, 0)
    tx = yard.market.pong(task, 0, {"from": yard.workers[0]})
    quiet_until = event(tx, "SlotPonged")["quietUntil"]
    yard.at(quiet_until + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, quiet_until):
            yard.market.ping(task, 0, {"from": yard.requester})
    else:
        assert ask(yard, task, 0) == quiet_until + offset + yard.terms().answer_for


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_nobody_is_asked_after_train_by(yard, offset):
    """Rules T4, C1: from then on the task can be expired."""
    task = yard.running(slots=2)
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        assert ask(yard, task, 0) == train_by - 1 + yard.terms().answer_for
    else:
        with reverts("MarketTooLate", task, train_by):
            yard.market.ping(task, 0, {"from": yard.requester})


def test_replacement_starts_without_a_ping(yard):
    """Rules T4, T5: it does not inherit the silence of the other."""
    task = yard.running(slots=2)
    lose(yard, task, 0)
    yard.join(task, yard.workers[2])

    pong_by = ask(yard, task, 0)

    assert yard.market.slot(task, 0)["pongBy"] == pong_by == yard.now() + yard.terms().answer_for


def test_open_task_asks_nobody(yard):
    """Rule T4: there is no work yet."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])

    with reverts("MarketUnexpectedState", task, TaskState.OPEN):
        yard.market.ping(task, 0, {"from": yard.requester})


def test_submitted_task_asks_nobody(yard):
    """Rule T4: all work is done."""
    task = yard.submitted()

    with reverts("MarketUnexpectedState", task, TaskState.SUBMITTED):
        yard.market.ping(task, 0, {"from": yard.requester})
