"""`draw`: who audits which segment is up to the hash of a later block."""

import pytest
from brownie import chain

from tests.contracts.lot import drawn_members, drawn_segments, panel_seed, pool_of
from tests.contracts.yard import BOND, event, reverts
from trainyard.protocol.market import OWN_PANEL, Policy, SeatState, TaskState


@pytest.fixture(scope="module")
def task(staffed_yard):
    return staffed_yard.submitted()


def draw_block(yard, task):
    return yard.market.panel(task, OWN_PANEL, 0)["drawBlock"]


def members(yard, task):
    return [seat.member for seat in yard.seats(task)]


def test_draw_seats_auditors_with_their_bonds(yard, task):
    """rules A1, A5"""
    tx = yard.draw(task)

    seats = yard.seats(task)
    assert [dict(drawn) for drawn in tx.events["SeatDrawn"]] == [
        {
            "id": task,
            "segment": OWN_PANEL,
            "round": 0,
            "seat": seat.index,
            "member": seat.member,
            "duty": seat.segment,
            "bond": BOND,
        }
        for seat in seats
    ]
    assert event(tx, "AuditStarted") == {"id": task, "seats": 2, "commitBy": tx.timestamp + 3_600}
    assert "SeatsUnassigned" not in tx.events
    assert yard.state(task) == TaskState.AUDITING
    assert yard.market.task(task)["deadline"] == tx.timestamp + 3_600
    for seat in seats:
        assert yard.market.worker(seat.member)["bondLocked"] == BOND
        assert yard.market.seat(task, OWN_PANEL, 0, seat.index)["state"] == SeatState.DRAWN


def test_draw_waits_for_its_block(yard, task):
    """rule A1: the hash of a block is known only after it."""
    block = draw_block(yard, task)
    assert block == chain.height + 1

    with reverts("MarketDrawPending", task, block):
        yard.market.draw(task, {"from": yard.stranger})


def test_draw_in_the_first_block_after_its_own(yard, task):
    """rule A1"""
    chain.mine(draw_block(yard, task) - chain.height)

    tx = yard.market.draw(task, {"from": yard.stranger})

    assert tx.block_number == draw_block(yard, task) + 1
    assert yard.state(task) == TaskState.AUDITING


def test_draw_in_the_last_block_that_knows_the_hash(yard, task):
    """rule A1"""
    chain.mine(draw_block(yard, task) + 255 - chain.height)

    tx = yard.market.draw(task, {"from": yard.stranger})

    assert tx.block_number == draw_block(yard, task) + 256
    assert yard.state(task) == TaskState.AUDITING


def test_draw_is_postponed_when_the_hash_is_out_of_reach(yard, task):
    """rule A1"""
    chain.mine(draw_block(yard, task) + 256 - chain.height)

    tx = yard.market.draw(task, {"from": yard.stranger})

    postponed = {"id": task, "segment": OWN_PANEL, "round": 0, "drawBlock": tx.block_number + 1}
    assert event(tx, "DrawPostponed") == postponed
    assert draw_block(yard, task) == tx.block_number + 1
    assert yard.state(task) == TaskState.SUBMITTED
    assert yard.seats(task) == []


def test_postponed_draw_is_made_by_the_later_block(yard, task):
    """rules A1, C2"""
    chain.mine(draw_block(yard, task) + 256 - chain.height)
    yard.market.draw(task, {"from": yard.stranger})

    yard.draw(task)

    assert members(yard, task) == drawn_members(panel_seed(yard, task), pool_of(yard), 2)


def test_draw_can_be_recomputed_by_anyone(yard):
    """rules A1, A4: the same block and task give the same seats, whoever calls and when."""
    task = yard.submitted(audits=4)
    chain.mine(17)

    yard.market.draw(task, {"from": yard.workers[3]})

    seed, seats = panel_seed(yard, task), yard.seats(task)
    assert [seat.member for seat in seats] == drawn_members(seed, pool_of(yard), 4)
    assert [seat.segment for seat in seats] == drawn_segments(seed, 9, 4)


@pytest.mark.parametrize(("segments", "audits"), [(4, 2), (8, 4), (30, 15), (30, 12), (1_000, 5)])
def test_drawn_segments_are_distinct_and_no_neighbours(yard, segments, audits):
    """rules A4, A3: nor are the last and the first, and nobody sits twice."""
    task = yard.auditing(segments=segments, audits=audits)

    seats = yard.seats(task)
    drawn = {seat.segment for seat in seats}
    assert len(seats) == len(drawn) == min(audits, len(yard.auditors))
    assert drawn <= set(range(segments))
    assert not {(segment + 1) % segments for segment in drawn} & drawn
    assert len({seat.member for seat in seats}) == len(seats)


@pytest.mark.parametrize(
    ("segments", "audits", "seats"),
    [(1, 1, 1), (1, 2, 1), (2, 2, 1), (3, 2, 1), (4, 3, 2), (9, 5, 4)],
)
def test_trace_bears_half_as_many_audits_as_segments(yard, segments, audits, seats):
    """rules A4, A5: one at least; what is too many shows in an event."""
    task = yard.submitted(segments=segments, audits=audits)

    tx = yard.draw(task)

    assert len(yard.seats(task)) == seats
    assert [dict(each) for each in tx.events if each.name == "SeatsUnassigned"] == [
        {"id": task, "segment": OWN_PANEL, "round": 0, "missing": audits - seats}
    ] * (audits > seats)


@pytest.mark.parametrize("policy", [Policy.SCORE, Policy.CONTEST])
def test_evaluators_are_drawn_for_the_whole_result(yard, policy):
    """rule A1: there are no segments to share out."""
    task = yard.scoring(policy, [[950]] * 3)

    assert [seat.segment for seat in yard.seats(task)] == [0, 0, 0]
    assert members(yard, task) == drawn_members(panel_seed(yard, task), pool_of(yard), 3)


def test_task_that_wants_no_audit_needs_no_block(yard):
    """rule A5"""
    task = yard.submitted(audits=0)

    tx = yard.market.draw(task, {"from": yard.stranger})

    assert tx.block_number == draw_block(yard, task)
    assert event(tx, "WindowStarted")["challengeBy"] == tx.timestamp + 3_600
    assert "SeatsUnassigned" not in tx.events
    assert yard.state(task) == TaskState.WINDOW


def test_demanded_auditors_are_drawn_after_draw_by_too(yard):
    """rules A5, C2: the time is for bonds to come free, not a reason to fail."""
    task = yard.submitted(min_audits=2)
    yard.pass_deadline(task)

    yard.market.draw(task, {"from": yard.stranger})

    assert len(yard.seats(task)) == 2


def test_running_task_is_not_drawn(yard):
    """rule A1"""
    task = yard.running()

    with reverts("MarketUnexpectedState", task, TaskState.RUNNING):
        yard.draw(task)


def test_task_is_drawn_once(yard, task):
    """rule A1"""
    yard.draw(task)

    with reverts("MarketUnexpectedState", task, TaskState.AUDITING):
        yard.draw(task)
