"""`refereeCommit`: referees answer blind."""

import pytest

from tests.contracts.yard import event, reverts, salt_of
from trainyard.protocol.market import DisputeState, SeatState, TaskState

SEGMENT = 4
COMMITMENT = b"\1" * 32


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Three referees hear a challenge of segment 4."""
    task = staffed_yard.window()
    staffed_yard.challenge(task, SEGMENT)
    staffed_yard.draw_referees(task, SEGMENT)
    return task


@pytest.fixture(scope="module")
def referees(staffed_yard, task):
    return staffed_yard.referees(task, SEGMENT)


def test_commitment_is_kept_with_the_seat(yard, task, referees):
    """rules D4, A6"""
    first, *_ = referees
    answer = yard.trace.after(SEGMENT)
    commitment = yard.protocol.answer_commitment(
        task,
        first.index,
        first.member.address,
        salt_of(first.member),
        answer,
        segment=SEGMENT,
    )

    tx = yard.referee_commit(task, SEGMENT, first, answer)

    assert event(tx, "RefereeCommitted") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "seat": first.index,
        "commitment": "0x" + commitment.hex(),
    }
    kept = yard.market.seat(task, SEGMENT, 1, first.index)
    assert (kept["state"], bytes(kept["answer"])) == (SeatState.COMMITTED, commitment)
    assert yard.market.panel(task, SEGMENT, 1)["committed"] == 1
    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.HEARING


def test_last_commitment_starts_the_ruling(yard, task, referees):
    """rule D4"""
    *others, last = referees
    for seat in others:
        yard.referee_commit(task, SEGMENT, seat, yard.trace.after(SEGMENT))

    tx = yard.referee_commit(task, SEGMENT, last, yard.trace.after(SEGMENT))

    assert event(tx, "RulingStarted") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "revealBy": tx.timestamp + 600,
    }
    dispute = yard.market.dispute(task, SEGMENT)
    assert dispute["state"] == DisputeState.RULING
    assert dispute["deadline"] == tx.timestamp + 600


def test_referee_commits_for_its_own_seat_alone(yard, task, referees):
    """rules D4, A6"""
    first, second, _ = referees

    with reverts("MarketNotSeatHolder", task, first.index, second.member):
        yard.market.refereeCommit(task, SEGMENT, first.index, COMMITMENT, {"from": second.member})


@pytest.mark.parametrize("seat", [3, 15])
def test_seat_must_have_been_drawn(yard, task, seat):
    """rule D4"""
    with reverts("MarketNotSeatHolder", task, seat, yard.stranger):
        yard.market.refereeCommit(task, SEGMENT, seat, COMMITMENT, {"from": yard.stranger})


def test_seat_commits_once(yard, task, referees):
    """rules D4, A6"""
    first, *_ = referees
    yard.referee_commit(task, SEGMENT, first, yard.trace.after(SEGMENT))

    with reverts("MarketUnexpectedSeat", task, first.index, SeatState.COMMITTED):
        yard.referee_commit(task, SEGMENT, first, COMMITMENT)


def test_member_of_the_first_committee_has_no_seat_in_the_second(yard, task, referees):
    """rules D5, A3"""
    yard.pass_dispute_deadline(task, SEGMENT)
    yard.market.resolve(task, SEGMENT, {"from": yard.stranger})
    yard.market.resolve(task, SEGMENT, {"from": yard.stranger})
    yard.draw_referees(task, SEGMENT)

    with reverts("MarketNotSeatHolder", task, 0, referees[0].member):
        yard.market.refereeCommit(task, SEGMENT, 0, COMMITMENT, {"from": referees[0].member})


def test_commitment_in_the_last_second(yard, task, referees):
    """rules C1, D4"""
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"] - 1)

    yard.referee_commit(task, SEGMENT, referees[0], yard.trace.after(SEGMENT))

    assert yard.market.panel(task, SEGMENT, 1)["committed"] == 1


@pytest.mark.parametrize("late", [0, 1])
def test_commitment_from_the_deadline_on_is_refused(yard, task, referees, late):
    """rules C1, D4"""
    deadline = yard.market.dispute(task, SEGMENT)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        yard.referee_commit(task, SEGMENT, referees[0], yard.trace.after(SEGMENT))


def test_nobody_commits_before_the_draw(yard, task):
    """rule D4"""
    yard.challenge(task, SEGMENT + 2)

    with reverts("MarketUnexpectedDispute", task, SEGMENT + 2, DisputeState.CALLED):
        yard.market.refereeCommit(task, SEGMENT + 2, 0, COMMITMENT, {"from": yard.stranger})


def test_nobody_commits_once_answers_are_shown(yard, task, referees):
    """rules D4, A6"""
    yard.pass_dispute_deadline(task, SEGMENT)
    yard.market.resolve(task, SEGMENT, {"from": yard.stranger})

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.RULING):
        yard.referee_commit(task, SEGMENT, referees[0], yard.trace.after(SEGMENT))


def test_nobody_commits_without_a_dispute(yard):
    """rule D4"""
    task = yard.window()

    with reverts("MarketUnexpectedState", task, TaskState.WINDOW):
        yard.market.refereeCommit(task, SEGMENT, 0, COMMITMENT, {"from": yard.stranger})
