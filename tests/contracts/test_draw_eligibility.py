"""`draw`: who of a pool may sit, and what happens where too few may."""

import pytest
from brownie import chain

from tests.contracts.lot import drawn_members, drawn_segments, opt_in, opt_out, panel_seed, pool_of
from tests.contracts.money import add_up
from tests.contracts.wealth import Wealth
from tests.contracts.yard import AUDITOR_BOND, BOND, FEE, REWARD, Yard, event, reverts
from trainyard.protocol.market import OWN_PANEL, Failure, TaskState


@pytest.fixture(scope="module", autouse=True)
def _nobody_is_free(staffed_yard):
    """The pool has its twelve members, and each test says who of them may be drawn."""
    opt_out(staffed_yard)


def members(yard: Yard, task: int) -> list[str]:
    return [seat.member for seat in yard.seats(task)]


@pytest.mark.parametrize("vacated", [False, True])
def test_who_came_after_the_call_is_passed_over(yard, vacated):
    """rule A2: also in a place of the pool that existed when the panel was called."""
    first, leaver = yard.auditors[:2]
    opt_in(yard, first)
    task = yard.submitted()
    if vacated:
        yard.market.retire({"from": leaver})
    yard.register(yard.challenger, bond=AUDITOR_BOND)
    assert pool_of(yard).index(yard.challenger) == (11 if vacated else 12)

    tx = yard.draw(task)

    assert members(yard, task) == [first]
    assert event(tx, "SeatsUnassigned")["missing"] == 1


@pytest.mark.parametrize("change", ["bond", "duty"])
def test_who_changed_after_the_call_is_passed_over(yard, change):
    """rule A2: it could wait for the block and then choose whether to sit."""
    opt_in(yard, yard.auditors[0])
    task = yard.submitted()
    if change == "bond":
        yard.market.addBond(1, {"from": yard.auditors[0]})
    else:
        yard.market.setDuty(0, 0, 0, {"from": yard.auditors[0]})

    yard.draw(task)

    assert members(yard, task) == []


def test_who_came_before_the_call_is_drawn(yard):
    """rule A2"""
    yard.register(yard.challenger, bond=AUDITOR_BOND)

    task = yard.auditing()

    assert members(yard, task) == [yard.challenger]


def test_who_retired_is_skipped(yard):
    """rules A2, W3"""
    first, second = yard.auditors[:2]
    opt_in(yard, first, second)
    task = yard.submitted()
    yard.market.retire({"from": second})

    yard.draw(task)

    assert members(yard, task) == [first]


@pytest.mark.parametrize("party", ["requester", "worker"])
def test_party_is_not_drawn(yard, party):
    """rule A3"""
    if party == "requester":
        yard.register(yard.requester, bond=AUDITOR_BOND)
    else:
        yard.market.addBond(AUDITOR_BOND, {"from": yard.workers[0]})

    task = yard.auditing()

    assert members(yard, task) == []


def test_worker_of_another_task_is_drawn(yard):
    """rule A3"""
    yard.market.addBond(AUDITOR_BOND, {"from": yard.workers[1]})

    task = yard.auditing()

    assert members(yard, task) == [yard.workers[1]]


@pytest.mark.parametrize(
    ("duty", "drawn"),
    [
        ((FEE, 3_600, 600), True),
        ((FEE + 1, 3_600, 600), False),
        ((FEE, 3_601, 600), False),
        ((FEE, 3_600, 601), False),
    ],
)
def test_member_is_drawn_for_no_less_than_it_asks(yard, duty, drawn):
    """rule W2"""
    yard.market.setDuty(*duty, {"from": yard.auditors[0]})

    task = yard.auditing(audit_fee=FEE, audit_for=3_600, answer_for=600)

    assert members(yard, task) == [yard.auditors[0]] * drawn


def test_bond_of_two_seats_holds_two_seats(yard):
    """rules A5, W5"""
    yard.register(yard.challenger, bond=2 * BOND)
    yard.auditing()

    task = yard.auditing()

    assert members(yard, task) == [yard.challenger]
    assert yard.market.worker(yard.challenger)["bondLocked"] == 2 * BOND


def test_fee_of_an_unassigned_audit_goes_back(yard):
    """rule A5"""
    opt_in(yard, yard.auditors[0])
    wealth = Wealth(yard)
    task = yard.audited()
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.requester, -REWARD - FEE), (yard.workers[0], REWARD), (yard.auditors[0], FEE)
    )


def test_task_without_any_auditor_goes_on(yard):
    """rule A5: the window still protects the requester."""
    task = yard.submitted()

    tx = yard.draw(task)

    assert event(tx, "SeatsUnassigned") == {
        "id": task,
        "segment": OWN_PANEL,
        "round": 0,
        "missing": 2,
    }
    assert event(tx, "WindowStarted") == {
        "id": task,
        "states": (),
        "revealBy": tx.timestamp + 600,
        "challengeBy": tx.timestamp + 3_600,
    }
    assert yard.state(task) == TaskState.WINDOW


def test_fewer_than_demanded_are_waited_for(yard):
    """rule A5: what was drawn is kept, so that waiting does not draw anew."""
    opt_in(yard, yard.auditors[0])
    task = yard.submitted(min_audits=2)

    tx = yard.draw(task)

    assert event(tx, "SeatsAwaited") == {
        "id": task,
        "segment": OWN_PANEL,
        "round": 0,
        "seed": "0x" + panel_seed(yard, task).hex(),
        "found": 1,
    }
    assert yard.state(task) == TaskState.SUBMITTED
    assert members(yard, task) == []


def test_fewer_than_demanded_are_refused_until_draw_by(yard):
    """rules A5, C1"""
    opt_in(yard, yard.auditors[0])
    task = yard.submitted(min_audits=2)
    yard.draw(task)
    yard.at(yard.market.task(task)["deadline"] - 1)

    with reverts("MarketTooFewAuditors", 1, 2):
        yard.market.draw(task, {"from": yard.stranger})


@pytest.mark.parametrize("late", [0, 1])
def test_fewer_than_demanded_refund_everyone(yard, late):
    """rules A5, C1, C2, V5"""
    opt_in(yard, yard.auditors[0])
    wealth = Wealth(yard)
    task = yard.submitted(min_audits=2)
    chain.mine(2)
    yard.at(yard.market.task(task)["deadline"] + late)

    tx = yard.market.draw(task, {"from": yard.stranger})

    refunded = REWARD + 2 * FEE
    failed = {"id": task, "reason": Failure.UNAUDITED, "refunded": refunded}
    assert event(tx, "TaskFailed") == failed
    assert "SeatDrawn" not in tx.events
    assert wealth.gains() == {}
    assert yard.market.task(task)["locked"] == 0


@pytest.fixture
def busy(yard):
    """A member whose bond stands behind the seat of another task, which has no window."""
    yard.register(yard.challenger, bond=BOND)
    return yard.opening(audits=1, challenge_for=0)


def test_busy_member_is_waited_for(yard, busy):
    """rules A2, A5: or whoever keeps members busy could choose the judges."""
    task = yard.submitted()
    yard.draw(task)

    with reverts("MarketTooFewAuditors", 0, 2):
        yard.draw(task)


def test_busy_member_sits_once_its_bond_is_free(yard, busy):
    """rules A1, A5: the hash that drew it is kept, though it is out of reach by now."""
    task = yard.submitted()
    yard.draw(task)
    yard.open(busy)
    yard.audit_reveal(busy, yard.seats(busy)[0])
    yard.market.settle(busy, {"from": yard.stranger})
    chain.mine(300)

    yard.draw(task)

    assert members(yard, task) == [yard.challenger]


@pytest.mark.parametrize("late", [0, 1])
def test_seat_of_a_busy_member_goes_to_nobody_else(yard, busy, late):
    """rules A4, A5, C1, C2: the other seat keeps its own segment."""
    first = yard.auditors[0]
    opt_in(yard, first)
    task = yard.submitted()
    yard.draw(task)
    seed = panel_seed(yard, task)
    yard.at(yard.market.task(task)["deadline"] + late)

    tx = yard.market.draw(task, {"from": yard.stranger})

    idle = [who for who in pool_of(yard) if who not in (first, yard.challenger)]
    place = drawn_members(seed, pool_of(yard), 2, barred=idle).index(first)
    assert [(seat.member, seat.segment) for seat in yard.seats(task)] == [
        (first, drawn_segments(seed, 9, 2)[place])
    ]
    assert event(tx, "SeatsUnassigned")["missing"] == 1
