"""settleShares: the reward is split as the slots agreed when they submitted."""

import pytest

from tests.contracts.crew import full_crew, running_with
from tests.contracts.money import PENALTY, add_up, credits_of_all, gains, is_drained
from tests.contracts.panels import evaluate, members, open_audits, pass_audits
from tests.contracts.yard import FEE, REWARD, STAKE, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BPS, BURN_ADDRESS, OWN_PANEL, Failure, Policy, TaskState

HALVES = (5_000, 5_000)


def claim_of(yard, shares):
    return Claim.of(yard.claim.result, yard.claim.root, shares)


def submitted(yard, crew, shares, policy=Policy.AUDIT, dissenters=(), **changes):
    """A task whose slots have agreed on shares, but for the dissenters."""
    task = running_with(yard, crew, policy, shares_agreed=True, **changes)
    for slot, worker in enumerate(crew):
        result = digest("other") if slot in dissenters else yard.claim.result
        yard.market.submit(task, slot, result, yard.claim.root, list(shares), {"from": worker})
    return task


def verified(yard, crew, shares, **changes):
    """The same after its audits, and the auditors."""
    task = submitted(yard, crew, shares, **changes)
    seats = pass_audits(yard, task, claim_of(yard, shares))
    yard.pass_window(task)
    return task, members(seats)


def settle(yard, task, shares, claim=None):
    claim = claim or claim_of(yard, shares)
    return yard.market.settleShares(task, claim.as_tuple(), list(shares), {"from": yard.stranger})


SHARES = [
    (10_000,),
    (0,),
    (1,),
    (5_000, 3_000, 2_000),
    (10_000, 0, 0),
    (3_333, 3_333, 3_333),
    (1, 2, 3),
    (2_500, 2_500, 2_500, 2_500),
    (7_000, 1_000, 500, 0),
]


@pytest.mark.parametrize("shares", SHARES)
def test_each_slot_gets_its_share_of_the_whole(yard, shares):
    """Rule P1: what the shares leave goes back to the requester."""
    crew = yard.workers[: len(shares)]
    before = credits_of_all(yard)
    task, auditors = verified(yard, crew, shares)

    tx = settle(yard, task, shares)

    whole = REWARD * len(shares)
    parts = [whole * share // BPS for share in shares]
    assert gains(yard, before) == add_up(
        *zip(crew, parts, strict=True),
        *((auditor, FEE) for auditor in auditors),
        (yard.requester, -sum(parts) - 2 * FEE),
    )
    assert event(tx, "TaskSettled") == {
        "id": task,
        "lead": 0,
        "paid": sum(parts) + STAKE * len(shares),
        "refunded": whole - sum(parts),
    }
    assert is_drained(yard, task)


def test_parts_are_rounded_down(yard):
    """Rules P1, V5: the rest of a division goes back to the requester."""
    shares = (3_334, 3_333, 3_333)
    before = credits_of_all(yard)
    task, auditors = verified(yard, yard.workers[:3], shares, reward=7)

    settle(yard, task, shares)

    # Of 21: 7.0014, 6.9993 and 6.9993.
    assert gains(yard, before) == add_up(
        *zip(yard.workers[:3], (7, 6, 6), strict=True),
        *((auditor, FEE) for auditor in auditors),
        (yard.requester, -19 - 2 * FEE),
    )
    assert is_drained(yard, task)


def test_dissent_makes_the_parts_equal(yard):
    """Rules P1, P2, T8: a majority cannot vote the parts of the others to itself."""
    shares = (5_000, 3_000, 2_000)
    before = credits_of_all(yard)
    task, auditors = verified(yard, yard.workers[:3], shares, dissenters={1})

    settle(yard, task, shares)

    assert gains(yard, before) == add_up(
        (yard.workers[0], REWARD),
        (yard.workers[1], -PENALTY),
        (yard.workers[2], REWARD),
        *((auditor, FEE) for auditor in auditors),
        (yard.requester, -2 * REWARD - 2 * FEE),
        (BURN_ADDRESS, PENALTY),
    )
    assert is_drained(yard, task)


def test_share_of_an_absent_slot_goes_back_to_the_requester(yard):
    """Rules P1, P2: it has a share, and did not come."""
    before = credits_of_all(yard)
    task = yard.running(slots=2, shares_agreed=True)
    yard.submit(task, yard.workers[0], shares=HALVES)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    auditors = members(pass_audits(yard, task, claim_of(yard, HALVES)))
    yard.pass_window(task)

    settle(yard, task, HALVES)

    assert gains(yard, before) == add_up(
        (yard.workers[0], REWARD),
        (yard.workers[1], -PENALTY),
        *((auditor, FEE) for auditor in auditors),
        (yard.requester, -REWARD - 2 * FEE),
        (BURN_ADDRESS, PENALTY),
    )


def test_two_and_thirty_slots_share(yard):
    """Rule P1: each a different part."""
    crew = full_crew(yard)
    shares = tuple(10 * slot for slot in range(1, 33))
    before = credits_of_all(yard)
    task, auditors = verified(yard, crew, shares)

    settle(yard, task, shares)

    parts = [32 * REWARD * share // BPS for share in shares]
    assert gains(yard, before) == add_up(
        *zip(crew, parts, strict=True),
        *((auditor, FEE) for auditor in auditors),
        (yard.requester, -sum(parts) - 2 * FEE),
    )
    assert is_drained(yard, task)


@pytest.mark.parametrize(("score", "paid"), [(900, True), (899, False)])
def test_shares_count_under_score_if_the_target_is_reached(yard, score, paid):
    """Rules P1, P6: otherwise the stakes go back."""
    shares = (6_000, 3_000)
    before = credits_of_all(yard)
    task = submitted(yard, yard.workers[:2], shares, Policy.SCORE)
    evaluators = members(evaluate(yard, task, [[score]] * 3))

    tx = settle(yard, task, shares)

    parts = [2 * REWARD * share // BPS if paid else 0 for share in shares]
    assert gains(yard, before) == add_up(
        *zip(yard.workers[:2], parts, strict=True),
        *((evaluator, FEE) for evaluator in evaluators),
        (yard.requester, -sum(parts) - 3 * FEE),
    )
    if not paid:
        assert event(tx, "TaskFailed")["reason"] == Failure.BELOW_TARGET


def test_plain_settle_is_refused(yard):
    """Rule P1: it does not know the shares."""
    task, _ = verified(yard, yard.workers[:2], HALVES)

    with reverts("MarketWrongShares", task):
        yard.market.settle(task, {"from": yard.stranger})


def test_equal_parts_know_no_shares(yard):
    """Rule P1: nobody brings shares to a task that agreed on none."""
    task = yard.audited(slots=2)
    yard.pass_window(task)

    for shares in ((), HALVES):
        with reverts("MarketWrongShares", task):
            settle(yard, task, shares)


@pytest.mark.parametrize("shares", [(), (5_000,), (5_000, 5_000, 0), (9_000, 1_000)])
def test_other_shares_than_the_claim_names_are_refused(yard, shares):
    """Rule P1: they must have the digest that was submitted."""
    task, _ = verified(yard, yard.workers[:2], HALVES)

    with reverts("MarketWrongShares", task):
        settle(yard, task, shares, claim_of(yard, HALVES))


def test_claim_made_up_for_other_shares_is_refused(yard):
    """Rules P1, T8: only the lead claim counts."""
    task, _ = verified(yard, yard.workers[:2], HALVES)
    forged = claim_of(yard, (10_000, 0))

    with reverts("MarketWrongClaim", task, forged.digest):
        settle(yard, task, (10_000, 0), forged)


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_window_stays_open_to_its_end(yard, offset):
    """Rules C1, D8: refused before the deadline's second."""
    task = submitted(yard, yard.workers[:2], HALVES)
    pass_audits(yard, task, claim_of(yard, HALVES))
    challenge_by = yard.market.task(task)["deadline"]
    yard.at(challenge_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, challenge_by):
            settle(yard, task, HALVES)
    else:
        settle(yard, task, HALVES)
        assert yard.state(task) == TaskState.SETTLED


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_auditors_have_their_time_to_reveal(yard, offset):
    """Rules C1, D8: also where the window is shorter."""
    task = submitted(yard, yard.workers[:2], HALVES, challenge_for=0)
    open_audits(yard, task, claim=claim_of(yard, HALVES))
    reveal_by = yard.market.panel(task, OWN_PANEL, 0)["revealBy"]
    yard.at(reveal_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, reveal_by):
            settle(yard, task, HALVES)
    else:
        settle(yard, task, HALVES)
        assert yard.state(task) == TaskState.SETTLED


def test_task_is_not_settled_before_its_audits(yard):
    """Rule D8: the claim is right, and too early."""
    task = submitted(yard, yard.workers[:2], HALVES)

    with reverts("MarketUnexpectedState", task, TaskState.SUBMITTED):
        settle(yard, task, HALVES)


def test_settled_task_is_not_settled_again(yard):
    """Rule V5: nothing is paid twice."""
    task, _ = verified(yard, yard.workers[:2], HALVES)
    settle(yard, task, HALVES)

    with reverts("MarketUnexpectedState", task, TaskState.SETTLED):
        settle(yard, task, HALVES)
