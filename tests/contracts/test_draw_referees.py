"""`drawReferees`: a committee for one dispute, drawn by the hash of a later block."""

import pytest
from brownie import chain

from tests.contracts.lot import drawn_members, panel_seed, pool_of
from tests.contracts.yard import BOND, event, reverts
from trainyard.protocol.market import DisputeState, SeatState, TaskState

SEGMENT = 4


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Segment 4 was challenged."""
    task = staffed_yard.window()
    staffed_yard.challenge(task, SEGMENT)
    return task


def draw_block(yard, task):
    round_ = yard.market.dispute(task, SEGMENT)["round"]
    return yard.market.panel(task, SEGMENT, round_)["drawBlock"]


def draw_referees(yard, task):
    return yard.market.drawReferees(task, SEGMENT, {"from": yard.stranger})


def people(seats):
    return [seat.member for seat in seats]


def test_three_referees_sit_with_their_bonds(yard, task):
    """rules D4, A5"""
    chain.mine(2)
    locked = {who: yard.market.worker(who)["bondLocked"] for who in yard.auditors}

    tx = draw_referees(yard, task)

    seats = yard.referees(task, SEGMENT)
    assert [dict(drawn) for drawn in tx.events["SeatDrawn"]] == [
        {
            "id": task,
            "segment": SEGMENT,
            "round": 1,
            "seat": seat.index,
            "member": seat.member,
            "duty": SEGMENT,
            "bond": BOND,
        }
        for seat in seats
    ]
    assert event(tx, "HearingStarted") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "seats": 3,
        "commitBy": tx.timestamp + 3_600,
    }
    dispute = yard.market.dispute(task, SEGMENT)
    assert dispute["state"] == DisputeState.HEARING
    assert dispute["deadline"] == tx.timestamp + 3_600
    for seat in seats:
        assert yard.market.worker(seat.member)["bondLocked"] == locked[seat.member] + BOND
        assert yard.market.seat(task, SEGMENT, 1, seat.index)["state"] == SeatState.DRAWN


def test_committee_can_be_recomputed_by_anyone(yard, task):
    """rules A1, A3: auditors of the task are no referees of it."""
    auditors = people(yard.seats(task))

    seats = yard.draw_referees(task, SEGMENT)

    seed = panel_seed(yard, task, SEGMENT, 1)
    assert people(seats) == drawn_members(seed, pool_of(yard), 3, barred=auditors)


def test_second_committee_is_larger_and_has_others(yard, task):
    """rules D5, A3"""
    yard.rule(task, SEGMENT, [None, None, None])
    barred = people([*yard.seats(task), *yard.seats(task, SEGMENT, 1)])

    seats = yard.draw_referees(task, SEGMENT)

    seed = panel_seed(yard, task, SEGMENT, 2)
    assert len(seats) == 5
    assert people(seats) == drawn_members(seed, pool_of(yard), 5, barred=barred)


def test_draw_waits_for_its_block(yard):
    """rule A1"""
    task = yard.window()
    yard.challenge(task, SEGMENT)

    with reverts("MarketDrawPending", task, chain.height + 1):
        draw_referees(yard, task)


def test_draw_in_the_last_block_that_knows_the_hash(yard, task):
    """rule A1"""
    chain.mine(draw_block(yard, task) + 255 - chain.height)

    draw_referees(yard, task)

    assert chain.height == draw_block(yard, task) + 256
    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.HEARING


def test_draw_is_postponed_when_the_hash_is_out_of_reach(yard, task):
    """rules A1, C2"""
    chain.mine(draw_block(yard, task) + 256 - chain.height)

    tx = draw_referees(yard, task)

    assert event(tx, "DrawPostponed") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "drawBlock": tx.block_number + 1,
    }
    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.CALLED
    assert len(yard.draw_referees(task, SEGMENT)) == 3


def test_referees_are_called_once(yard, task):
    """rule D4"""
    yard.draw_referees(task, SEGMENT)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.HEARING):
        draw_referees(yard, task)


def test_unchallenged_segment_has_no_referees(yard, task):
    """rule D4"""
    with reverts("MarketUnexpectedDispute", task, SEGMENT + 1, DisputeState.NONE):
        yard.market.drawReferees(task, SEGMENT + 1, {"from": yard.stranger})


def test_task_without_dispute_has_no_referees(yard):
    """rule D4"""
    task = yard.window()

    with reverts("MarketUnexpectedState", task, TaskState.WINDOW):
        draw_referees(yard, task)
