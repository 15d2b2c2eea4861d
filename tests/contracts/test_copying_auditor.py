"""Hostile: members that copy instead of computing."""

import pytest

from tests.contracts.wealth import Wealth
from tests.contracts.yard import BOND, digest, reverts, salt_of
from trainyard.protocol.market import OWN_PANEL, TaskState

SEGMENT = 4


@pytest.fixture(scope="module")
def copied(staffed_yard):
    """Auditor 1 has committed to what auditor 0 committed to; the states are open."""
    yard = staffed_yard
    task = yard.auditing()
    victim, copier = yard.seats(task)
    yard.audit_commit(task, victim)
    commitment = yard.market.seat(task, OWN_PANEL, 0, victim.index)["answer"]
    yard.market.auditCommit(task, copier.index, commitment, {"from": copier.member})
    yard.open(task)
    return task


def test_copied_commitment_cannot_be_revealed(yard, copied):
    """rule A6: not even with the salt and the answer of its owner."""
    victim, copier = yard.seats(copied)
    yard.audit_reveal(copied, victim)

    with reverts("MarketWrongAnswer", copied, copier.index):
        yard.market.auditReveal(
            copied,
            copier.index,
            salt_of(victim.member),
            yard.trace.after(victim.segment),
            {"from": copier.member},
        )


def test_copied_commitment_cannot_be_revealed_as_what_was_opened(yard, copied):
    """rule A6: by now everyone knows the right answer."""
    _, copier = yard.seats(copied)

    with reverts("MarketWrongAnswer", copied, copier.index):
        yard.audit_reveal(copied, copier)


def test_copied_commitment_costs_the_bond(yard, copied):
    """rules A6, A8, P4"""
    victim, copier = yard.seats(copied)
    yard.audit_reveal(copied, victim)
    wealth = Wealth(yard)
    yard.pass_window(copied)

    yard.market.settle(copied, {"from": yard.stranger})

    assert wealth.gains()[copier.member] == -BOND


def test_who_waits_for_the_opening_comes_too_late(yard):
    """rules A6, C1: the workers open once all have committed, or may no more."""
    task = yard.auditing()
    waiting, other = yard.seats(task)
    yard.audit_commit(task, other)
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline)

    with reverts("MarketTooLate", task, deadline):
        yard.audit_commit(task, waiting)


def test_nobody_commits_to_what_was_opened(yard):
    """rule A6"""
    task = yard.auditing()
    waiting, other = yard.seats(task)
    yard.audit_commit(task, other)
    yard.pass_deadline(task)
    yard.open(task)

    with reverts("MarketUnexpectedState", task, TaskState.WINDOW):
        yard.audit_commit(task, waiting)


def test_commitment_of_another_task_cannot_be_revealed(yard):
    """rule A6: the same member, seat, salt and answer are of no use in another task."""
    first, second = yard.auditing(audits=1), yard.auditing(audits=1)
    [seat] = yard.seats(second)
    answer = yard.trace.after(seat.segment)
    replayed = yard.protocol.answer_commitment(
        first, seat.index, seat.member.address, salt_of(seat.member), answer
    )
    yard.market.auditCommit(second, seat.index, replayed, {"from": seat.member})
    yard.open(second)

    with reverts("MarketWrongAnswer", second, seat.index):
        yard.audit_reveal(second, seat)


def test_seen_reveal_gives_nothing_to_who_sends_it_first(yard):
    """rule A6: it reveals the seat of its owner, who is paid."""
    task = yard.window(audits=1, challenge_for=0)
    [seat] = yard.seats(task)
    wealth = Wealth(yard)

    yard.market.auditReveal(
        task,
        seat.index,
        salt_of(seat.member),
        yard.trace.after(seat.segment),
        {"from": yard.stranger},
    )
    yard.market.settle(task, {"from": yard.stranger})

    assert yard.stranger.address not in wealth.gains()
    assert wealth.gains()[seat.member] == yard.market.task(task)["auditFee"]


def test_referee_cannot_reveal_a_copied_commitment(yard):
    """rules A6, D4"""
    task = yard.auditing(audits=0)
    yard.challenge(task, SEGMENT)
    victim, copier, third = yard.draw_referees(task, SEGMENT)
    found = digest("what referees found")
    yard.referee_commit(task, SEGMENT, victim, found)
    commitment = yard.market.seat(task, SEGMENT, 1, victim.index)["answer"]
    yard.market.refereeCommit(task, SEGMENT, copier.index, commitment, {"from": copier.member})
    yard.referee_commit(task, SEGMENT, third, found)
    yard.referee_reveal(task, SEGMENT, victim, found)

    with reverts("MarketWrongAnswer", task, copier.index):
        yard.market.refereeReveal(
            task, SEGMENT, copier.index, salt_of(victim.member), found, {"from": copier.member}
        )
