"""Hostile: workers that keep back what they claimed."""

import pytest

from tests.contracts.money import add_up, fault_part, is_drained
from tests.contracts.wealth import Wealth, judged, split
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest, event, reverts, trace_of
from trainyard.protocol.market import BURN_ADDRESS, UNSERVED, Failure, TaskState

FOUND = digest("what referees found")


@pytest.fixture(scope="module")
def opening(staffed_yard):
    """The auditors have committed; the workers are to open."""
    return staffed_yard.opening()


@pytest.fixture
def starved(yard):
    """Auditor 0 was not served, and says so; auditor 1 agrees with the workers."""
    task = yard.window({0: UNSERVED})
    yard.audit_reveal(task, yard.seats(task)[1])
    return task


def record(yard, who):
    account = yard.market.account(who)
    return (account["auditsRight"], account["auditsWrong"])


def test_workers_have_their_time_to_open(yard, opening):
    """rules A7, C1"""
    deadline = yard.market.task(opening)["deadline"]
    yard.at(deadline - 1)

    with reverts("MarketTooEarly", opening, deadline):
        yard.market.expire(opening, {"from": yard.stranger})


@pytest.mark.parametrize("late", [0, 1])
def test_never_opening_costs_the_stakes(yard, opening, late):
    """rules A7, A8, C1, C2, P3, V5: nobody found it, so that part burns too."""
    wealth = Wealth(yard)
    auditors = [seat.member for seat in yard.seats(opening)]
    yard.at(yard.market.task(opening)["deadline"] + late)

    tx = yard.market.expire(opening, {"from": yard.stranger})

    assert event(tx, "TaskFailed")["reason"] == Failure.WITHHELD
    assert wealth.gains() == add_up(
        (yard.requester, REWARD + 3 * 10**17),
        (BURN_ADDRESS, 7 * 10**17),
        *((member, FEE) for member in auditors),
    )
    assert yard.market.account(yard.workers[0])["failed"] == 1
    assert is_drained(yard, opening)


def test_opening_another_trace_is_no_way_out(yard, opening):
    """rules A7, A10: what was committed can be opened, or nothing."""
    first = yard.seats(opening)[0]

    with reverts("MarketWrongProof", opening, first.segment):
        yard.open(opening, trace_of("better"))


def test_auditor_that_kept_silent_too_is_at_fault(yard):
    """rules A7, A8, P4"""
    task = yard.auditing()
    committed, silent = yard.seats(task)
    yard.audit_commit(task, committed)
    wealth = Wealth(yard)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    yard.pass_deadline(task)

    yard.market.expire(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        *split(STAKE, None, yard.requester),
        (yard.requester, REWARD + FEE),
        (committed.member, FEE),
        (silent.member, -fault_part(BOND)),
        (BURN_ADDRESS, fault_part(BOND)),
    )


def test_data_that_no_referee_can_fetch_costs_the_stakes(yard):
    """rules D3, D4, P3, V5: showing the leaf is not serving the data."""
    segment = 4
    task = yard.audited()
    wealth = Wealth(yard)
    yard.market.challengeUnserved(task, segment, {"from": yard.challenger})
    yard.market.serve(
        task,
        segment,
        yard.claim.as_tuple(),
        yard.trace.after(segment),
        yard.trace.proof_after(segment),
        {"from": yard.workers[0]},
    )

    tx = yard.rule(task, segment, [UNSERVED] * 3)

    assert event(tx, "TaskFailed")["reason"] == Failure.FRAUD
    assert wealth.gains() == add_up(
        *judged(yard.seats(task, segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, yard.challenger, yard.requester),
        (yard.requester, REWARD),
        *((seat.member, FEE) for seat in yard.seats(task)),
    )
    assert is_drained(yard, task)


def test_served_data_clears_the_workers(yard):
    """rules D3, D4: who asked pays the referees and for a fault, and the workers gain nothing."""
    segment = 4
    task = yard.audited()
    wealth = Wealth(yard)
    yard.market.challengeUnserved(task, segment, {"from": yard.challenger})
    yard.market.serve(
        task,
        segment,
        yard.claim.as_tuple(),
        yard.trace.after(segment),
        yard.trace.proof_after(segment),
        {"from": yard.workers[0]},
    )

    yard.rule(task, segment, [yard.trace.after(segment)] * 3)

    assert wealth.gains() == add_up(
        (yard.challenger, -3 * FEE - fault_part(BOND)),
        *judged(yard.seats(task, segment, 1), "TTT"),
        (BURN_ADDRESS, fault_part(BOND)),
    )
    assert yard.state(task) == TaskState.WINDOW


def test_starving_an_auditor_and_all_referees_costs_the_stakes(yard, starved):
    """rules D1, D3, D4, P3, A8"""
    hungry, other = yard.seats(starved)
    wealth = Wealth(yard)
    yard.audit_reveal(starved, hungry, UNSERVED)

    yard.rule(starved, hungry.segment, [UNSERVED] * 3)

    assert wealth.gains() == add_up(
        *judged(yard.seats(starved, hungry.segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, hungry.member, yard.requester),
        (hungry.member, FEE),
        (other.member, FEE),
        (yard.requester, REWARD),
    )


def test_starving_an_auditor_alone_earns_nothing(yard, starved):
    """rules D4, A8, W4: it pays the referees that it called, and for a fault."""
    hungry, _ = yard.seats(starved)
    # It may sit on another task's panel too.
    locked = yard.market.worker(hungry.member)["bondLocked"]
    wealth = Wealth(yard)
    yard.audit_reveal(starved, hungry, UNSERVED)

    yard.rule(starved, hungry.segment, [yard.trace.after(hungry.segment)] * 3)

    assert wealth.gains() == add_up(
        (hungry.member, -3 * FEE - fault_part(BOND)),
        *judged(yard.seats(starved, hungry.segment, 1), "TTT"),
        (BURN_ADDRESS, fault_part(BOND)),
    )
    assert yard.market.worker(hungry.member)["bondLocked"] == locked - BOND
    assert record(yard, hungry.member) == (0, 1)


def test_starved_auditor_is_not_wrong_about_a_fraud(yard, starved):
    """rules D4, A8, P3: but it did not find it either."""
    hungry, other = yard.seats(starved)
    wealth = Wealth(yard)
    yard.audit_reveal(starved, hungry, UNSERVED)

    yard.rule(starved, hungry.segment, [FOUND] * 3)

    assert wealth.gains() == add_up(
        *judged(yard.seats(starved, hungry.segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, None, yard.requester),
        (hungry.member, FEE),
        (other.member, FEE),
        (yard.requester, REWARD),
    )


def test_starved_auditor_is_at_fault_where_another_accused_wrongly(yard, starved):
    """rules D4, A8, P4: as if it had kept silent."""
    hungry, other = yard.seats(starved)
    yard.challenge(starved, hungry.segment)
    yard.audit_reveal(starved, hungry, UNSERVED)
    yard.rule(starved, hungry.segment, [yard.trace.after(hungry.segment)] * 3)
    yard.pass_window(starved)
    wealth = Wealth(yard)

    yard.market.settle(starved, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.workers[0], STAKE + REWARD),
        (other.member, FEE),
        (hungry.member, -fault_part(BOND)),
        (BURN_ADDRESS, fault_part(BOND)),
        (yard.requester, FEE),
    )
    assert is_drained(yard, starved)


def test_starving_a_referee_costs_it_no_more_than_silence(yard):
    """rules A8, D4, P4"""
    segment = 4
    task = yard.audited()
    yard.challenge(task, segment)
    wealth = Wealth(yard)

    yard.rule(task, segment, [yard.trace.after(segment), UNSERVED, yard.trace.after(segment)])

    hungry = yard.seats(task, segment, 1)[1]
    assert wealth.gains()[hungry.member] == -fault_part(BOND)
    assert record(yard, hungry.member) == (0, 1)
