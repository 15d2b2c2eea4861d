"""Several disputes of one task at a time."""

import pytest

from tests.contracts.money import add_up, is_drained
from tests.contracts.wealth import Wealth, judged, split
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest, event, reverts
from trainyard.protocol.market import BURN_ADDRESS, OWN_PANEL, DisputeState, SeatState, TaskState

FOUND = digest("what referees found")
OTHER = digest("what others found")


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Both auditors found something else than the workers, and are to say so."""
    return staffed_yard.window({0: FOUND, 1: FOUND})


@pytest.fixture(scope="module")
def seats(staffed_yard, task):
    return staffed_yard.seats(task)


@pytest.fixture(scope="module")
def free_segment(seats):
    """A segment that nobody audits."""
    return next(index for index in range(9) if index not in {seat.segment for seat in seats})


def confirm(yard, task, segment):
    return yard.rule(task, segment, [yard.trace.after(segment)] * 3)


def open_disputes(yard, task):
    return yard.market.panel(task, OWN_PANEL, 0)["disputes"]


def test_each_accusation_is_a_dispute_of_its_own(yard, task, seats, free_segment):
    """rules D1, D2"""
    for seat in seats:
        yard.audit_reveal(task, seat, FOUND)

    yard.challenge(task, free_segment)

    assert open_disputes(yard, task) == 3
    accusers = [
        yard.market.dispute(task, segment)["accuser"]
        for segment in (seats[0].segment, seats[1].segment, free_segment)
    ]
    assert accusers == [seats[0].member, seats[1].member, yard.challenger]


def test_task_stays_disputed_until_the_last_is_resolved(yard, task, seats):
    """rule D8"""
    for seat in seats:
        yard.audit_reveal(task, seat, FOUND)
    yard.pass_window(task)
    confirm(yard, task, seats[0].segment)
    assert open_disputes(yard, task) == 1

    with reverts("MarketUnexpectedState", task, TaskState.DISPUTED):
        yard.market.settle(task, {"from": yard.stranger})


def test_two_wrong_auditors_pay_each(yard, task, seats):
    """rules D4, D8, P3, V5"""
    wealth = Wealth(yard)
    for seat in seats:
        yard.audit_reveal(task, seat, FOUND)
    for seat in seats:
        confirm(yard, task, seat.segment)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    committees = [yard.seats(task, seat.segment, 1) for seat in seats]
    assert wealth.gains() == add_up(
        *((seat.member, -BOND) for seat in seats),
        *(gain for committee in committees for gain in judged(committee, "TTT")),
        *split(BOND - 3 * FEE, yard.workers[0], yard.requester),
        *split(BOND - 3 * FEE, yard.workers[0], yard.requester),
        (yard.workers[0], STAKE + REWARD),
        (yard.requester, 2 * FEE),
    )
    assert is_drained(yard, task)


def test_other_dispute_is_void_once_the_task_failed(yard, task, seats):
    """rules D7, P3, A8, V5: the second auditor was not judged, and is paid for its answer."""
    wealth = Wealth(yard)
    for seat in seats:
        yard.audit_reveal(task, seat, FOUND)
    yard.rule(task, seats[0].segment, [FOUND] * 3)

    tx = yard.market.resolve(task, seats[1].segment, {"from": yard.stranger})

    assert event(tx, "DisputeResolved") == {
        "id": task,
        "segment": seats[1].segment,
        "outcome": DisputeState.VOID,
        "truth": "0x" + "00" * 32,
    }
    assert wealth.gains() == add_up(
        *judged(yard.seats(task, seats[0].segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, seats[0].member, yard.requester),
        *((seat.member, FEE) for seat in seats),
        (yard.requester, REWARD),
    )
    assert [yard.market.worker(seat.member)["bondLocked"] for seat in seats] == [0, 0]
    assert is_drained(yard, task)


@pytest.mark.parametrize("stage", ["unserved", "called", "hearing", "ruling", "second"])
def test_void_dispute_gives_all_bonds_back(yard, task, seats, free_segment, stage):
    """rules D7, C2, V5: at once, in every stage, and nobody was silent by then."""
    wealth = Wealth(yard)
    if stage == "unserved":
        yard.market.challengeUnserved(task, free_segment, {"from": yard.challenger})
    else:
        yard.challenge(task, free_segment)
    if stage in ("hearing", "ruling"):
        for seat in yard.draw_referees(task, free_segment):
            if stage == "ruling" or seat.index == 0:
                yard.referee_commit(task, free_segment, seat, OTHER)
    if stage == "second":
        yard.rule(task, free_segment, [FOUND, OTHER, digest("third")])
    yard.audit_reveal(task, seats[0], FOUND)
    yard.rule(task, seats[0].segment, [FOUND] * 3)

    yard.market.resolve(task, free_segment, {"from": yard.stranger})

    assert yard.market.dispute(task, free_segment)["state"] == DisputeState.VOID
    assert wealth.gains() == add_up(
        *judged(yard.seats(task, seats[0].segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, seats[0].member, yard.requester),
        *((seat.member, FEE) for seat in seats),
        (yard.requester, REWARD),
    )
    assert {yard.market.worker(who)["bondLocked"] for who in yard.auditors} == {0}
    assert is_drained(yard, task)


def test_void_dispute_draws_no_referees(yard, task, seats, free_segment):
    """rule D7"""
    yard.challenge(task, free_segment)
    yard.audit_reveal(task, seats[0], FOUND)
    yard.rule(task, seats[0].segment, [FOUND] * 3)

    with reverts("MarketUnexpectedState", task, TaskState.FAILED):
        yard.draw_referees(task, free_segment)


def test_void_dispute_is_resolved_once(yard, task, seats, free_segment):
    """rules D7, V5"""
    yard.challenge(task, free_segment)
    yard.audit_reveal(task, seats[0], FOUND)
    yard.rule(task, seats[0].segment, [FOUND] * 3)
    yard.market.resolve(task, free_segment, {"from": yard.stranger})

    with reverts("MarketUnexpectedDispute", task, free_segment, DisputeState.VOID):
        yard.market.resolve(task, free_segment, {"from": yard.stranger})


def test_segment_that_an_auditor_disputes_is_not_challenged(yard, task, seats):
    """rule D2"""
    yard.audit_reveal(task, seats[0], FOUND)

    with reverts("MarketUnexpectedDispute", task, seats[0].segment, DisputeState.CALLED):
        yard.challenge(task, seats[0].segment)


def test_auditor_joins_a_dispute_of_its_segment(yard, task, seats):
    """rules D1, D2: the challenger was first and stays the accuser."""
    yard.challenge(task, seats[0].segment)

    tx = yard.audit_reveal(task, seats[0], FOUND)

    assert "SegmentChallenged" not in tx.events
    assert yard.market.dispute(task, seats[0].segment)["accuser"] == yard.challenger
    assert open_disputes(yard, task) == 1


@pytest.mark.parametrize(("truth", "right"), [(FOUND, True), (OTHER, False)])
def test_wrong_found_by_a_challenger_also_judges_the_auditor(yard, task, seats, truth, right):
    """rules A8, D4, P3, P4: who answered the truth blind comes before the challenger."""
    wealth = Wealth(yard)
    joining, other = seats
    yard.challenge(task, joining.segment)
    yard.audit_reveal(task, joining, FOUND)

    yard.rule(task, joining.segment, [truth] * 3)

    verdict = [(joining.member, FEE)] if right else [(joining.member, -BOND), (BURN_ADDRESS, BOND)]
    assert wealth.gains() == add_up(
        *judged(yard.seats(task, joining.segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, joining.member if right else yard.challenger, yard.requester),
        *verdict,
        (other.member, FEE),
        (yard.requester, REWARD if right else REWARD + FEE),
    )
    assert is_drained(yard, task)


def test_wrong_challenger_also_judges_the_auditor(yard):
    """rules A8, D4, P3, P4: the accuser pays the accused, the auditor the fire."""
    task = yard.window({0: FOUND})
    joining, other = yard.seats(task)
    wealth = Wealth(yard)
    yard.challenge(task, joining.segment)
    yard.audit_reveal(task, joining, FOUND)
    yard.audit_reveal(task, other)
    confirm(yard, task, joining.segment)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.challenger, -BOND),
        *judged(yard.seats(task, joining.segment, 1), "TTT"),
        *split(BOND - 3 * FEE, yard.workers[0], yard.requester),
        (joining.member, -BOND),
        (BURN_ADDRESS, BOND),
        (other.member, FEE),
        (yard.workers[0], STAKE + REWARD),
        (yard.requester, FEE),
    )
    assert is_drained(yard, task)


def test_seat_of_a_judged_auditor_is_closed(yard, task, seats):
    """rules A6, D4"""
    accuser = seats[0]
    yard.audit_reveal(task, accuser, FOUND)
    confirm(yard, task, accuser.segment)

    with reverts("MarketUnexpectedSeat", task, accuser.index, SeatState.CLOSED):
        yard.audit_reveal(task, accuser, FOUND)


def test_auditor_that_reveals_after_the_verdict_is_judged_by_it(yard, task, seats):
    """rules A8, D2: no second dispute about one segment."""
    seat = seats[0]
    yard.challenge(task, seat.segment)
    confirm(yard, task, seat.segment)

    tx = yard.audit_reveal(task, seat, FOUND)

    assert "SegmentChallenged" not in tx.events
    assert yard.market.dispute(task, seat.segment)["state"] == DisputeState.REJECTED
    assert yard.state(task) == TaskState.WINDOW
