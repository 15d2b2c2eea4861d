"""submit: a slot's claim in the open, and which claim leads."""

import pytest

from tests.contracts.crew import full_crew, lose, running_with, submit_each
from tests.contracts.money import credits_of_all, gains, is_drained
from tests.contracts.yard import FEE, REWARD, STAKE, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import Failure, Policy, TaskState

OPEN_POLICIES = pytest.mark.parametrize("policy", [Policy.AUDIT, Policy.SCORE])
CLAIMS = {name: Claim.of(digest(f"result {name}"), digest(f"root {name}")) for name in "abcd"}


def claims_of(names):
    """Claims by their letters; a dot keeps silent."""
    return [CLAIMS.get(name) for name in names]


def submit(yard, task, slot, by, shares=()):
    claim = yard.claim
    return yard.market.submit(task, slot, claim.result, claim.root, list(shares), {"from": by})


@OPEN_POLICIES
def test_claim_is_kept_and_told(yard, policy):
    """Rules T6, V6: storage holds its digest, the event all of it."""
    task = yard.running(policy, slots=2)
    before = credits_of_all(yard)

    tx = submit(yard, task, 1, yard.workers[1])

    told = event(tx, "ClaimSubmitted")
    assert (told["id"], told["slot"], told["shares"]) == (task, 1, ())
    assert [bytes(part) for part in told["claim"]] == list(yard.claim.as_tuple())
    assert bytes(yard.market.slot(task, 1)["digest"]) == yard.claim.digest
    assert yard.market.task(task)["answered"] == 0b10
    assert yard.state(task) == TaskState.RUNNING
    assert gains(yard, before) == {}


@OPEN_POLICIES
@pytest.mark.parametrize("slots", [1, 3, 4])
def test_last_claim_calls_the_panel(yard, policy, slots):
    """Rules T8, A1: to be drawn by the hash of a block that does not exist yet."""
    task = yard.running(policy, slots=slots)
    yard.submit(task, *yard.workers[: slots - 1])

    tx = submit(yard, task, slots - 1, yard.workers[slots - 1])

    draw_by = tx.timestamp + yard.terms().audit_for
    assert event(tx, "TaskSubmitted") == {
        "id": task,
        "lead": 0,
        "drawBlock": tx.block_number + 1,
        "pool": len(yard.auditors),
        "drawBy": draw_by,
    }
    assert yard.state(task) == TaskState.SUBMITTED
    assert yard.market.task(task)["deadline"] == draw_by


LEADS = [
    ("a", 1, 0),
    ("aaa", 2, 0),
    ("baa", 2, 1),
    ("abc", 1, 0),
    ("abab", 2, 0),
    ("abba", 2, 0),
    ("abbc", 2, 1),
    ("bcaa", 2, 2),
    ("abbb", 2, 1),
]


@OPEN_POLICIES
@pytest.mark.parametrize(("names", "quorum", "lead"), LEADS)
def test_largest_group_leads(yard, policy, names, quorum, lead):
    """Rule T8: of equal groups the one with the lowest slot."""
    task = yard.running(policy, slots=len(names), quorum=quorum)

    submit_each(yard, task, yard.workers[: len(names)], claims_of(names))

    assert yard.state(task) == TaskState.SUBMITTED
    assert yard.market.task(task)["lead"] == lead


def test_largest_group_of_two_and_thirty_leads(yard):
    """Rule T8: all slots are counted."""
    crew = full_crew(yard)
    task = running_with(yard, crew, Policy.AUDIT, reward=1, quorum=12)

    submit_each(yard, task, crew, claims_of("abc" * 6 + "bc" * 6 + "cc"))

    assert yard.state(task) == TaskState.SUBMITTED
    assert yard.market.task(task)["lead"] == 2


@OPEN_POLICIES
@pytest.mark.parametrize(("names", "quorum"), [("abc", 2), ("abcd", 2)])
def test_missed_quorum_fails_at_once(yard, policy, names, quorum):
    """Rules T8, T10: everybody who answered gets its stake back, the requester the escrow."""
    before = credits_of_all(yard)
    task = yard.running(policy, slots=len(names), quorum=quorum)

    submit_each(yard, task, yard.workers[: len(names)], claims_of(names))

    assert gains(yard, before) == {}
    assert is_drained(yard, task)
    assert yard.state(task) == TaskState.FAILED


def test_failure_is_told(yard):
    """Rules T10, V6: with its reason and the refund."""
    task = yard.running(slots=3, quorum=2)
    submit_each(yard, task, yard.workers[:3], claims_of("ab."))

    tx = submit(yard, task, 2, yard.workers[2])

    assert event(tx, "TaskFailed") == {
        "id": task,
        "reason": Failure.NO_QUORUM,
        "refunded": 3 * REWARD + 2 * FEE,
    }


def test_last_of_the_remaining_slots_moves_the_task_on(yard):
    """Rule T5: an empty slot is not waited for."""
    task = yard.running(slots=3)
    yard.submit(task, yard.workers[0])
    lose(yard, task, 1)

    submit(yard, task, 2, yard.workers[2])

    assert yard.state(task) == TaskState.SUBMITTED


def test_evicted_slots_count_against_the_quorum(yard):
    """Rules T5, T10: two of three were wanted, and only one is left to answer."""
    task = yard.running(slots=3, quorum=2)
    lose(yard, task, 0)
    lose(yard, task, 1)
    before = credits_of_all(yard)

    submit(yard, task, 2, yard.workers[2])

    assert yard.state(task) == TaskState.FAILED
    assert gains(yard, before) == {yard.workers[2]: STAKE, yard.requester: 3 * REWARD + 2 * FEE}


@pytest.mark.parametrize("policy", [Policy.REPLICATE, Policy.CONTEST])
def test_blind_policies_take_no_open_claim(yard, policy):
    """Rule T6: there each slot works alone, and nobody may see its claim."""
    task = yard.running(policy)

    with reverts("MarketWrongPolicy", task, policy):
        submit(yard, task, 0, yard.workers[0])


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_claims_come_before_train_by(yard, offset):
    """Rules C1, T6: refused from the deadline's second on."""
    task = yard.running()
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        submit(yard, task, 0, yard.workers[0])
        assert yard.state(task) == TaskState.SUBMITTED
    else:
        with reverts("MarketTooLate", task, train_by):
            submit(yard, task, 0, yard.workers[0])


@pytest.mark.parametrize("slot", [0, 2, 32, 2**32, 2**256 - 1])
def test_only_the_holder_submits(yard, slot):
    """Rule T6: not for a peer, and not for a slot that does not exist."""
    task = yard.running(slots=2)

    with reverts("MarketNotSlotHolder", task, slot, yard.workers[1]):
        submit(yard, task, slot, yard.workers[1])


def test_evicted_worker_does_not_submit(yard):
    """Rules T5, T6: it holds no slot any more."""
    task = yard.running(slots=2)
    lose(yard, task, 0)

    with reverts("MarketNotSlotHolder", task, 0, yard.workers[0]):
        submit(yard, task, 0, yard.workers[0])


def test_slot_answers_once(yard):
    """Rule T6: a claim is not taken back."""
    task = yard.running(slots=2)
    submit(yard, task, 0, yard.workers[0])

    with reverts("MarketAlreadyAnswered", task, 0):
        submit(yard, task, 0, yard.workers[0])


def test_open_task_takes_no_claim(yard):
    """Rule T6: its slots are not filled."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])

    with reverts("MarketUnexpectedState", task, TaskState.OPEN):
        submit(yard, task, 0, yard.workers[0])


SHARES = [(5_000, 5_000), (10_000, 0), (0, 0), (3_333, 3_333)]


@OPEN_POLICIES
@pytest.mark.parametrize("shares", SHARES)
def test_agreed_shares_are_part_of_the_claim(yard, policy, shares):
    """Rules P1, T8: they may name less than the whole reward."""
    task = yard.running(policy, slots=2, shares_agreed=True)
    submit(yard, task, 0, yard.workers[0], shares)

    tx = submit(yard, task, 1, yard.workers[1], shares)

    claim = Claim.of(yard.claim.result, yard.claim.root, shares)
    assert event(tx, "ClaimSubmitted")["shares"] == shares
    assert bytes(yard.market.slot(task, 1)["digest"]) == claim.digest
    assert yard.state(task) == TaskState.SUBMITTED


def test_other_shares_are_another_claim(yard):
    """Rules P1, T8: who wants other shares dissents."""
    task = yard.running(slots=3, quorum=2, shares_agreed=True)
    submit(yard, task, 0, yard.workers[0], (8_000, 1_000, 1_000))
    submit(yard, task, 1, yard.workers[1], (1_000, 8_000, 1_000))

    submit(yard, task, 2, yard.workers[2], (1_000, 1_000, 8_000))

    assert yard.state(task) == TaskState.FAILED


@pytest.mark.parametrize(
    "shares", [(), (10_000,), (1, 2, 3), (10_000, 1), (5_000, 5_001), (65_535, 65_535)]
)
def test_shares_that_do_not_fit_are_refused(yard, shares):
    """Rule P1: one per slot, and no more than the whole together."""
    task = yard.running(slots=2, shares_agreed=True)

    with reverts("MarketWrongShares", task):
        submit(yard, task, 0, yard.workers[0], shares)


def test_shares_where_none_were_agreed_are_refused(yard):
    """Rule P1: the terms say equal parts."""
    task = yard.running(slots=2)

    with reverts("MarketWrongShares", task):
        submit(yard, task, 0, yard.workers[0], (5_000, 5_000))


def test_missed_quorum_excuses_the_absent(yard):
    """Rules T10, P2: those who came did not agree, so one more would not have helped."""
    before = credits_of_all(yard)
    task = yard.running(slots=3, quorum=2)
    submit_each(yard, task, yard.workers[:3], claims_of("ab."))
    yard.pass_deadline(task)

    yard.market.expire(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.FAILED
    assert gains(yard, before) == {}
