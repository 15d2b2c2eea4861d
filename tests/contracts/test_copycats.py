"""Hostile: who copies the commitments and reveals of others gains nothing and blocks nobody."""

import pytest

from tests.contracts.crew import reveal_each, running_with
from tests.contracts.money import PENALTY, add_up, credits_of_all, gains, is_drained
from tests.contracts.panels import evaluate, members
from tests.contracts.wealth import Wealth
from tests.contracts.yard import BOND, FEE, REWARD, digest, reverts, salt_of
from trainyard.protocol.commitments import Claim, scores_answer
from trainyard.protocol.market import BURN_ADDRESS, Policy, SeatState, TaskState

BLIND_POLICIES = pytest.mark.parametrize("policy", [Policy.REPLICATE, Policy.CONTEST])


def commitment_of(yard, task, worker, claim=None):
    claim = claim or yard.claim
    return yard.protocol.claim_commitment(
        task, worker.address, salt_of(worker), claim.result, claim.root
    )


def copied(yard, policy, slots=3):
    """A task whose slot 0 was first in committing what slot 1 committed after it."""
    crew = yard.workers[:slots]
    task = running_with(yard, crew, policy)
    stolen = commitment_of(yard, task, crew[1])
    yard.market.commit(task, 0, stolen, {"from": crew[0]})
    yard.market.commit(task, 1, stolen, {"from": crew[1]})
    for worker in crew[2:]:
        yard.commit(task, worker)
    return task


# Slots


@BLIND_POLICIES
def test_copied_commitment_does_not_stop_its_owner(yard, policy):
    """Rule T6: the owner commits and reveals as if there were no copy."""
    task = copied(yard, policy)

    yard.reveal(task, yard.workers[1])

    assert yard.market.task(task)["revealed"] == 0b010


@BLIND_POLICIES
def test_copied_commitment_cannot_be_revealed(yard, policy):
    """Rule T6: not with the owner's salt either, which its reveal has made public."""
    task = copied(yard, policy)
    yard.reveal(task, yard.workers[1])

    with reverts("MarketWrongReveal", task, 0):
        yard.market.reveal(
            task,
            0,
            salt_of(yard.workers[1]),
            yard.claim.result,
            yard.claim.root,
            {"from": yard.workers[0]},
        )


def test_copycat_of_a_replica_pays_and_the_others_are_paid(yard):
    """Rules T6, P2, P4: it is as if the copycat had not come."""
    before = credits_of_all(yard)
    task = copied(yard, Policy.REPLICATE)
    reveal_each(yard, task, yard.workers[:3], [None, yard.claim, yard.claim])
    yard.pass_deadline(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        (yard.workers[0], -PENALTY),
        (yard.workers[1], REWARD),
        (yard.workers[2], REWARD),
        (yard.requester, -2 * REWARD),
        (BURN_ADDRESS, PENALTY),
    )


def test_copycat_of_an_entry_pays_and_the_best_wins(yard):
    """Rules T6, P2, P5: the copy is no entry, and its lower slot is no advantage."""
    before = credits_of_all(yard)
    task = copied(yard, Policy.CONTEST, slots=2)
    yard.reveal(task, yard.workers[1])
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    seats = evaluate(yard, task, [[990, 990]] * 3)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        (yard.workers[0], -PENALTY),
        (yard.workers[1], 2 * REWARD),
        *((evaluator, FEE) for evaluator in members(seats)),
        (yard.requester, -2 * REWARD - 3 * FEE),
        (BURN_ADDRESS, PENALTY),
    )


def test_revealed_claim_cannot_be_taken_over(yard):
    """Rule T6: who committed to something else is bound by it, though the winner is public now."""
    junk = Claim.of(digest("junk"), digest("junk root"))
    task = yard.revealing([junk, yard.claim, yard.claim])
    yard.reveal(task, yard.workers[1])

    with reverts("MarketWrongReveal", task, 0):
        yard.reveal(task, yard.workers[0], yard.claim)


def test_own_commitment_to_another_task_is_no_use(yard):
    """Rule T6: a commitment is bound to its task."""
    first = running_with(yard, yard.workers[:1], Policy.REPLICATE)
    second = running_with(yard, yard.workers[:1], Policy.REPLICATE)
    worker = yard.workers[0]
    yard.market.commit(second, 0, commitment_of(yard, first, worker), {"from": worker})

    with reverts("MarketWrongReveal", second, 0):
        yard.reveal(second, worker)


def test_commitment_to_another_market_is_no_use(yard):
    """Rule T6: a commitment is bound to its market and its chain."""
    task = running_with(yard, yard.workers[:1], Policy.REPLICATE)
    worker = yard.workers[0]
    elsewhere = type(yard.protocol)(yard.protocol.chain_id + 1, yard.protocol.address)
    foreign = elsewhere.claim_commitment(
        task, worker.address, salt_of(worker), yard.claim.result, yard.claim.root
    )
    yard.market.commit(task, 0, foreign, {"from": worker})

    with reverts("MarketWrongReveal", task, 0):
        yard.reveal(task, worker)


def test_outsider_cannot_commit_what_it_saw(yard):
    """Rule T6: it holds no slot, neither its own nor the owner's."""
    task = yard.running(Policy.REPLICATE, slots=2)
    stolen = commitment_of(yard, task, yard.workers[0])

    with reverts("MarketNotSlotHolder", task, 0, yard.stranger):
        yard.market.commit(task, 0, stolen, {"from": yard.stranger})


def test_reveal_sent_ahead_of_its_owner_pays_the_owner(yard):
    """Rules T7, P1: the front-runner only paid the gas."""
    before = credits_of_all(yard)
    task = yard.revealing([yard.claim])
    worker = yard.workers[0]
    yard.market.reveal(
        task, 0, salt_of(worker), yard.claim.result, yard.claim.root, {"from": yard.challenger}
    )
    with reverts("MarketAlreadyAnswered", task, 0):
        yard.reveal(task, worker)

    yard.market.settle(task, {"from": yard.challenger})

    assert gains(yard, before) == {worker: REWARD, yard.requester: -REWARD}


# Seats


def stolen_answer(yard, task, seat):
    """What the holder of `seat` commits to: the truth."""
    return yard.protocol.answer_commitment(
        task,
        seat.index,
        seat.member.address,
        salt_of(seat.member),
        yard.trace.after(seat.segment),
    )


def copied_audit(yard):
    """An opened task whose second auditor was first in committing what the first one then did."""
    task = yard.auditing()
    owner, copycat = yard.seats(task)
    stolen = stolen_answer(yard, task, owner)
    yard.market.auditCommit(task, copycat.index, stolen, {"from": copycat.member})
    yard.market.auditCommit(task, owner.index, stolen, {"from": owner.member})
    yard.open(task)
    return task, owner, copycat


def test_copied_audit_cannot_be_revealed(yard):
    """Rule A6: a commitment is bound to its seat and member."""
    task, owner, copycat = copied_audit(yard)
    yard.audit_reveal(task, owner)
    answer = yard.trace.after(owner.segment)

    with reverts("MarketWrongAnswer", task, copycat.index):
        yard.market.auditReveal(
            task, copycat.index, salt_of(owner.member), answer, {"from": copycat.member}
        )


def test_copycat_among_auditors_pays_and_the_others_are_paid(yard):
    """Rules A6, A8: what it committed to it cannot show, which costs it the bond."""
    wealth = Wealth(yard)
    task, owner, copycat = copied_audit(yard)
    yard.audit_reveal(task, owner)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.workers[0], REWARD),
        (owner.member, FEE),
        (copycat.member, -BOND),
        (yard.requester, -REWARD - FEE),
        (BURN_ADDRESS, BOND),
    )
    assert is_drained(yard, task)


def test_outsider_cannot_answer_for_an_auditor(yard):
    """Rule A6: only who was drawn commits, each for its own seat."""
    task = yard.auditing()
    owner, other = yard.seats(task)
    stolen = stolen_answer(yard, task, owner)

    for caller in (yard.stranger, other.member):
        with reverts("MarketNotSeatHolder", task, owner.index, caller):
            yard.market.auditCommit(task, owner.index, stolen, {"from": caller})


def test_audit_sent_ahead_of_its_owner_pays_the_owner(yard):
    """Rules A6, A8: the front-runner only paid the gas."""
    task = yard.window()
    owner, other = yard.seats(task)
    before = credits_of_all(yard)
    answer = yard.trace.after(owner.segment)
    yard.market.auditReveal(
        task, owner.index, salt_of(owner.member), answer, {"from": yard.challenger}
    )
    with reverts("MarketUnexpectedSeat", task, owner.index, SeatState.REVEALED):
        yard.audit_reveal(task, owner)
    yard.audit_reveal(task, other)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.challenger})

    gained = gains(yard, before)
    assert gained[owner.member.address] == FEE
    assert yard.challenger.address not in gained


def test_copycat_among_evaluators_pays_and_the_others_are_paid(yard):
    """Rules A6, A8, P6: a copied score is no score."""
    wealth = Wealth(yard)
    task = yard.auditing(Policy.SCORE)
    owner, copycat, third = yard.seats(task)
    stolen = yard.protocol.answer_commitment(
        task, owner.index, owner.member.address, salt_of(owner.member), scores_answer([950])
    )
    yard.market.auditCommit(task, copycat.index, stolen, {"from": copycat.member})
    yard.market.auditCommit(task, owner.index, stolen, {"from": owner.member})
    yard.score_commit(task, third, [950])
    yard.score_reveal(task, owner, [950])
    yard.score_reveal(task, third, [950])
    with reverts("MarketWrongAnswer", task, copycat.index):
        yard.market.scoreReveal(
            task, copycat.index, salt_of(owner.member), [950], {"from": copycat.member}
        )
    yard.pass_deadline(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.workers[0], REWARD),
        (owner.member, FEE),
        (third.member, FEE),
        (copycat.member, -BOND),
        (yard.requester, -REWARD - 2 * FEE),
        (BURN_ADDRESS, BOND),
    )


def test_copycat_among_referees_has_no_vote(yard):
    """Rules A6, D4: the two who recomputed the segment decide, and only they are paid."""
    task = yard.audited()
    yard.challenge(task, 3)
    owner, copycat, third = yard.draw_referees(task, 3)
    truth = yard.trace.after(3)
    stolen = yard.protocol.answer_commitment(
        task, owner.index, owner.member.address, salt_of(owner.member), truth, segment=3
    )
    yard.market.refereeCommit(task, 3, copycat.index, stolen, {"from": copycat.member})
    yard.market.refereeCommit(task, 3, owner.index, stolen, {"from": owner.member})
    yard.referee_commit(task, 3, third, truth)
    yard.referee_reveal(task, 3, owner, truth)
    yard.referee_reveal(task, 3, third, truth)
    with reverts("MarketWrongAnswer", task, copycat.index):
        yard.market.refereeReveal(
            task, 3, copycat.index, salt_of(owner.member), truth, {"from": copycat.member}
        )
    yard.pass_dispute_deadline(task, 3)
    wealth = Wealth(yard)

    yard.market.resolve(task, 3, {"from": yard.stranger})

    gained = wealth.gains()
    assert [gained[seat.member.address] for seat in (owner, copycat, third)] == [
        FEE,
        -BOND,
        FEE,
    ]
    assert yard.state(task) == TaskState.WINDOW
