"""reveal: a committed claim is shown."""

import pytest

from tests.contracts.crew import lose
from tests.contracts.money import credits_of_all, gains
from tests.contracts.yard import digest, event, reverts, salt_of
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import Policy, TaskState

BLIND_POLICIES = pytest.mark.parametrize("policy", [Policy.REPLICATE, Policy.CONTEST])


def reveal(yard, task, slot, salt, by=None, claim=None):
    claim = claim or yard.claim
    return yard.market.reveal(
        task, slot, salt, claim.result, claim.root, {"from": by or yard.stranger}
    )


@BLIND_POLICIES
def test_claim_is_kept_and_told(yard, policy):
    """Rules T6, V6: storage holds its digest, the event all of it."""
    task = yard.revealing([yard.claim] * 3, policy)
    before = credits_of_all(yard)

    tx = yard.reveal(task, yard.workers[1])

    told = event(tx, "ClaimRevealed")
    assert (told["id"], told["slot"]) == (task, 1)
    assert [bytes(part) for part in told["claim"]] == list(yard.claim.as_tuple())
    assert bytes(yard.market.slot(task, 1)["digest"]) == yard.claim.digest
    assert yard.market.task(task)["revealed"] == 0b010
    assert yard.state(task) == TaskState.REVEALING
    assert gains(yard, before) == {}


@BLIND_POLICIES
def test_anyone_relays_a_reveal(yard, policy):
    """Rule T7: the commitment names the worker."""
    task = yard.revealing([yard.claim] * 2, policy)

    reveal(yard, task, 0, salt_of(yard.workers[0]), by=yard.stranger)

    assert yard.market.task(task)["revealed"] == 0b01


def test_last_entry_of_a_contest_calls_the_panel(yard):
    """Rules T6, A1: to be drawn by the hash of a block that does not exist yet."""
    task = yard.revealing([yard.claim] * 2, Policy.CONTEST)
    yard.reveal(task, yard.workers[0])

    tx = yard.reveal(task, yard.workers[1])

    told = event(tx, "TaskSubmitted")
    assert (told["drawBlock"], told["pool"]) == (tx.block_number + 1, len(yard.auditors))
    assert told["drawBy"] == tx.timestamp + yard.terms().audit_for
    assert yard.state(task) == TaskState.SUBMITTED


def test_last_replica_leaves_the_task_to_be_settled(yard):
    """Rule T9: whoever likes pays for the counting."""
    task = yard.revealing([yard.claim] * 2)
    yard.reveal(task, yard.workers[0])

    yard.reveal(task, yard.workers[1])

    assert yard.state(task) == TaskState.REVEALING
    assert yard.market.task(task)["revealed"] == 0b11


@pytest.mark.parametrize("offset", [-1, 0, 1])
@BLIND_POLICIES
def test_claims_are_shown_before_reveal_by(yard, policy, offset):
    """Rules C1, T6: refused from the deadline's second on."""
    task = yard.revealing([yard.claim] * 2, policy)
    reveal_by = yard.market.task(task)["deadline"]
    yard.at(reveal_by + offset)

    if offset < 0:
        yard.reveal(task, yard.workers[0])
        assert yard.market.task(task)["revealed"] == 0b01
    else:
        with reverts("MarketTooLate", task, reveal_by):
            yard.reveal(task, yard.workers[0])


@pytest.mark.parametrize("changed", ["salt", "result", "root"])
def test_another_claim_is_refused(yard, changed):
    """Rule T6: what is shown is what was committed."""
    task = yard.revealing([yard.claim] * 2)
    salt = digest("another salt") if changed == "salt" else salt_of(yard.workers[0])
    claim = Claim(
        digest("another result") if changed == "result" else yard.claim.result,
        digest("another root") if changed == "root" else yard.claim.root,
    )

    with reverts("MarketWrongReveal", task, 0):
        reveal(yard, task, 0, salt, claim=claim)


def test_slot_of_another_is_refused(yard):
    """Rule T6: a commitment is its worker's."""
    task = yard.revealing([yard.claim] * 2)

    with reverts("MarketWrongReveal", task, 1):
        reveal(yard, task, 1, salt_of(yard.workers[0]))


@pytest.mark.parametrize("slot", [1, 3, 32, 2**32, 2**256 - 1])
def test_slot_that_did_not_commit_is_refused(yard, slot):
    """Rule T6: absent, or no slot at all."""
    task = yard.revealing([yard.claim, None, yard.claim])

    with reverts("MarketWrongReveal", task, slot):
        reveal(yard, task, slot, salt_of(yard.workers[1]))


def test_evicted_slot_is_refused(yard):
    """Rules T5, T6: it has nothing to show."""
    task = yard.running(Policy.REPLICATE, slots=3)
    yard.commit(task, yard.workers[0])
    lose(yard, task, 1)
    yard.commit(task, yard.workers[2])

    with reverts("MarketWrongReveal", task, 1):
        reveal(yard, task, 1, salt_of(yard.workers[1]))


def test_claim_is_shown_once(yard):
    """Rule T6: a slot answers once."""
    task = yard.revealing([yard.claim] * 2)
    yard.reveal(task, yard.workers[0])

    with reverts("MarketAlreadyAnswered", task, 0):
        yard.reveal(task, yard.workers[0])


def test_nothing_is_shown_while_others_may_commit(yard):
    """Rule T6: or they could copy it."""
    task = yard.running(Policy.REPLICATE, slots=2)
    yard.commit(task, yard.workers[0])

    with reverts("MarketUnexpectedState", task, TaskState.RUNNING):
        yard.reveal(task, yard.workers[0])


def test_settled_task_takes_no_reveal(yard):
    """Rule T6: it has been paid for."""
    task = yard.revealing([yard.claim] * 3)
    yard.reveal(task, yard.workers[0])
    yard.reveal(task, yard.workers[1])
    yard.pass_deadline(task)
    yard.market.settle(task, {"from": yard.stranger})

    with reverts("MarketUnexpectedState", task, TaskState.SETTLED):
        yard.reveal(task, yard.workers[2])
