"""commit: a slot's claim, hidden."""

import pytest

from tests.contracts.crew import commit_each, full_crew, lose, running_with
from tests.contracts.money import credits_of_all, gains, is_drained
from tests.contracts.yard import REWARD, STAKE, digest, event, reverts, salt_of
from trainyard.protocol.market import Failure, Policy, TaskState

BLIND_POLICIES = pytest.mark.parametrize("policy", [Policy.REPLICATE, Policy.CONTEST])
SECRET = digest("commitment")


def commit(yard, task, slot, by, commitment=SECRET):
    return yard.market.commit(task, slot, commitment, {"from": by})


def test_commitment_names_chain_market_task_and_worker(yard):
    """Rule T6: as the Python side computes it."""
    worker = yard.workers[0]
    secret = (salt_of(worker), digest("result"), digest("root"))

    onchain = yard.market.commitmentOf(7, worker, *secret)

    assert bytes(onchain) == yard.protocol.claim_commitment(7, worker.address, *secret)


@BLIND_POLICIES
def test_commitment_is_kept_and_told(yard, policy):
    """Rules T6, V6: nothing else is known of the claim."""
    task = yard.running(policy, slots=2)
    before = credits_of_all(yard)

    tx = commit(yard, task, 1, yard.workers[1])

    assert event(tx, "ClaimCommitted") == {
        "id": task,
        "slot": 1,
        "commitment": "0x" + SECRET.hex(),
    }
    assert bytes(yard.market.slot(task, 1)["digest"]) == SECRET
    assert yard.market.task(task)["answered"] == 0b10
    assert yard.state(task) == TaskState.RUNNING
    assert gains(yard, before) == {}


@BLIND_POLICIES
@pytest.mark.parametrize("slots", [1, 3, 4])
def test_last_commitment_starts_the_reveal(yard, policy, slots):
    """Rule T6: nothing is shown before all commitments are in."""
    task = yard.running(policy, slots=slots)
    for slot in range(slots - 1):
        commit(yard, task, slot, yard.workers[slot])

    tx = commit(yard, task, slots - 1, yard.workers[slots - 1])

    reveal_by = tx.timestamp + yard.terms().answer_for
    assert event(tx, "RevealStarted") == {"id": task, "revealBy": reveal_by}
    assert yard.state(task) == TaskState.REVEALING
    assert yard.market.task(task)["deadline"] == reveal_by


def test_two_and_thirty_commitments_start_the_reveal(yard):
    """Rule T6: the most that a task can have."""
    crew = full_crew(yard)
    task = running_with(yard, crew, Policy.REPLICATE, reward=1)

    commit_each(yard, task, crew, [yard.claim] * 32)

    assert yard.state(task) == TaskState.REVEALING
    assert yard.market.task(task)["answered"] == 2**32 - 1


@BLIND_POLICIES
def test_last_of_the_remaining_slots_starts_the_reveal(yard, policy):
    """Rule T5: an empty slot is not waited for."""
    task = yard.running(policy, slots=3)
    lose(yard, task, 1)
    commit(yard, task, 0, yard.workers[0])

    commit(yard, task, 2, yard.workers[2])

    assert yard.state(task) == TaskState.REVEALING


@BLIND_POLICIES
def test_too_few_slots_left_for_the_quorum_fail_at_once(yard, policy):
    """Rules T5, T10: who answered gets its stake back, the requester the escrow."""
    terms = yard.terms(policy, slots=3, quorum=2)
    task = yard.running(policy, slots=3, quorum=2)
    lose(yard, task, 0)
    lose(yard, task, 1)
    before = credits_of_all(yard)

    tx = commit(yard, task, 2, yard.workers[2])

    assert gains(yard, before) == {yard.workers[2]: STAKE, yard.requester: terms.escrow}
    assert is_drained(yard, task)
    assert event(tx, "TaskFailed") == {
        "id": task,
        "reason": Failure.NO_QUORUM,
        "refunded": 3 * REWARD + terms.audit_fee * terms.audits,
    }


@pytest.mark.parametrize("policy", [Policy.AUDIT, Policy.SCORE])
def test_open_policies_take_no_commitment(yard, policy):
    """Rule T6: there the slots share one claim."""
    task = yard.running(policy)

    with reverts("MarketWrongPolicy", task, policy):
        commit(yard, task, 0, yard.workers[0])


def test_zero_is_no_commitment(yard):
    """Rule T6: it could never be revealed."""
    task = yard.running(Policy.REPLICATE)

    with reverts("MarketZeroCommitment", task):
        commit(yard, task, 0, yard.workers[0], bytes(32))


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_commitments_come_before_train_by(yard, offset):
    """Rules C1, T6: refused from the deadline's second on."""
    task = yard.running(Policy.REPLICATE)
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        commit(yard, task, 0, yard.workers[0])
        assert yard.state(task) == TaskState.REVEALING
    else:
        with reverts("MarketTooLate", task, train_by):
            commit(yard, task, 0, yard.workers[0])


@pytest.mark.parametrize("slot", [0, 2, 32, 2**32, 2**256 - 1])
def test_only_the_holder_commits(yard, slot):
    """Rule T6: not for a peer, and not for a slot that does not exist."""
    task = yard.running(Policy.REPLICATE, slots=2)

    with reverts("MarketNotSlotHolder", task, slot, yard.workers[1]):
        commit(yard, task, slot, yard.workers[1])


def test_evicted_worker_does_not_commit(yard):
    """Rules T5, T6: it holds no slot any more."""
    task = yard.running(Policy.REPLICATE, slots=2)
    lose(yard, task, 0)

    with reverts("MarketNotSlotHolder", task, 0, yard.workers[0]):
        commit(yard, task, 0, yard.workers[0])


def test_slot_answers_once(yard):
    """Rule T6: a commitment is not changed after others were seen."""
    task = yard.running(Policy.REPLICATE, slots=2)
    commit(yard, task, 0, yard.workers[0])

    with reverts("MarketAlreadyAnswered", task, 0):
        commit(yard, task, 0, yard.workers[0], digest("second thoughts"))


def test_open_task_takes_no_commitment(yard):
    """Rule T6: its slots are not filled."""
    task = yard.post(Policy.REPLICATE, slots=2)
    yard.join(task, yard.workers[0])

    with reverts("MarketUnexpectedState", task, TaskState.OPEN):
        commit(yard, task, 0, yard.workers[0])


def test_revealing_task_takes_no_commitment(yard):
    """Rule T6: claims are being shown."""
    task = yard.revealing([yard.claim, None, yard.claim])

    with reverts("MarketUnexpectedState", task, TaskState.REVEALING):
        commit(yard, task, 1, yard.workers[1])
