"""`auditCommit`: drawn members answer blind."""

import pytest

from tests.contracts.yard import event, reverts, salt_of
from trainyard.protocol.commitments import scores_answer
from trainyard.protocol.market import OWN_PANEL, Policy, SeatState, TaskState


@pytest.fixture(scope="module")
def task(staffed_yard):
    return staffed_yard.auditing()


@pytest.fixture(scope="module")
def seats(staffed_yard, task):
    return staffed_yard.seats(task)


def test_commitment_is_kept_with_the_seat(yard, task, seats):
    """rule A6"""
    first, _ = seats
    answer = yard.trace.after(first.segment)
    commitment = yard.protocol.answer_commitment(
        task, first.index, first.member.address, salt_of(first.member), answer
    )

    tx = yard.audit_commit(task, first)

    assert event(tx, "AuditCommitted") == {
        "id": task,
        "seat": first.index,
        "commitment": "0x" + commitment.hex(),
    }
    kept = yard.market.seat(task, OWN_PANEL, 0, first.index)
    assert (kept["state"], bytes(kept["answer"])) == (SeatState.COMMITTED, commitment)
    assert yard.market.panel(task, OWN_PANEL, 0)["committed"] == 1
    assert yard.state(task) == TaskState.AUDITING


def test_market_and_package_compute_the_same_commitment(yard, task, seats):
    """rule A6"""
    _, second = seats
    terms = (second.index, second.member.address, salt_of(second.member), yard.trace.after(0))

    onchain = yard.market.answerCommitment(task, OWN_PANEL, *terms)

    assert bytes(onchain) == yard.protocol.answer_commitment(task, *terms)


def test_last_commitment_asks_the_workers_to_open(yard, task, seats):
    """rule A6"""
    first, second = seats
    yard.audit_commit(task, second)

    tx = yard.audit_commit(task, first)

    assert event(tx, "OpeningStarted") == {"id": task, "openBy": tx.timestamp + 600}
    assert yard.state(task) == TaskState.OPENING
    assert yard.market.task(task)["deadline"] == tx.timestamp + 600


def test_last_evaluator_opens_the_window(yard):
    """rule A6: there is nothing for workers to open."""
    task = yard.auditing(Policy.SCORE, audits=1)
    [seat] = yard.seats(task)

    tx = yard.audit_commit(task, seat, scores_answer([950]))

    assert event(tx, "WindowStarted") == {
        "id": task,
        "states": (),
        "revealBy": tx.timestamp + 600,
        "challengeBy": tx.timestamp + 600,
    }
    assert yard.state(task) == TaskState.WINDOW


def test_member_commits_for_its_own_seat_alone(yard, task, seats):
    """rule A6"""
    first, second = seats

    with reverts("MarketNotSeatHolder", task, first.index, second.member):
        yard.market.auditCommit(task, first.index, b"\1" * 32, {"from": second.member})


@pytest.mark.parametrize("seat", [2, 15, 2**256 - 1])
def test_seat_must_have_been_drawn(yard, task, seat):
    """rule A6"""
    with reverts("MarketNotSeatHolder", task, seat, yard.stranger):
        yard.market.auditCommit(task, seat, b"\1" * 32, {"from": yard.stranger})


def test_seat_commits_once(yard, task, seats):
    """rule A6: an answer cannot be changed once others may know more."""
    first, _ = seats
    yard.audit_commit(task, first)

    with reverts("MarketUnexpectedSeat", task, first.index, SeatState.COMMITTED):
        yard.audit_commit(task, first, b"\1" * 32)


def test_commitment_in_the_last_second(yard, task, seats):
    """rule C1"""
    yard.at(yard.market.task(task)["deadline"] - 1)

    yard.audit_commit(task, seats[0])

    assert yard.market.panel(task, OWN_PANEL, 0)["committed"] == 1


@pytest.mark.parametrize("late", [0, 1])
def test_commitment_from_the_deadline_on_is_refused(yard, task, seats, late):
    """rule C1"""
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        yard.audit_commit(task, seats[0])


def test_nobody_commits_before_the_draw(yard):
    """rule A6"""
    task = yard.submitted()

    with reverts("MarketUnexpectedState", task, TaskState.SUBMITTED):
        yard.market.auditCommit(task, 0, b"\1" * 32, {"from": yard.auditors[0]})
