"""Hostile: referees who never answer."""

import pytest

from tests.contracts.money import add_up, fault_part, is_drained
from tests.contracts.wealth import Wealth, judged, split
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest
from trainyard.protocol.market import BURN_ADDRESS, DisputeState, TaskState

SEGMENT = 4
FOUND = digest("what referees found")
PENALTY = fault_part(BOND)


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Nobody audits; segment 4 was challenged."""
    task = staffed_yard.submitted(audits=0)
    staffed_yard.draw(task)
    staffed_yard.challenge(task, SEGMENT)
    return task


def members(yard, task, round_):
    return [seat.member for seat in yard.seats(task, SEGMENT, round_)]


def test_one_silent_referee_holds_up_nobody(yard, task):
    """rules D4, C2, P4, V5"""
    wealth = Wealth(yard)

    yard.rule(task, SEGMENT, [FOUND, None, FOUND])

    assert wealth.gains() == add_up(
        *judged(yard.seats(task, SEGMENT, 1), "T.T"),
        *split(STAKE - 2 * FEE, yard.challenger, yard.requester),
        (yard.challenger, BOND),
        (yard.requester, REWARD),
    )
    assert is_drained(yard, task)


def test_silence_of_most_calls_others(yard, task):
    """rules D5, P4, V5: who answered alone is paid once the others agree."""
    wealth = Wealth(yard)
    yard.rule(task, SEGMENT, [None, FOUND, None])

    yard.rule(task, SEGMENT, [FOUND, None, FOUND, None, FOUND])

    assert wealth.gains() == add_up(
        *judged(yard.seats(task, SEGMENT, 1), ".T."),
        *judged(yard.seats(task, SEGMENT, 2), "T.T.T"),
        *split(STAKE - 4 * FEE, yard.challenger, yard.requester),
        (yard.challenger, BOND),
        (yard.requester, REWARD),
    )
    assert is_drained(yard, task)


def test_silence_of_all_refunds_everyone(yard, task):
    """rules D5, C2, P4, V5: at the cost of the silent alone."""
    wealth = Wealth(yard)
    yard.rule(task, SEGMENT, [None] * 3)

    yard.rule(task, SEGMENT, [None] * 5)

    silent = members(yard, task, 1) + members(yard, task, 2)
    assert len(set(silent)) == 8
    assert wealth.gains() == add_up(
        *((who, -PENALTY) for who in silent),
        (BURN_ADDRESS, 8 * PENALTY),
        (yard.challenger, BOND),
        (yard.workers[0], STAKE),
        (yard.requester, REWARD),
    )
    assert {yard.market.worker(who)["bondLocked"] for who in silent} == {0}
    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.INCONCLUSIVE
    assert yard.state(task) == TaskState.FAILED
    assert is_drained(yard, task)


def test_commitment_that_is_not_revealed_is_a_wrong_answer(yard, task):
    """rules A8, D4, P4, V5: silence must not be the way out of a lie."""
    wealth = Wealth(yard)
    seats = yard.draw_referees(task, SEGMENT)
    for seat in seats:
        yard.referee_commit(task, SEGMENT, seat, FOUND)
    for seat in seats[1:]:
        yard.referee_reveal(task, SEGMENT, seat, FOUND)
    yard.pass_dispute_deadline(task, SEGMENT)

    yard.market.resolve(task, SEGMENT, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        *judged(seats, "WTT"),
        *split(STAKE - 2 * FEE, yard.challenger, yard.requester),
        (yard.challenger, BOND),
        (yard.requester, REWARD),
    )


def test_silence_is_put_on_record(yard, task):
    """rules W4, P4"""
    yard.rule(task, SEGMENT, [FOUND, FOUND, None])

    account = yard.market.account(members(yard, task, 1)[2])
    assert (account["auditsRight"], account["auditsWrong"]) == (0, 1)


def test_silent_referee_can_leave_after_its_seat_was_closed(yard, task):
    """rules W3, C2: with what is left of its bond."""
    yard.rule(task, SEGMENT, [FOUND, FOUND, None])
    silent = members(yard, task, 1)[2]
    yard.market.retire({"from": silent})
    yard.warp(yard.market.worker(silent)["unbondsAt"])

    tx = yard.market.unbond({"from": silent})

    assert tx.events["BondReturned"]["amount"] == 10**18 - PENALTY
