"""`challengeUnserved`: anyone may say that a segment's data is withheld."""

import pytest

from tests.contracts.yard import BOND, SEGMENTS, event, reverts
from trainyard.protocol.market import (
    OWN_PANEL,
    DisputeState,
    Policy,
    TaskState,
)

SEGMENT = 4


@pytest.fixture(scope="module")
def task(staffed_yard):
    return staffed_yard.window()


def challenge_unserved(yard, task, segment=SEGMENT, by=None):
    return yard.market.challengeUnserved(task, segment, {"from": by or yard.challenger})


def test_workers_are_asked_for_the_leaf(yard, task):
    """rule D3: referees are not called yet."""
    tx = challenge_unserved(yard, task)

    serve_by = tx.timestamp + 600
    assert event(tx, "SegmentChallenged") == {
        "id": task,
        "segment": SEGMENT,
        "accuser": yard.challenger,
        "auditSeat": 0,
        "bond": BOND,
        "claimed": "0x" + "00" * 32,
        "serveBy": serve_by,
    }
    assert "RefereesCalled" not in tx.events
    dispute = yard.market.dispute(task, SEGMENT)
    assert dispute["accuser"] == yard.challenger
    assert dispute["state"] == DisputeState.UNSERVED
    assert dispute["unserved"] is True
    assert (dispute["round"], dispute["bond"], dispute["deadline"]) == (0, BOND, serve_by)
    assert yard.market.panel(task, OWN_PANEL, 0)["disputes"] == 1
    assert yard.state(task) == TaskState.DISPUTED


def test_saying_so_takes_a_bond(yard, task):
    """rule D3"""
    credit = yard.credit(yard.challenger)

    challenge_unserved(yard, task)

    assert yard.credit(yard.challenger) == credit - BOND


def test_saying_so_needs_credit_for_the_bond(yard, task):
    """rules D3, V2"""
    yard.fund(yard.stranger, amount=BOND - 1)

    with reverts("MarketInsufficientCredit", yard.stranger, BOND - 1, BOND):
        challenge_unserved(yard, task, by=yard.stranger)


def test_saying_so_in_the_last_second(yard, task):
    """rules C1, D3: the workers still have their whole time to serve."""
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline - 1)

    tx = challenge_unserved(yard, task)

    assert event(tx, "SegmentChallenged")["serveBy"] == deadline - 1 + 600


@pytest.mark.parametrize("late", [0, 1])
def test_saying_so_from_the_deadline_on_is_refused(yard, task, late):
    """rules C1, D3"""
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        challenge_unserved(yard, task)


@pytest.mark.parametrize("segment", [SEGMENTS, OWN_PANEL])
def test_segment_must_exist(yard, task, segment):
    """rule D3"""
    with reverts("MarketNoSuchSegment", task, segment):
        challenge_unserved(yard, task, segment)


def test_segment_is_asked_for_once(yard, task):
    """rules D2, D3"""
    challenge_unserved(yard, task)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.UNSERVED):
        challenge_unserved(yard, task, by=yard.requester)


def test_segment_in_dispute_is_not_asked_for(yard, task):
    """rules D2, D3"""
    yard.challenge(task, SEGMENT)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.CALLED):
        challenge_unserved(yard, task)


def test_segment_that_is_asked_for_is_not_challenged(yard, task):
    """rules D2, D3: whoever asked first put up the bond."""
    challenge_unserved(yard, task)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.UNSERVED):
        yard.challenge(task, SEGMENT)


def test_nothing_is_asked_for_before_the_window(yard):
    """rule D3"""
    task = yard.opening()

    with reverts("MarketUnexpectedState", task, TaskState.OPENING):
        challenge_unserved(yard, task)


def test_nothing_is_asked_for_after_the_end(yard, task):
    """rules D3, D8"""
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})

    with reverts("MarketUnexpectedState", task, TaskState.SETTLED):
        challenge_unserved(yard, task)


def test_evaluators_results_have_no_segments(yard):
    """rule D3"""
    task = yard.scoring(Policy.SCORE, [[950]] * 3)

    with reverts("MarketWrongPolicy", task, Policy.SCORE):
        challenge_unserved(yard, task)
