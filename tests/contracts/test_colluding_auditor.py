"""Hostile: an auditor that lies for or against the workers."""

import pytest

from tests.contracts.money import add_up, is_drained
from tests.contracts.wealth import Wealth, judged, split
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest
from trainyard.protocol.market import BURN_ADDRESS, OWN_PANEL, Failure

FOUND = digest("what referees found")
OTHER = digest("what nobody found")


@pytest.fixture(scope="module")
def task(staffed_yard):
    """The trace is a fraud; auditor 0 covers for it, and auditor 1's segment is good."""
    return staffed_yard.window()


def record(yard, who):
    account = yard.market.account(who)
    return (account["auditsRight"], account["auditsWrong"])


def test_lie_for_the_workers_costs_the_bond_once_it_comes_out(yard, task):
    """rules A8, D4, P4, W4, V5"""
    liar, honest = yard.seats(task)
    wealth = Wealth(yard)
    yard.audit_reveal(task, liar)
    yard.audit_reveal(task, honest)
    yard.challenge(task, liar.segment)

    yard.rule(task, liar.segment, [FOUND] * 3)

    assert wealth.gains() == add_up(
        *judged(yard.seats(task, liar.segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, yard.challenger, yard.requester),
        (liar.member, -BOND),
        (BURN_ADDRESS, BOND),
        (honest.member, FEE),
        (yard.requester, REWARD + FEE),
    )
    assert record(yard, liar.member) == (0, 1)
    assert record(yard, honest.member) == (1, 0)
    assert is_drained(yard, task)


def test_fraud_elsewhere_says_nothing_about_an_auditor(yard, task):
    """rules A8, D4: its own segment was not judged."""
    seats = yard.seats(task)
    segment = next(index for index in range(9) if index not in {seat.segment for seat in seats})
    for seat in seats:
        yard.audit_reveal(task, seat)
    wealth = Wealth(yard)
    yard.challenge(task, segment)

    yard.rule(task, segment, [FOUND] * 3)

    gains = wealth.gains()
    assert [gains[seat.member] for seat in seats] == [FEE, FEE]


def test_liar_that_never_reveals_loses_as_much(yard, task):
    """rules A8, P4, W4: keeping the lie back is no way out."""
    liar, honest = yard.seats(task)
    yard.audit_reveal(task, honest)
    yard.challenge(task, liar.segment)
    yard.warp(yard.market.panel(task, OWN_PANEL, 0)["revealBy"])
    wealth = Wealth(yard)

    yard.rule(task, liar.segment, [FOUND] * 3)

    assert wealth.gains()[liar.member] == -BOND
    assert record(yard, liar.member) == (0, 1)


def test_commitment_is_paid_if_the_task_fails_while_it_may_be_revealed(yard, task):
    """rule A8: nobody knows yet whether it was a lie."""
    liar, _ = yard.seats(task)
    wealth = Wealth(yard)
    yard.challenge(task, liar.segment)

    tx = yard.rule(task, liar.segment, [FOUND] * 3)

    assert tx.timestamp < yard.market.panel(task, OWN_PANEL, 0)["revealBy"]
    assert wealth.gains()[liar.member] == FEE


def test_lie_against_honest_workers_pays_them(yard):
    """rules D1, D4, P3: the workers have half of what the referees leave."""
    task = yard.window({0: OTHER})
    liar, _ = yard.seats(task)
    wealth = Wealth(yard)
    yard.audit_reveal(task, liar, OTHER)

    yard.rule(task, liar.segment, [yard.trace.after(liar.segment)] * 3)

    assert wealth.gains() == add_up(
        (liar.member, -BOND),
        *judged(yard.seats(task, liar.segment, 1), "TTT"),
        (yard.workers[0], 30 * 10**15),
        (yard.requester, 18 * 10**15),
        (BURN_ADDRESS, 12 * 10**15),
    )
    assert record(yard, liar.member) == (0, 1)


def test_guess_that_hits_a_fraud_gains_nothing(yard):
    """rules A8, D4, P3, V5: an answer without work is no lottery ticket."""
    task = yard.window({0: OTHER})
    guesser, honest = yard.seats(task)
    wealth = Wealth(yard)
    yard.audit_reveal(task, guesser, OTHER)
    yard.audit_reveal(task, honest)

    yard.rule(task, guesser.segment, [FOUND] * 3)

    assert wealth.gains() == add_up(
        *judged(yard.seats(task, guesser.segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, None, yard.requester),
        (guesser.member, -BOND),
        (BURN_ADDRESS, BOND),
        (honest.member, FEE),
        (yard.requester, REWARD + FEE),
    )
    assert is_drained(yard, task)


def test_one_colluding_referee_changes_nothing(yard, task):
    """rules D4, P4: and loses its bond."""
    liar, _ = yard.seats(task)
    yard.challenge(task, liar.segment)

    tx = yard.rule(task, liar.segment, [yard.trace.after(liar.segment), FOUND, FOUND])

    assert tx.events["TaskFailed"]["reason"] == Failure.FRAUD
    colluding = yard.seats(task, liar.segment, 1)[0]
    closed = [dict(each) for each in tx.events["SeatClosed"] if each["member"] == colluding.member]
    assert [each["slashed"] for each in closed] == [BOND]
