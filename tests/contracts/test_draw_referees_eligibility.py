"""`drawReferees`: who may judge a dispute, and what happens where too few may."""

import pytest
from brownie import chain

from tests.contracts.lot import opt_in, opt_out, panel_seed
from tests.contracts.money import add_up, fault_part
from tests.contracts.wealth import Wealth
from tests.contracts.yard import AUDITOR_BOND, BOND, FEE, REWARD, digest, event, reverts
from trainyard.protocol.market import (
    BURN_ADDRESS,
    OWN_PANEL,
    DisputeState,
    Failure,
    SeatState,
    TaskState,
)

SEGMENT = 4


@pytest.fixture(scope="module")
def task(staffed_yard):
    """The window is open, the auditors agree, and each test says who may be a referee."""
    yard = staffed_yard
    yard.register(yard.requester, yard.challenger, bond=AUDITOR_BOND)
    yard.market.addBond(AUDITOR_BOND, {"from": yard.workers[0]})
    for party in (yard.requester, yard.challenger, yard.workers[0]):
        yard.market.setDuty(2**96 - 1, 0, 0, {"from": party})
    task = yard.audited()
    opt_out(yard)
    return task


@pytest.fixture(scope="module")
def others(staffed_yard, task):
    """Members of the pool that have nothing to do with the task."""
    auditors = members(staffed_yard.seats(task))
    return [who for who in staffed_yard.auditors if who not in auditors]


def members(seats):
    return [seat.member for seat in seats]


def draw_referees(yard, task):
    return yard.market.drawReferees(task, SEGMENT, {"from": yard.stranger})


@pytest.mark.parametrize("party", ["requester", "worker", "accuser", "auditor"])
def test_party_is_no_referee(yard, task, others, party):
    """rule A3"""
    barred = {
        "requester": yard.requester,
        "worker": yard.workers[0],
        "accuser": yard.challenger,
        "auditor": yard.seats(task)[1].member,
    }
    opt_in(yard, barred[party], *others[:2])
    yard.challenge(task, SEGMENT)

    seats = yard.draw_referees(task, SEGMENT)

    assert set(members(seats)) == set(others[:2])


def test_who_came_after_the_call_is_passed_over(yard, task, others):
    """rule A2: nobody can bring its own referees."""
    opt_in(yard, *others[:2])
    yard.challenge(task, SEGMENT)
    opt_in(yard, others[2])
    yard.market.addBond(AUDITOR_BOND, {"from": yard.workers[1]})

    seats = yard.draw_referees(task, SEGMENT)

    assert set(members(seats)) == set(others[:2])


def test_committee_sits_if_it_can_reach_a_majority(yard, task, others):
    """rules D4, D6"""
    opt_in(yard, *others[:2])
    yard.challenge(task, SEGMENT)
    chain.mine(2)

    tx = draw_referees(yard, task)

    assert event(tx, "SeatsUnassigned") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "missing": 1,
    }
    assert event(tx, "HearingStarted")["seats"] == 2


@pytest.mark.parametrize("free", [0, 1])
def test_too_few_referees_are_waited_for(yard, task, others, free):
    """rule D6"""
    opt_in(yard, *others[:free])
    yard.challenge(task, SEGMENT)
    chain.mine(2)

    tx = draw_referees(yard, task)

    assert event(tx, "SeatsAwaited") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "seed": "0x" + panel_seed(yard, task, SEGMENT, 1).hex(),
        "found": free,
    }
    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.CALLED


@pytest.mark.parametrize("free", [0, 1])
def test_too_few_referees_are_refused_until_the_dismissal(yard, task, others, free):
    """rules D6, C1: bonds may come free until then."""
    opt_in(yard, *others[:free])
    yard.challenge(task, SEGMENT)
    yard.draw_referees(task, SEGMENT)
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"] - 1)

    with reverts("MarketTooFewAuditors", free, 2):
        draw_referees(yard, task)


@pytest.fixture
def busy(yard, task):
    """A member whose bond stands behind the seat of another task."""
    yard.market.addBond(BOND, {"from": yard.workers[3]})
    other = yard.auditing()
    assert members(yard.seats(other)) == [yard.workers[3]]


def test_busy_referee_is_waited_for(yard, task, others, busy):
    """rules A2, D6: a majority is free, but whose seat it is was drawn."""
    opt_in(yard, *others[:2])
    yard.challenge(task, SEGMENT)
    yard.draw_referees(task, SEGMENT)

    with reverts("MarketTooFewAuditors", 2, 3):
        draw_referees(yard, task)


@pytest.mark.parametrize("late", [0, 1])
def test_committee_sits_without_its_busy_member_at_last(yard, task, others, busy, late):
    """rules D6, C1, C2"""
    opt_in(yard, *others[:2])
    yard.challenge(task, SEGMENT)
    yard.draw_referees(task, SEGMENT)
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"] + late)

    tx = draw_referees(yard, task)

    assert event(tx, "HearingStarted")["seats"] == 2
    assert set(members(yard.referees(task, SEGMENT))) == set(others[:2])


@pytest.mark.parametrize("late", [0, 1])
def test_dispute_is_dismissed_where_referees_never_come(yard, task, others, late):
    """rules D6, C1, C2"""
    opt_in(yard, others[0])
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)
    chain.mine(2)
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"] + late)

    tx = draw_referees(yard, task)

    assert event(tx, "SeatsUnassigned")["missing"] == 2
    assert event(tx, "DisputeResolved") == {
        "id": task,
        "segment": SEGMENT,
        "outcome": DisputeState.DISMISSED,
        "truth": "0x" + "00" * 32,
    }
    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.DISMISSED
    assert yard.state(task) == TaskState.WINDOW
    assert wealth.gains() == {}


def test_task_goes_on_after_a_dismissal(yard, task):
    """rules D6, P1"""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)
    chain.mine(2)
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"])
    draw_referees(yard, task)

    yard.market.settle(task, {"from": yard.stranger})

    stake = yard.market.task(task)["stake"]
    assert wealth.gains() == add_up(
        (yard.workers[0], stake + REWARD),
        *((auditor, FEE) for auditor in members(yard.seats(task))),
    )


def test_dismissed_dispute_is_over(yard, task):
    """rules D2, D6"""
    yard.challenge(task, SEGMENT)
    chain.mine(2)
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"])
    draw_referees(yard, task)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.DISMISSED):
        yard.market.resolve(task, SEGMENT, {"from": yard.stranger})


@pytest.mark.parametrize("free", [0, 2])
def test_second_committee_is_waited_for_too(yard, task, others, free):
    """rules D5, D6: three of five would do."""
    opt_in(yard, *others[: 3 + free])
    yard.challenge(task, SEGMENT)
    yard.rule(task, SEGMENT, [digest("a"), digest("b"), digest("c")])
    yard.draw_referees(task, SEGMENT)

    with reverts("MarketTooFewAuditors", free, 3):
        draw_referees(yard, task)


def test_second_committee_sits_if_it_can_reach_a_majority(yard, task, others):
    """rules D5, D6"""
    opt_in(yard, *others[:6])
    yard.challenge(task, SEGMENT)
    yard.rule(task, SEGMENT, [digest("a"), digest("b"), digest("c")])
    first = set(members(yard.seats(task, SEGMENT, 1)))

    seats = yard.draw_referees(task, SEGMENT)

    assert set(members(seats)) == set(others[:6]) - first


def test_dismissal_after_the_first_committee_frees_its_members(yard, task, others):
    """rules D6, P4: nobody was judged, but who kept silent was at fault."""
    opt_in(yard, *others[:3])
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)
    yard.rule(task, SEGMENT, [digest("a"), digest("b"), None])
    seats = yard.seats(task, SEGMENT, 1)
    chain.mine(2)
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"])

    draw_referees(yard, task)

    penalty = fault_part(BOND)
    assert wealth.gains() == add_up((seats[2].member, -penalty), (BURN_ADDRESS, penalty))
    assert [yard.market.worker(seat.member)["bondLocked"] for seat in seats] == [0, 0, 0]
    assert yard.state(task) == TaskState.WINDOW


@pytest.fixture
def contested(yard, task):
    """Another task, whose only auditor found something else than the workers; nobody is free."""
    opt_in(yard, *yard.auditors[:1])
    other = yard.window({0: digest("a")}, audits=1)
    opt_out(yard)
    return other


@pytest.mark.parametrize("challenged", [False, True])
@pytest.mark.parametrize("late", [0, 1])
def test_what_an_auditor_contests_is_not_paid_for_unjudged(yard, contested, challenged, late):
    """rules D6, A8, C1, V5: all are refunded, whoever the accuser is; the auditor earns nothing."""
    [seat] = yard.seats(contested)
    wealth = Wealth(yard)
    if challenged:
        yard.challenge(contested, seat.segment)
    yard.audit_reveal(contested, seat, digest("a"))
    chain.mine(2)
    yard.at(yard.market.dispute(contested, seat.segment)["deadline"] + late)

    tx = yard.market.drawReferees(contested, seat.segment, {"from": yard.stranger})

    assert event(tx, "DisputeResolved")["outcome"] == DisputeState.INCONCLUSIVE
    assert event(tx, "TaskFailed")["reason"] == Failure.INCONCLUSIVE
    terms = yard.market.task(contested)
    assert wealth.gains() == add_up(
        (yard.workers[0], terms["stake"]), (yard.requester, REWARD + FEE)
    )
    account = yard.market.account(seat.member)
    assert account["auditsWrong"] == 0
    assert yard.market.seat(contested, OWN_PANEL, 0, 0)["state"] == SeatState.CLOSED
