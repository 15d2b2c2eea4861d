"""`scoreReveal`: evaluators show what they measured."""

import pytest

from tests.contracts.yard import digest, event, reverts, salt_of
from trainyard.protocol.market import OWN_PANEL, Policy, SeatState, TaskState

SCORES = [950]


@pytest.fixture(scope="module")
def task(staffed_yard):
    return staffed_yard.scoring(Policy.SCORE, [SCORES] * 3)


@pytest.fixture(scope="module")
def seats(staffed_yard, task):
    return staffed_yard.seats(task)


def test_score_is_kept(yard, task, seats):
    """rules A6, P6"""
    tx = yard.score_reveal(task, seats[1], SCORES)

    assert event(tx, "ScoresRevealed") == {"id": task, "seat": 1, "scores": (950,)}
    assert tuple(yard.market.scores(task, 1)) == (950,)
    assert yard.market.seat(task, OWN_PANEL, 0, 1)["state"] == SeatState.REVEALED
    assert yard.market.panel(task, OWN_PANEL, 0)["revealed"] == 1
    assert yard.state(task) == TaskState.WINDOW


def test_contest_has_a_score_per_slot(yard):
    """rules A6, P5"""
    task = yard.scoring(Policy.CONTEST, [[950, 0, 2**32 - 1]] * 3, slots=3)

    tx = yard.score_reveal(task, yard.seats(task)[0], [950, 0, 2**32 - 1])

    assert event(tx, "ScoresRevealed")["scores"] == (950, 0, 2**32 - 1)
    assert tuple(yard.market.scores(task, 0)) == (950, 0, 2**32 - 1)


@pytest.mark.parametrize(
    ("policy", "slots", "given", "expected"),
    [
        (Policy.SCORE, 2, [], 1),
        (Policy.SCORE, 2, [950, 950], 1),
        (Policy.CONTEST, 2, [950], 2),
        (Policy.CONTEST, 2, [950, 950, 950], 2),
    ],
)
def test_scores_must_be_as_many_as_entries(yard, policy, slots, given, expected):
    """rules A6, P5, P6"""
    task = yard.scoring(policy, [given] * 3, slots=slots)

    with reverts("MarketWrongLength", len(given), expected):
        yard.score_reveal(task, yard.seats(task)[0], given)


def test_anyone_may_relay_a_reveal(yard, task, seats):
    """rule A6"""
    yard.market.scoreReveal(task, 0, salt_of(seats[0].member), SCORES, {"from": yard.stranger})

    assert tuple(yard.market.scores(task, 0)) == (950,)


@pytest.mark.parametrize("changed", ["salt", "score"])
def test_score_must_be_the_committed_one(yard, task, seats, changed):
    """rule A6"""
    salt = salt_of(seats[0].member)
    shown = (digest("salt"), SCORES) if changed == "salt" else (salt, [951])

    with reverts("MarketWrongAnswer", task, 0):
        yard.market.scoreReveal(task, 0, *shown, {"from": seats[0].member})


def test_seat_must_have_been_drawn(yard, task):
    """rule A6"""
    with reverts("MarketNotSeatHolder", task, 3, yard.stranger):
        yard.market.scoreReveal(task, 3, digest("salt"), SCORES, {"from": yard.stranger})


def test_score_is_revealed_once(yard, task, seats):
    """rule A6"""
    yard.score_reveal(task, seats[0], SCORES)

    with reverts("MarketUnexpectedSeat", task, 0, SeatState.REVEALED):
        yard.score_reveal(task, seats[0], SCORES)


def test_who_did_not_commit_cannot_reveal(yard):
    """rule A6"""
    task = yard.auditing(Policy.SCORE)
    seats = yard.seats(task)
    yard.score_commit(task, seats[0], SCORES)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})

    with reverts("MarketUnexpectedSeat", task, 1, SeatState.DRAWN):
        yard.score_reveal(task, seats[1], SCORES)


def test_reveal_in_the_last_second(yard, task, seats):
    """rule C1"""
    yard.at(yard.market.task(task)["deadline"] - 1)

    yard.score_reveal(task, seats[0], SCORES)

    assert yard.market.panel(task, OWN_PANEL, 0)["revealed"] == 1


@pytest.mark.parametrize("late", [0, 1])
def test_reveal_from_the_deadline_on_is_refused(yard, task, seats, late):
    """rule C1"""
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        yard.score_reveal(task, seats[0], SCORES)


def test_nothing_is_revealed_while_others_commit(yard):
    """rule A6"""
    task = yard.auditing(Policy.SCORE)
    seats = yard.seats(task)
    yard.score_commit(task, seats[0], SCORES)

    with reverts("MarketUnexpectedState", task, TaskState.AUDITING):
        yard.score_reveal(task, seats[0], SCORES)


def test_auditors_have_no_scores(yard):
    """rule A6"""
    task = yard.window()

    with reverts("MarketWrongPolicy", task, Policy.AUDIT):
        yard.score_reveal(task, yard.seats(task)[0], SCORES)
