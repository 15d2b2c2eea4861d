"""`refereeReveal`: referees show what they found."""

import pytest

from tests.contracts.yard import digest, event, reverts, salt_of
from trainyard.protocol.market import DisputeState, SeatState, TaskState

SEGMENT = 4
FOUND = digest("what referees found")


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Two of three referees have committed to what they found; the third kept silent."""
    task = staffed_yard.window()
    staffed_yard.challenge(task, SEGMENT)
    for seat in staffed_yard.draw_referees(task, SEGMENT)[:2]:
        staffed_yard.referee_commit(task, SEGMENT, seat, FOUND)
    staffed_yard.pass_dispute_deadline(task, SEGMENT)
    staffed_yard.market.resolve(task, SEGMENT, {"from": staffed_yard.stranger})
    return task


@pytest.fixture(scope="module")
def referees(staffed_yard, task):
    return staffed_yard.referees(task, SEGMENT)


def test_answer_is_kept(yard, task, referees):
    """rule D4"""
    tx = yard.referee_reveal(task, SEGMENT, referees[0], FOUND)

    assert event(tx, "RefereeRevealed") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "seat": 0,
        "answer": "0x" + FOUND.hex(),
    }
    kept = yard.market.seat(task, SEGMENT, 1, 0)
    assert (kept["state"], bytes(kept["answer"])) == (SeatState.REVEALED, FOUND)
    assert yard.market.panel(task, SEGMENT, 1)["revealed"] == 1


def test_verdict_waits_for_resolve(yard, task, referees):
    """rule D4"""
    for seat in referees[:2]:
        yard.referee_reveal(task, SEGMENT, seat, FOUND)

    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.RULING


def test_anyone_may_relay_a_reveal(yard, task, referees):
    """rules D4, A6"""
    yard.market.refereeReveal(
        task, SEGMENT, 1, salt_of(referees[1].member), FOUND, {"from": yard.stranger}
    )

    assert yard.market.seat(task, SEGMENT, 1, 1)["state"] == SeatState.REVEALED


@pytest.mark.parametrize("changed", ["salt", "answer"])
def test_answer_must_be_the_committed_one(yard, task, referees, changed):
    """rules D4, A6"""
    salt = salt_of(referees[0].member)
    shown = (digest("salt"), FOUND) if changed == "salt" else (salt, yard.trace.after(SEGMENT))

    with reverts("MarketWrongAnswer", task, 0):
        yard.market.refereeReveal(task, SEGMENT, 0, *shown, {"from": referees[0].member})


def test_answer_of_an_auditor_is_none_of_a_referee(yard):
    """rule A6: a commitment is bound to its panel."""
    task = yard.window()
    yard.challenge(task, SEGMENT)
    seats = yard.draw_referees(task, SEGMENT)
    for seat in seats:
        commitment = yard.protocol.answer_commitment(
            task, seat.index, seat.member.address, salt_of(seat.member), FOUND
        )
        yard.market.refereeCommit(task, SEGMENT, seat.index, commitment, {"from": seat.member})

    with reverts("MarketWrongAnswer", task, 0):
        yard.referee_reveal(task, SEGMENT, seats[0], FOUND)


def test_seat_must_have_been_drawn(yard, task):
    """rule D4"""
    with reverts("MarketNotSeatHolder", task, 3, yard.stranger):
        yard.market.refereeReveal(task, SEGMENT, 3, digest("salt"), FOUND, {"from": yard.stranger})


def test_answer_is_revealed_once(yard, task, referees):
    """rule D4"""
    yard.referee_reveal(task, SEGMENT, referees[0], FOUND)

    with reverts("MarketUnexpectedSeat", task, 0, SeatState.REVEALED):
        yard.referee_reveal(task, SEGMENT, referees[0], FOUND)


def test_who_did_not_commit_cannot_reveal(yard, task, referees):
    """rules D4, A6: it has seen what the others answered."""
    with reverts("MarketUnexpectedSeat", task, 2, SeatState.DRAWN):
        yard.referee_reveal(task, SEGMENT, referees[2], FOUND)


def test_reveal_in_the_last_second(yard, task, referees):
    """rules C1, D4"""
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"] - 1)

    yard.referee_reveal(task, SEGMENT, referees[0], FOUND)

    assert yard.market.panel(task, SEGMENT, 1)["revealed"] == 1


@pytest.mark.parametrize("late", [0, 1])
def test_reveal_from_the_deadline_on_is_refused(yard, task, referees, late):
    """rules C1, D4"""
    deadline = yard.market.dispute(task, SEGMENT)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        yard.referee_reveal(task, SEGMENT, referees[0], FOUND)


def test_nothing_is_revealed_while_others_commit(yard):
    """rules D4, A6"""
    task = yard.window()
    yard.challenge(task, SEGMENT)
    seats = yard.draw_referees(task, SEGMENT)
    yard.referee_commit(task, SEGMENT, seats[0], FOUND)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.HEARING):
        yard.referee_reveal(task, SEGMENT, seats[0], FOUND)


def test_nothing_is_revealed_after_the_end(yard, task, referees):
    """rule D4"""
    for seat in referees[:2]:
        yard.referee_reveal(task, SEGMENT, seat, FOUND)
    yard.market.resolve(task, SEGMENT, {"from": yard.stranger})

    with reverts("MarketUnexpectedState", task, TaskState.FAILED):
        yard.referee_reveal(task, SEGMENT, referees[2], FOUND)
