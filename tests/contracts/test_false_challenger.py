"""Hostile: challenges that nobody believes in, some by the workers themselves."""

import pytest

from tests.contracts.money import add_up
from tests.contracts.wealth import Wealth, judged
from tests.contracts.yard import BOND, REWARD, digest
from trainyard.protocol.market import BURN_ADDRESS, OWN_PANEL

SEGMENT = 4
FOUND = digest("what referees found")
MILLIETHER = 10**15


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Nobody audits; the window is open. Bond 90, fee 10, stake and reward 1,000 milliether."""
    task = staffed_yard.submitted(audits=0)
    staffed_yard.draw(task)
    return task


def referees_paid(yard, task):
    return judged(yard.seats(task, SEGMENT, 1), "TTT")


@pytest.mark.parametrize("sock", [False, True], ids=["itself", "sock puppet"])
def test_worker_that_challenges_its_good_segment_loses(yard, task, sock):
    """rules P3, D4: of the bond of 90, 30 go to the referees, 18 to the requester, 12 burn."""
    wealth = Wealth(yard)
    worker, accuser = yard.workers[0], yard.challenger if sock else yard.workers[0]
    yard.challenge(task, SEGMENT, by=accuser)

    yard.rule(task, SEGMENT, [yard.trace.after(SEGMENT)] * 3)

    assert wealth.gains() == add_up(
        *referees_paid(yard, task),
        (accuser, -90 * MILLIETHER),
        (worker, 30 * MILLIETHER),
        (yard.requester, 18 * MILLIETHER),
        (BURN_ADDRESS, 12 * MILLIETHER),
    )


@pytest.mark.parametrize("sock", [False, True], ids=["itself", "sock puppet"])
def test_worker_that_finds_its_own_fraud_loses(yard, task, sock):
    """rules P3, D4: of the stake of 1,000 it sees 485 again, and the reward never."""
    wealth = Wealth(yard)
    finder = yard.challenger if sock else yard.workers[0]
    yard.challenge(task, SEGMENT, by=finder)

    yard.rule(task, SEGMENT, [FOUND] * 3)

    assert wealth.gains() == add_up(
        *referees_paid(yard, task),
        (finder, 485 * MILLIETHER),
        (yard.requester, REWARD + 291 * MILLIETHER),
        (BURN_ADDRESS, 194 * MILLIETHER),
    )


def test_worker_that_does_not_serve_itself_loses(yard, task):
    """rules P3, D3: half of the stake, though no referee had to be paid."""
    wealth = Wealth(yard)
    yard.market.challengeUnserved(task, SEGMENT, {"from": yard.challenger})
    yard.pass_dispute_deadline(task, SEGMENT)

    yard.market.resolve(task, SEGMENT, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.challenger, 500 * MILLIETHER),
        (yard.requester, REWARD + 300 * MILLIETHER),
        (BURN_ADDRESS, 200 * MILLIETHER),
    )


def test_requester_that_challenges_good_work_loses(yard, task):
    """rules P3, D4: it gets its own part back, and the worker is paid for the trouble."""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT, by=yard.requester)

    yard.rule(task, SEGMENT, [yard.trace.after(SEGMENT)] * 3)

    assert wealth.gains() == add_up(
        *referees_paid(yard, task),
        (yard.requester, -72 * MILLIETHER),
        (yard.workers[0], 30 * MILLIETHER),
        (BURN_ADDRESS, 12 * MILLIETHER),
    )


def test_every_false_challenge_costs_a_bond(yard, task):
    """rules D2, P3"""
    credit = yard.credit(yard.challenger)

    for segment in (1, 4, 7):
        yard.challenge(task, segment)
        yard.rule(task, segment, [yard.trace.after(segment)] * 3)

    assert yard.credit(yard.challenger) == credit - 3 * BOND


def test_false_challenges_delay_a_settlement_by_bounded_time(yard, task):
    """rules C2, D8: two committees that use up all of their time."""
    yard.at(yard.market.task(task)["deadline"] - 1)
    yard.challenge(task, SEGMENT)
    ends = yard.market.task(task)["deadline"]
    yard.rule(task, SEGMENT, [None] * 3)

    yard.rule(task, SEGMENT, [yard.trace.after(SEGMENT)] * 4 + [None])

    yard.market.settle(task, {"from": yard.stranger})
    # Some seconds go by with the transactions, each of which takes one.
    assert yard.now() - ends < 2 * (3_600 + 600) + 30


def test_win_of_a_challenger_is_paid_by_the_stakes_alone(yard, task):
    """rules P3, V1, V5: the market owes no more than before."""
    held, owed = yard.market.solvency()
    yard.challenge(task, SEGMENT)

    yard.rule(task, SEGMENT, [FOUND] * 3)

    assert yard.market.solvency() == (held, owed)
    assert yard.market.task(task)["locked"] == 0
    assert yard.market.panel(task, OWN_PANEL, 0)["disputes"] == 0
    assert yard.market.dispute(task, SEGMENT)["bond"] == 0
