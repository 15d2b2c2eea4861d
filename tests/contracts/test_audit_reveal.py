"""`auditReveal`: a differing answer is a dispute."""

import pytest
from brownie import chain

from tests.contracts.yard import digest, event, reverts, salt_of
from trainyard.protocol.market import (
    OWN_PANEL,
    UNSERVED,
    DisputeState,
    Policy,
    SeatState,
    TaskState,
)

WRONG = digest("wrong state")


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Auditor 0 found what the workers opened; auditor 1 found something else."""
    return staffed_yard.window({1: WRONG})


@pytest.fixture(scope="module")
def seats(staffed_yard, task):
    return staffed_yard.seats(task)


def reveal_by(yard, task):
    return yard.market.panel(task, OWN_PANEL, 0)["revealBy"]


def test_equal_answer_is_kept(yard, task, seats):
    """rule A6"""
    agreeing, _ = seats
    answer = yard.trace.after(agreeing.segment)

    tx = yard.audit_reveal(task, agreeing)

    assert event(tx, "AuditRevealed") == {
        "id": task,
        "seat": agreeing.index,
        "answer": "0x" + answer.hex(),
    }
    kept = yard.market.seat(task, OWN_PANEL, 0, agreeing.index)
    assert (kept["state"], bytes(kept["answer"])) == (SeatState.REVEALED, answer)
    assert yard.market.panel(task, OWN_PANEL, 0)["revealed"] == 1
    assert "SegmentChallenged" not in tx.events
    assert yard.state(task) == TaskState.WINDOW


def test_differing_answer_is_a_dispute(yard, task, seats):
    """rule D1: the bond of the seat stands behind it, and no other."""
    _, accusing = seats
    segment, opened = accusing.segment, yard.trace.after(accusing.segment)

    tx = yard.audit_reveal(task, accusing, WRONG)

    assert event(tx, "SegmentChallenged") == {
        "id": task,
        "segment": segment,
        "accuser": accusing.member,
        "auditSeat": accusing.index + 1,
        "bond": 0,
        "claimed": "0x" + opened.hex(),
        "serveBy": 0,
    }
    called = event(tx, "RefereesCalled")
    assert (called["round"], called["drawBlock"], called["pool"]) == (1, tx.block_number + 1, 12)
    dispute = yard.market.dispute(task, segment)
    assert dispute["accuser"] == accusing.member
    assert dispute["auditSeat"] == accusing.index + 1
    assert dispute["state"] == DisputeState.CALLED
    assert dispute["bond"] == 0
    assert bytes(dispute["claimed"]) == opened
    assert yard.market.panel(task, OWN_PANEL, 0)["disputes"] == 1
    assert yard.state(task) == TaskState.DISPUTED


def test_unserved_segment_is_a_dispute(yard):
    """rules D1, A10: an auditor that could not fetch the data answers zero."""
    task = yard.window({0: UNSERVED})
    seat = yard.seats(task)[0]

    tx = yard.audit_reveal(task, seat, UNSERVED)

    assert event(tx, "SegmentChallenged")["segment"] == seat.segment
    assert yard.state(task) == TaskState.DISPUTED


def test_answers_are_revealed_beside_an_open_dispute(yard, task, seats):
    """rules A6, D8"""
    agreeing, accusing = seats
    yard.audit_reveal(task, accusing, WRONG)

    yard.audit_reveal(task, agreeing)

    kept = yard.market.seat(task, OWN_PANEL, 0, agreeing.index)
    assert kept["state"] == SeatState.REVEALED
    assert yard.state(task) == TaskState.DISPUTED


def test_anyone_may_relay_a_reveal(yard, task, seats):
    """rule A6: the commitment names the member, who stays the accuser."""
    _, accusing = seats

    tx = yard.market.auditReveal(
        task, accusing.index, salt_of(accusing.member), WRONG, {"from": yard.stranger}
    )

    assert event(tx, "SegmentChallenged")["accuser"] == accusing.member


@pytest.mark.parametrize("changed", ["salt", "answer"])
def test_answer_must_be_the_committed_one(yard, task, seats, changed):
    """rule A6"""
    agreeing, _ = seats
    salt, answer = salt_of(agreeing.member), yard.trace.after(agreeing.segment)
    shown = (digest("salt"), answer) if changed == "salt" else (salt, WRONG)

    with reverts("MarketWrongAnswer", task, agreeing.index):
        yard.market.auditReveal(task, agreeing.index, *shown, {"from": agreeing.member})


@pytest.mark.parametrize("seat", [2, 15])
def test_seat_must_have_been_drawn(yard, task, seat):
    """rule A6"""
    with reverts("MarketNotSeatHolder", task, seat, yard.stranger):
        yard.market.auditReveal(task, seat, WRONG, WRONG, {"from": yard.stranger})


def test_answer_is_revealed_once(yard, task, seats):
    """rule A6"""
    agreeing, _ = seats
    yard.audit_reveal(task, agreeing)

    with reverts("MarketUnexpectedSeat", task, agreeing.index, SeatState.REVEALED):
        yard.audit_reveal(task, agreeing)


def test_who_did_not_commit_cannot_reveal(yard):
    """rule A6"""
    task = yard.auditing()
    yard.pass_deadline(task)
    yard.open(task)

    with reverts("MarketUnexpectedSeat", task, 0, SeatState.DRAWN):
        yard.audit_reveal(task, yard.seats(task)[0])


@pytest.mark.parametrize("seat", [0, 1])
def test_reveal_in_the_last_second(yard, task, seats, seat):
    """rules C1, D1: also one that is a dispute."""
    yard.at(reveal_by(yard, task) - 1)

    yard.audit_reveal(task, seats[seat], WRONG if seat == 1 else None)

    kept = yard.market.seat(task, OWN_PANEL, 0, seat)
    assert kept["state"] == SeatState.REVEALED


@pytest.mark.parametrize("late", [0, 1])
def test_reveal_from_the_deadline_on_is_refused(yard, task, seats, late):
    """rule C1: though the window for challenges is still open."""
    deadline = reveal_by(yard, task)
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        yard.audit_reveal(task, seats[0])


def test_reveal_outlasts_a_shorter_window(yard):
    """rules D1, D8: auditors have their time where challengers have none."""
    task = yard.window({0: WRONG}, challenge_for=0)
    chain.mine(1)

    yard.audit_reveal(task, yard.seats(task)[0], WRONG)

    assert yard.state(task) == TaskState.DISPUTED


def test_nothing_is_revealed_before_the_opening(yard):
    """rule A6"""
    task = yard.opening()

    with reverts("MarketUnexpectedState", task, TaskState.OPENING):
        yard.audit_reveal(task, yard.seats(task)[0])


def test_scores_are_revealed_elsewhere(yard):
    """rule A6"""
    task = yard.scoring(Policy.SCORE, [[950]] * 3)

    with reverts("MarketWrongPolicy", task, Policy.SCORE):
        yard.audit_reveal(task, yard.seats(task)[0])
