"""expire: whatever stage a task is in, anyone may end it when its time is over."""

import pytest

from tests.contracts.crew import commit_each, lose, reveal_each, running_with
from tests.contracts.money import (
    PENALTY,
    add_up,
    credits_of_all,
    gains,
    is_drained,
)
from tests.contracts.yard import FEE, REWARD, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, Failure, Policy, TaskState

AT_THE_DEADLINE = pytest.mark.parametrize("offset", [-1, 0, 1])
EACH_POLICY = pytest.mark.parametrize("policy", list(Policy))
COOPERATIVE = pytest.mark.parametrize("policy", [Policy.AUDIT, Policy.SCORE])
BLIND_POLICIES = pytest.mark.parametrize("policy", [Policy.REPLICATE, Policy.CONTEST])
OTHER = Claim.of(digest("other result"), digest("other root"))


def expire(yard, task):
    return yard.market.expire(task, {"from": yard.stranger})


def answer(yard, task, policy, *workers):
    for worker in workers:
        if policy in (Policy.AUDIT, Policy.SCORE):
            yard.submit(task, worker)
        else:
            yard.commit(task, worker)


# Open


@AT_THE_DEADLINE
def test_unfilled_task_is_cancelled_at_join_by(yard, offset):
    """Rules T2, C1, C2: everyone gets back what it put in."""
    before = credits_of_all(yard)
    task = yard.post(slots=3)
    yard.join(task, *yard.workers[:2])
    join_by = yard.market.task(task)["deadline"]
    yard.at(join_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, join_by):
            expire(yard, task)
    else:
        tx = expire(yard, task)
        assert event(tx, "TaskCancelled") == {"id": task, "refunded": 3 * REWARD + 2 * FEE}
        assert yard.state(task) == TaskState.CANCELLED
        assert gains(yard, before) == {}
        assert is_drained(yard, task)


# Running


@AT_THE_DEADLINE
@EACH_POLICY
def test_silent_workers_fail_the_task_at_train_by(yard, policy, offset):
    """Rules T10, P2, P4, C1, C2: absence costs the fault part, which is burned."""
    before = credits_of_all(yard)
    task = yard.running(policy, slots=3)
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, train_by):
            expire(yard, task)
    else:
        tx = expire(yard, task)
        assert event(tx, "TaskFailed")["reason"] == Failure.NO_QUORUM
        assert gains(yard, before) == add_up(
            *((worker, -PENALTY) for worker in yard.workers[:3]), (BURN_ADDRESS, 3 * PENALTY)
        )
        assert is_drained(yard, task)


@AT_THE_DEADLINE
@EACH_POLICY
def test_quorum_goes_on_without_the_absent_at_train_by(yard, policy, offset):
    """Rules T8, T9, C1, C2: nobody is waited for any longer."""
    task = yard.running(policy, slots=3, quorum=2)
    answer(yard, task, policy, *yard.workers[:2])
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, train_by):
            expire(yard, task)
    else:
        expire(yard, task)
        blind = policy in (Policy.REPLICATE, Policy.CONTEST)
        stays = yard.terms().answer_for if blind else yard.terms().audit_for
        assert yard.state(task) == (TaskState.REVEALING if blind else TaskState.SUBMITTED)
        assert yard.market.task(task)["deadline"] == train_by + offset + stays


@BLIND_POLICIES
def test_too_few_answers_fail_the_task(yard, policy):
    """Rules T10, P2: who answered gets its stake back."""
    before = credits_of_all(yard)
    task = yard.running(policy, slots=3, quorum=2)
    answer(yard, task, policy, yard.workers[1])
    yard.pass_deadline(task)

    expire(yard, task)

    assert yard.state(task) == TaskState.FAILED
    assert gains(yard, before) == add_up(
        (yard.workers[0], -PENALTY), (yard.workers[2], -PENALTY), (BURN_ADDRESS, 2 * PENALTY)
    )
    assert is_drained(yard, task)


@COOPERATIVE
def test_missed_quorum_excuses_the_absent_where_slots_cooperate(yard, policy):
    """Rules T10, P2: the answer that came may be what kept the others from theirs."""
    before = credits_of_all(yard)
    task = yard.running(policy, slots=3, quorum=2)
    answer(yard, task, policy, yard.workers[1])
    yard.pass_deadline(task)

    tx = expire(yard, task)

    assert event(tx, "TaskFailed")["reason"] == Failure.NO_QUORUM
    assert gains(yard, before) == {}
    assert is_drained(yard, task)


@COOPERATIVE
@pytest.mark.parametrize("answers", [0, 1])
def test_vacancy_excuses_the_absent_where_slots_cooperate(yard, policy, answers):
    """Rules P2, T10: nobody can train without the one who was lost, answer or no answer."""
    before = credits_of_all(yard)
    task = yard.running(policy, slots=4, quorum=2)
    lose(yard, task, 3)
    answer(yard, task, policy, *yard.workers[:answers])
    yard.pass_deadline(task)

    tx = expire(yard, task)

    assert gains(yard, before) == {yard.workers[3]: -PENALTY, BURN_ADDRESS: PENALTY}
    assert "Recorded" not in tx.events
    assert is_drained(yard, task)


@COOPERATIVE
def test_replaced_slot_excuses_nobody(yard, policy):
    """Rules P2, T5: the slots were complete again."""
    before = credits_of_all(yard)
    task = yard.running(policy, slots=2)
    lose(yard, task, 0)
    yard.join(task, yard.workers[2])
    yard.pass_deadline(task)

    expire(yard, task)

    assert gains(yard, before) == add_up(
        *((worker, -PENALTY) for worker in yard.workers[:3]), (BURN_ADDRESS, 3 * PENALTY)
    )


@BLIND_POLICIES
def test_vacancy_excuses_nobody_who_works_alone(yard, policy):
    """Rule P2: a replica or an entry needs no peer."""
    before = credits_of_all(yard)
    task = yard.running(policy, slots=2)
    lose(yard, task, 0)
    yard.pass_deadline(task)

    expire(yard, task)

    assert gains(yard, before) == add_up(
        *((worker, -PENALTY) for worker in yard.workers[:2]), (BURN_ADDRESS, 2 * PENALTY)
    )


@EACH_POLICY
def test_late_eviction_of_the_last_absent_ends_the_wait(yard, policy):
    """Rules T5, C2: the task goes on with the answers of the others, before its time."""
    task = yard.running(policy, slots=3)
    answer(yard, task, policy, *yard.workers[:2])
    lose(yard, task, 2)
    assert yard.now() < yard.market.task(task)["deadline"] - 1

    expire(yard, task)

    blind = policy in (Policy.REPLICATE, Policy.CONTEST)
    assert yard.state(task) == (TaskState.REVEALING if blind else TaskState.SUBMITTED)


@AT_THE_DEADLINE
@EACH_POLICY
def test_deserted_task_waits_for_replacements_until_train_by(yard, policy, offset):
    """Rules T5, T10, C1: with nobody left the requester gets all of the escrow back."""
    task = yard.running(policy, slots=2)
    lose(yard, task, 0)
    lose(yard, task, 1)
    before = credits_of_all(yard)
    train_by = yard.market.task(task)["deadline"]
    yard.at(train_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, train_by):
            expire(yard, task)
    else:
        expire(yard, task)
        assert gains(yard, before) == {yard.requester: yard.terms(policy, slots=2).escrow}
        assert is_drained(yard, task)


# Revealing


@AT_THE_DEADLINE
def test_replicas_are_settled_at_reveal_by(yard, offset):
    """Rules T9, P2, C1, C2: as by settle."""
    before = credits_of_all(yard)
    task = yard.revealing([yard.claim] * 3)
    yard.reveal(task, yard.workers[0])
    yard.reveal(task, yard.workers[1])
    reveal_by = yard.market.task(task)["deadline"]
    yard.at(reveal_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, reveal_by):
            expire(yard, task)
    else:
        expire(yard, task)
        assert yard.state(task) == TaskState.SETTLED
        assert gains(yard, before) == add_up(
            (yard.workers[0], REWARD),
            (yard.workers[1], REWARD),
            (yard.workers[2], -PENALTY),
            (yard.requester, -2 * REWARD),
            (BURN_ADDRESS, PENALTY),
        )


@AT_THE_DEADLINE
def test_entries_go_to_the_panel_at_reveal_by(yard, offset):
    """Rules P5, C1, C2: one that was revealed is enough."""
    crew = yard.workers[:3]
    task = running_with(yard, crew, Policy.CONTEST, quorum=2)
    commit_each(yard, task, crew, [yard.claim] * 3)
    reveal_each(yard, task, crew, [None, yard.claim, None])
    reveal_by = yard.market.task(task)["deadline"]
    yard.at(reveal_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, reveal_by):
            expire(yard, task)
    else:
        tx = expire(yard, task)
        assert event(tx, "TaskSubmitted")["drawBlock"] == tx.block_number + 1
        assert yard.state(task) == TaskState.SUBMITTED


def test_nobody_waits_when_all_replicas_are_revealed(yard):
    """Rules T9, C2: settle and expire are alike here."""
    task = yard.revealing([yard.claim] * 2)
    yard.reveal(task, yard.workers[0])
    yard.reveal(task, yard.workers[1])

    expire(yard, task)

    assert yard.state(task) == TaskState.SETTLED


def test_contest_without_an_entry_fails(yard):
    """Rules T10, P2: all have committed and nobody has revealed."""
    before = credits_of_all(yard)
    task = yard.revealing([yard.claim] * 3, Policy.CONTEST)
    yard.pass_deadline(task)

    tx = expire(yard, task)

    assert event(tx, "TaskFailed") == {
        "id": task,
        "reason": Failure.NO_QUORUM,
        "refunded": 3 * REWARD + 3 * FEE,
    }
    assert gains(yard, before) == add_up(
        *((worker, -PENALTY) for worker in yard.workers[:3]), (BURN_ADDRESS, 3 * PENALTY)
    )


# States that end in another way


@pytest.mark.parametrize(
    ("way", "state"),
    [
        ("submitted", TaskState.SUBMITTED),
        ("window", TaskState.WINDOW),
        ("disputed", TaskState.DISPUTED),
        ("settled", TaskState.SETTLED),
        ("failed", TaskState.FAILED),
        ("cancelled", TaskState.CANCELLED),
    ],
)
def test_other_states_end_in_their_own_ways(yard, way, state):
    """Rules C2, V5: by draw, settle or resolve; and what has ended stays so."""
    task = {
        "submitted": yard.submitted,
        "window": yard.window,
        "disputed": yard.window,
        "settled": yard.audited,
        "failed": yard.running,
        "cancelled": yard.post,
    }[way]()
    if way == "disputed":
        yard.challenge(task, 0)
    if way == "settled":
        yard.pass_window(task)
        yard.market.settle(task, {"from": yard.stranger})
    yard.pass_deadline(task)
    if way in ("failed", "cancelled"):
        expire(yard, task)

    with reverts("MarketUnexpectedState", task, state):
        expire(yard, task)


def test_unknown_task_does_not_expire(yard):
    """Rule C2: there is nothing to end."""
    with reverts("MarketUnexpectedState", 99, TaskState.NONE):
        expire(yard, 99)
