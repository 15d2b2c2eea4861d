"""Hostile: a requester that works on its own task, openly or through other accounts.

All its accounts together are the coalition; what counts is what they have in the end.
"""

import pytest

from tests.contracts.crew import commit_each, lose, reveal_each, running_with
from tests.contracts.lot import opt_in, opt_out
from tests.contracts.money import PENALTY, finder_part, is_drained, requester_part
from tests.contracts.wealth import Wealth, burned_part
from tests.contracts.yard import (
    AUDITOR_BOND,
    BOND,
    FEE,
    REWARD,
    STAKE,
    digest,
    reverts,
    trace_of,
)
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, DisputeState, Policy, TaskState

JUNK = Claim.of(digest("junk"), digest("junk root"))
FORGED = trace_of("forged")
FORGED_CLAIM = Claim.of(digest("forged result"), FORGED.root)


def total(gained: dict[str, int], *accounts) -> int:
    return sum(gained.get(str(account), 0) for account in accounts)


# Openly


@pytest.mark.parametrize("policy", list(Policy))
def test_requester_is_refused_on_its_own_task(yard, policy):
    """Rule T3: whatever the policy."""
    task = yard.post(policy, slots=2)
    yard.register(yard.requester)

    with reverts("MarketConflict", task, yard.requester):
        yard.join(task, yard.requester)


def test_requester_is_refused_as_a_replacement(yard):
    """Rules T3, T5: it cannot evict a worker and take its place."""
    task = yard.running(slots=2)
    yard.register(yard.requester)
    lose(yard, task, 0, by=yard.requester)

    with reverts("MarketConflict", task, yard.requester):
        yard.join(task, yard.requester)


# Outvoting


def test_outvoting_an_honest_worker_gains_nothing(yard):
    """Rules P4, T9: the coalition pays itself, and the victim's penalty burns."""
    honest, *puppets = yard.workers[:3]
    wealth = Wealth(yard)
    task = running_with(yard, [honest, *puppets], Policy.REPLICATE)
    claims = [yard.claim, JUNK, JUNK]
    commit_each(yard, task, [honest, *puppets], claims)
    reveal_each(yard, task, [honest, *puppets], claims)

    yard.market.settle(task, {"from": yard.requester})

    gained = wealth.gains()
    assert total(gained, yard.requester, *puppets) == 0
    assert gained[honest.address] == -PENALTY
    assert gained[BURN_ADDRESS] == PENALTY
    assert is_drained(yard, task)


def test_blocking_the_quorum_by_dissent_gains_nothing(yard):
    """Rules T10, P4: everyone is where it was."""
    honest, puppet = yard.workers[:2]
    wealth = Wealth(yard)
    task = running_with(yard, [honest, puppet], Policy.REPLICATE)
    commit_each(yard, task, [honest, puppet], [yard.claim, JUNK])
    reveal_each(yard, task, [honest, puppet], [yard.claim, JUNK])

    yard.market.settle(task, {"from": yard.requester})

    assert yard.state(task) == TaskState.FAILED
    assert wealth.gains() == {}


def test_blocking_the_quorum_by_silence_costs_the_silent(yard):
    """Rules T10, P2, P4: the fault part of each puppet's stake burns."""
    honest, *puppets = yard.workers[:3]
    wealth = Wealth(yard)
    task = running_with(yard, [honest, *puppets], Policy.REPLICATE)
    commit_each(yard, task, [honest, *puppets], [yard.claim, JUNK, JUNK])
    yard.reveal(task, honest)
    yard.pass_deadline(task)

    yard.market.settle(task, {"from": yard.requester})

    gained = wealth.gains()
    assert total(gained, yard.requester, *puppets) == -2 * PENALTY
    assert total(gained, honest) == 0
    assert gained[BURN_ADDRESS] == 2 * PENALTY


def test_dissenting_among_peers_costs_the_dissenter(yard):
    """Rules T8, P2, P4: a puppet that disagrees with a good claim only burns money."""
    honest, puppet = yard.workers[:2]
    wealth = Wealth(yard)
    task = running_with(yard, [honest, puppet], Policy.AUDIT, audits=0)
    yard.submit(task, honest)
    yard.submit(task, puppet, claim=JUNK)
    yard.market.draw(task, {"from": yard.requester})
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.requester})

    gained = wealth.gains()
    assert total(gained, yard.requester, puppet) == -REWARD - PENALTY
    assert total(gained, honest) == REWARD
    assert gained[BURN_ADDRESS] == PENALTY


# Evicting


@pytest.mark.parametrize("policy", list(Policy))
def test_evicting_an_honest_worker_gains_nothing(yard, policy):
    """Rules T4, P4: not even with a puppet that evicts and takes the place."""
    honest, peer, puppet = yard.workers[:3]
    wealth = Wealth(yard)
    task = running_with(yard, [honest, peer], policy)
    lose(yard, task, 0, by=puppet)
    yard.join(task, puppet)
    yard.pass_deadline(task)

    yard.market.expire(task, {"from": yard.requester})

    gained = wealth.gains()
    assert total(gained, yard.requester, puppet) == -PENALTY
    assert total(gained, honest) == -PENALTY


def test_evicting_a_puppet_burns_the_coalitions_money(yard):
    """Rules T4, P4: asking oneself to no answer is a loss."""
    puppet = yard.workers[0]
    wealth = Wealth(yard)
    task = running_with(yard, [puppet], Policy.AUDIT)
    lose(yard, task, 0, by=yard.requester)
    yard.pass_deadline(task)

    yard.market.expire(task, {"from": yard.requester})

    gained = wealth.gains()
    assert total(gained, yard.requester, puppet) == -PENALTY == -gained[BURN_ADDRESS]
    assert is_drained(yard, task)


# Auditing oneself


@pytest.fixture
def own_auditor(yard):
    """An auditor of the coalition, and nobody else may be drawn yet."""
    opt_out(yard)
    yard.register(yard.challenger, bond=AUDITOR_BOND)
    return yard.challenger


def test_confirming_ones_own_forgery_gains_nothing(yard, own_auditor):
    """Rules A8, P1: fee and reward only go round."""
    puppet = yard.workers[0]
    wealth = Wealth(yard)
    task = running_with(yard, [puppet], Policy.AUDIT, audits=1)
    seat = forge(yard, task, puppet)
    yard.audit_commit(task, seat, FORGED.after(seat.segment))
    open_forgery(yard, task, seat)
    yard.audit_reveal(task, seat, FORGED.after(seat.segment))
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.requester})

    assert yard.state(task) == TaskState.SETTLED
    assert total(wealth.gains(), yard.requester, puppet, own_auditor) == 0


def test_accusing_oneself_costs_the_referees_and_the_fire(yard, own_auditor):
    """Rules P3, D4: finder's and requester's parts are less than the stake."""
    puppet = yard.workers[0]
    wealth = Wealth(yard)
    task = running_with(yard, [puppet], Policy.AUDIT, audits=1)
    seat = forge(yard, task, puppet)
    truth = yard.trace.after(seat.segment)
    yard.audit_commit(task, seat, truth)
    open_forgery(yard, task, seat)
    opt_in(yard, *yard.auditors)
    yard.audit_reveal(task, seat, truth)

    yard.rule(task, seat.segment, [truth] * 3)

    gained = wealth.gains()
    slashed = STAKE - 3 * FEE
    assert yard.state(task) == TaskState.FAILED
    assert gained[puppet.address] == -STAKE
    assert gained[own_auditor.address] == finder_part(slashed) + FEE
    assert gained[yard.requester.address] == requester_part(slashed) - FEE
    assert gained[BURN_ADDRESS] == burned_part(slashed) > 0
    assert total(gained, yard.requester, puppet, own_auditor) == -3 * FEE - burned_part(slashed)
    assert is_drained(yard, task)


def test_challenging_ones_own_forgery_costs_the_referees_and_the_fire(yard):
    """Rules P3, D2, D4: without an auditor it is the same."""
    puppet, segment = yard.workers[0], 4
    wealth = Wealth(yard)
    task = running_with(yard, [puppet], Policy.AUDIT, audits=0)
    yard.submit(task, puppet, claim=FORGED_CLAIM)
    yard.market.draw(task, {"from": yard.requester})
    challenge_forgery(yard, task, segment)

    yard.rule(task, segment, [yard.trace.after(segment)] * 3)

    gained = wealth.gains()
    slashed = STAKE - 3 * FEE
    coalition = (yard.requester, puppet, yard.challenger)
    assert total(gained, *coalition) == -3 * FEE - burned_part(slashed)
    assert is_drained(yard, task)


def test_spoiling_a_joint_claim_and_accusing_it_is_a_loss(yard):
    """Rule P3: an honest peer that signed it loses its stake, but to the fire."""
    honest, puppet, segment = yard.workers[0], yard.workers[1], 4
    wealth = Wealth(yard)
    task = running_with(yard, [honest, puppet], Policy.AUDIT, audits=0)
    yard.submit(task, honest, puppet, claim=FORGED_CLAIM)
    yard.market.draw(task, {"from": yard.requester})
    challenge_forgery(yard, task, segment)

    yard.rule(task, segment, [yard.trace.after(segment)] * 3)

    gained = wealth.gains()
    coalition = (yard.requester, puppet, yard.challenger)
    assert total(gained, *coalition) == -burned_part(STAKE) < 0
    assert gained[honest.address] == -STAKE
    assert gained[BURN_ADDRESS] == STAKE - 3 * FEE + burned_part(STAKE)
    assert is_drained(yard, task)


def test_withholding_from_oneself_burns_the_coalitions_money(yard):
    """Rules A7, P3: where nobody found the wrong, the finder's part burns too."""
    puppet = yard.workers[0]
    wealth = Wealth(yard)
    task = running_with(yard, [puppet], Policy.AUDIT)
    yard.submit(task, puppet)
    yard.draw(task)
    for seat in yard.seats(task):
        yard.audit_commit(task, seat)
    yard.pass_deadline(task)

    yard.market.expire(task, {"from": yard.requester})

    burned = STAKE - requester_part(STAKE)
    assert total(wealth.gains(), yard.requester, puppet) == -burned - 2 * FEE


def test_accusing_an_honest_worker_costs_more_than_comes_back(yard):
    """Rules P3, D4: the requester's part of its puppet's bond is a part of its own money."""
    honest, segment = yard.workers[0], 4
    wealth = Wealth(yard)
    task = running_with(yard, [honest], Policy.AUDIT, audits=0)
    yard.submit(task, honest)
    yard.market.draw(task, {"from": yard.requester})
    yard.challenge(task, segment, by=yard.challenger)
    yard.rule(task, segment, [yard.trace.after(segment)] * 3)
    assert yard.market.dispute(task, segment)["state"] == DisputeState.REJECTED
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.requester})

    gained = wealth.gains()
    slashed = BOND - 3 * FEE
    assert gained[honest.address] == REWARD + finder_part(slashed)
    assert gained[yard.challenger.address] == -BOND
    assert gained[yard.requester.address] == requester_part(slashed) - REWARD
    assert total(gained, yard.requester, yard.challenger) == (
        -REWARD - 3 * FEE - finder_part(slashed) - burned_part(slashed)
    )
    assert is_drained(yard, task)


def forge(yard, task, puppet):
    """The puppet claims states that it never trained; returns the only auditor's seat."""
    yard.submit(task, puppet, claim=FORGED_CLAIM)
    yard.draw(task)
    [seat] = yard.seats(task)
    return seat


def open_forgery(yard, task, seat):
    yard.market.open(
        task,
        FORGED_CLAIM.as_tuple(),
        [FORGED.after(seat.segment)],
        [FORGED.proof_after(seat.segment)],
        {"from": yard.stranger},
    )


def challenge_forgery(yard, task, segment):
    yard.market.challenge(
        task,
        segment,
        FORGED_CLAIM.as_tuple(),
        FORGED.after(segment),
        FORGED.proof_after(segment),
        {"from": yard.challenger},
    )
