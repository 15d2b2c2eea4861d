"""evict: who left a ping unanswered loses the slot and the fault part of its stake."""

from dataclasses import replace

import pytest

from tests.contracts.crew import ask, lose
from tests.contracts.money import PENALTY, add_up, credits_of_all, fault_part, gains, is_drained
from tests.contracts.yard import PARAMS, REWARD, STAKE, event, reverts
from trainyard.protocol.market import BPS, BURN_ADDRESS, NATIVE_CURRENCY, Policy, Record, TaskState

NOBODY = NATIVE_CURRENCY


@pytest.mark.parametrize("policy", list(Policy))
def test_fault_part_is_burned_and_the_rest_goes_back(yard, policy):
    """Rules T4, P2, P4: the rest of the stake is the worker's again at once."""
    task = yard.running(policy, slots=3)
    locked = yard.market.task(task)["locked"]
    yard.warp(ask(yard, task, 1))
    before = credits_of_all(yard)

    tx = yard.market.evict(task, 1, {"from": yard.stranger})

    assert gains(yard, before) == {yard.workers[1]: STAKE - PENALTY, BURN_ADDRESS: PENALTY}
    assert yard.market.task(task)["locked"] == locked - STAKE
    assert yard.market.task(task)["joined"] == 0b101
    assert event(tx, "SlotEvicted") == {
        "id": task,
        "slot": 1,
        "worker": yard.workers[1],
        "penalty": PENALTY,
    }


@pytest.mark.parametrize("evictor", ["requester", "peer", "worker itself", "stranger"])
def test_evictor_gains_nothing(yard, evictor):
    """Rules T4, P4: anyone may, and nobody gains by stalling somebody."""
    task = yard.running(slots=2)
    by = {
        "requester": yard.requester,
        "peer": yard.workers[1],
        "worker itself": yard.workers[0],
        "stranger": yard.stranger,
    }[evictor]
    before = credits_of_all(yard)

    lose(yard, task, 0, by)

    assert gains(yard, before) == {yard.workers[0]: STAKE - PENALTY, BURN_ADDRESS: PENALTY}


@pytest.mark.parametrize("stake", [0, 1, 4, 5, 9_999, 10**18 + 7])
def test_fault_part_is_rounded_down(yard, stake):
    """Rules P2, V5: what is lost and what is left add up to the stake."""
    task = yard.running(Policy.REPLICATE, stake=stake)
    before = credits_of_all(yard)

    lose(yard, task, 0)

    lost = stake * PARAMS.fault_bps // BPS
    assert lost == fault_part(stake)
    assert gains(yard, before) == add_up((yard.workers[0], stake - lost), (BURN_ADDRESS, lost))


def test_parameters_of_the_posting_decide(yard):
    """Rule C3: what was set later does not make eviction dearer."""
    task = yard.running()
    yard.market.setParams(replace(PARAMS, fault_bps=5_000).as_tuple(), {"from": yard.owner})
    before = credits_of_all(yard)

    lose(yard, task, 0)

    assert gains(yard, before) == {yard.workers[0]: STAKE - PENALTY, BURN_ADDRESS: PENALTY}


def test_eviction_goes_on_record(yard):
    """Rules T4, W4: as a failed task."""
    task = yard.running()

    tx = lose(yard, task, 0)

    assert event(tx, "Recorded") == {
        "id": task,
        "worker": yard.workers[0],
        "entry": Record.FAILED,
    }
    assert yard.market.account(yard.workers[0])["failed"] == 1


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_worker_has_its_time_to_answer(yard, offset):
    """Rules T4, C1: refused before the deadline's second."""
    task = yard.running()
    pong_by = ask(yard, task, 0)
    yard.at(pong_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, pong_by):
            yard.market.evict(task, 0, {"from": yard.requester})
    else:
        yard.market.evict(task, 0, {"from": yard.requester})
        assert yard.market.task(task)["joined"] == 0


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_nobody_is_evicted_after_train_by(yard, offset):
    """Rules T4, C1: from then on absence is dealt with when the task ends."""
    task = yard.running(slots=2)
    ask(yard, task, 0)
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        yard.market.evict(task, 0, {"from": yard.requester})
        assert yard.market.task(task)["joined"] == 0b10
    else:
        with reverts("MarketTooLate", task, train_by):
            yard.market.evict(task, 0, {"from": yard.requester})


def test_nobody_is_evicted_unasked(yard):
    """Rule T4: silence is no fault before a ping."""
    task = yard.running(slots=2)
    yard.warp(ask(yard, task, 1))

    with reverts("MarketNotPinged", task, 0):
        yard.market.evict(task, 0, {"from": yard.requester})


@pytest.mark.parametrize("policy", list(Policy))
def test_answer_to_the_task_is_an_answer_to_the_ping(yard, policy):
    """Rule T4: who has submitted or committed is not evicted."""
    task = yard.running(policy, slots=2)
    pong_by = ask(yard, task, 0)
    if policy in (Policy.AUDIT, Policy.SCORE):
        yard.submit(task, yard.workers[0])
    else:
        yard.commit(task, yard.workers[0])
    yard.warp(pong_by)

    with reverts("MarketAlreadyAnswered", task, 0):
        yard.market.evict(task, 0, {"from": yard.requester})


@pytest.mark.parametrize("slot", [2, 31, 32, 2**32, 2**256 - 1])
def test_slot_that_does_not_exist_cannot_be_emptied(yard, slot):
    """Rule T4: nobody holds it."""
    task = yard.running(slots=2)

    with reverts("MarketNotSlotHolder", task, slot, NOBODY):
        yard.market.evict(task, slot, {"from": yard.requester})


def test_nobody_is_evicted_twice(yard):
    """Rules T4, V5: the stake is gone."""
    task = yard.running(slots=2)
    lose(yard, task, 0)

    with reverts("MarketNotSlotHolder", task, 0, NOBODY):
        yard.market.evict(task, 0, {"from": yard.stranger})


def test_task_that_has_moved_on_evicts_nobody(yard):
    """Rule T4: absence is dealt with when the task ends."""
    task = yard.running(slots=2)
    pong_by = ask(yard, task, 1)
    yard.submit(task, yard.workers[0])
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    assert yard.now() > pong_by

    with reverts("MarketUnexpectedState", task, TaskState.SUBMITTED):
        yard.market.evict(task, 1, {"from": yard.requester})


def test_replacement_is_paid_like_the_others(yard):
    """Rules T5, P1: a replaced slot is a slot."""
    task = yard.running(Policy.REPLICATE, slots=2)
    lose(yard, task, 0)
    yard.join(task, yard.workers[2])
    for worker in (yard.workers[2], yard.workers[1]):
        yard.commit(task, worker)
    for worker in (yard.workers[2], yard.workers[1]):
        yard.reveal(task, worker)
    before = credits_of_all(yard)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == {
        yard.workers[1]: STAKE + REWARD,
        yard.workers[2]: STAKE + REWARD,
    }
    assert is_drained(yard, task)


def test_empty_slot_does_not_hold_up_the_others(yard):
    """Rules T5, C2: with all remaining answers in, the task moves on before its time."""
    task = yard.running(Policy.REPLICATE, slots=3)
    yard.commit(task, yard.workers[0])
    yard.commit(task, yard.workers[1])
    lose(yard, task, 2)

    yard.market.expire(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.REVEALING
    assert yard.market.task(task)["joined"] == 0b011
