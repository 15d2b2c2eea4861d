"""settle under Replicate: the largest group of equal revealed claims is paid."""

from collections.abc import Sequence

import pytest

from tests.contracts.crew import (
    commit_each,
    full_crew,
    lose,
    reveal_each,
    running_with,
)
from tests.contracts.money import PENALTY, add_up, credits_of_all, fault_part, gains, is_drained
from tests.contracts.yard import REWARD, STAKE, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, Failure, Policy, TaskState

CLAIMS = {name: Claim.of(digest(f"result {name}"), digest(f"root {name}")) for name in "abcd"}


def play(yard, crew: Sequence, names: str, **changes) -> int:
    """A task after its reveal, by what each slot does.

    A letter is a claim; `?` commits to one without revealing it, `.` is absent, and `x` is evicted
    when the others have committed.
    """
    task = running_with(yard, crew, Policy.REPLICATE, **changes)
    commit_each(yard, task, crew, [CLAIMS.get("a" if name == "?" else name) for name in names])
    for slot, name in enumerate(names):
        if name == "x":
            lose(yard, task, slot)
    if "." in names:
        yard.pass_deadline(task)
    if "." in names or "x" in names:
        yard.market.expire(task, {"from": yard.stranger})
    reveal_each(yard, task, crew, [CLAIMS.get(name) for name in names])
    if "?" in names:
        yard.pass_deadline(task)
    return task


# What the slots do, the ones that are paid, and the ones at fault.
PAID = [
    ("a", [0], []),
    ("aaa", [0, 1, 2], []),
    ("aab", [0, 1], [2]),
    ("baa", [1, 2], [0]),
    ("aa.", [0, 1], [2]),
    (".aa", [1, 2], [0]),
    ("a?a", [0, 2], [1]),
    ("aax", [0, 1], [2]),
    ("xaa", [1, 2], [0]),
    ("aaaa", [0, 1, 2, 3], []),
    ("abaa", [0, 2, 3], [1]),
    ("?aaa", [1, 2, 3], [0]),
    ("aaa.", [0, 1, 2], [3]),
    ("axaa", [0, 2, 3], [1]),
]


@pytest.mark.parametrize(("names", "winners", "faulty"), PAID)
def test_winners_are_paid_and_faults_are_burned(yard, names, winners, faulty):
    """Rules T9, P1, P2, P4: whatever a slot did wrong, nobody else gains by it."""
    crew = yard.workers[: len(names)]
    before = credits_of_all(yard)
    task = play(yard, crew, names)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        *((crew[slot], REWARD) for slot in winners),
        *((crew[slot], -PENALTY) for slot in faulty),
        (yard.requester, -REWARD * len(winners)),
        (BURN_ADDRESS, PENALTY * len(faulty)),
    )
    assert yard.state(task) == TaskState.SETTLED
    assert yard.market.task(task)["lead"] == winners[0]
    assert is_drained(yard, task)


UNPAID = [
    ("?", [0]),
    ("abc", []),
    ("ab.", [2]),
    ("a??", [1, 2]),
    ("???", [0, 1, 2]),
    ("abx", [2]),
    ("aabb", []),
    ("aab?", [3]),
    ("abcd", []),
]


@pytest.mark.parametrize(("names", "faulty"), UNPAID)
def test_missed_quorum_pays_nobody(yard, names, faulty):
    """Rules T9, T10, P2: the escrow goes back, and so does the stake of who has revealed."""
    crew = yard.workers[: len(names)]
    before = credits_of_all(yard)
    task = play(yard, crew, names)

    tx = yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        *((crew[slot], -PENALTY) for slot in faulty), (BURN_ADDRESS, PENALTY * len(faulty))
    )
    assert event(tx, "TaskFailed") == {
        "id": task,
        "reason": Failure.NO_QUORUM,
        "refunded": REWARD * len(names),
    }
    assert yard.state(task) == TaskState.FAILED
    assert is_drained(yard, task)


def test_larger_quorum_than_a_majority_counts(yard):
    """Rules T9, T10: two of three agree where all three were wanted."""
    before = credits_of_all(yard)
    task = play(yard, yard.workers[:3], "aab", quorum=3)

    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.FAILED
    assert gains(yard, before) == {}


def test_two_and_thirty_slots_are_paid(yard):
    """Rules T9, P1, P2: in one transaction, whatever each did."""
    crew = full_crew(yard)
    names = "b" + "a" * 17 + "bcd" + "?" * 3 + "." * 4 + "x" * 4
    before = credits_of_all(yard)
    task = play(yard, crew, names)

    tx = yard.market.settle(task, {"from": yard.stranger})

    paid = [(worker, REWARD) for worker, name in zip(crew, names, strict=True) if name == "a"]
    faulty = [(worker, -PENALTY) for worker, name in zip(crew, names, strict=True) if name != "a"]
    assert gains(yard, before) == add_up(
        *paid, *faulty, (yard.requester, -17 * REWARD), (BURN_ADDRESS, 15 * PENALTY)
    )
    assert event(tx, "TaskSettled")["lead"] == 1
    assert is_drained(yard, task)


def test_replaced_slot_counts_and_the_lost_one_does_not(yard):
    """Rules T5, P1, P2: three of four agree, one of them in the place of another."""
    before = credits_of_all(yard)
    task = running_with(yard, yard.workers[:3], Policy.REPLICATE)
    lose(yard, task, 1)
    yard.join(task, yard.workers[3])
    crew = [yard.workers[0], yard.workers[3], yard.workers[2]]
    commit_each(yard, task, crew, [CLAIMS["a"]] * 3)
    reveal_each(yard, task, crew, [CLAIMS["a"]] * 3)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        *((worker, REWARD) for worker in crew),
        (yard.workers[1], -PENALTY),
        (yard.requester, -3 * REWARD),
        (BURN_ADDRESS, PENALTY),
    )


@pytest.mark.parametrize(("reward", "stake"), [(0, 0), (1, 1), (7, 9), (10**18 + 1, 10**18 + 9)])
def test_odd_amounts_are_split_to_the_wei(yard, reward, stake):
    """Rules P1, P2, V5: nothing is left over or made up."""
    before = credits_of_all(yard)
    task = play(yard, yard.workers[:4], "aaab", reward=reward, stake=stake)

    yard.market.settle(task, {"from": yard.stranger})

    lost = fault_part(stake)
    assert gains(yard, before) == add_up(
        *((worker, reward) for worker in yard.workers[:3]),
        (yard.workers[3], -lost),
        (yard.requester, -3 * reward),
        (BURN_ADDRESS, lost),
    )
    assert is_drained(yard, task)


def test_event_adds_up_to_the_lock(yard):
    """Rules V5, V6: what left for the slots, and what went back."""
    task = play(yard, yard.workers[:3], "aab")

    tx = yard.market.settle(task, {"from": yard.stranger})

    assert event(tx, "TaskSettled") == {
        "id": task,
        "lead": 0,
        "paid": 2 * REWARD + 3 * STAKE,
        "refunded": REWARD,
    }


def test_outcome_goes_on_record(yard):
    """Rule W4: settled for who was paid, failed for who was at fault."""
    task = play(yard, yard.workers[:4], "aaab")

    yard.market.settle(task, {"from": yard.stranger})

    records = [yard.market.account(worker) for worker in yard.workers[:4]]
    assert [record["settled"] for record in records] == [1, 1, 1, 0]
    assert [record["failed"] for record in records] == [0, 0, 0, 1]


def test_missed_quorum_is_nobodys_record(yard):
    """Rules W4, T10: only the absent one failed."""
    task = play(yard, yard.workers[:3], "ab.")

    yard.market.settle(task, {"from": yard.stranger})

    records = [yard.market.account(worker) for worker in yard.workers[:3]]
    assert [record["settled"] for record in records] == [0, 0, 0]
    assert [record["failed"] for record in records] == [0, 0, 1]


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_everyone_has_its_time_to_reveal(yard, offset):
    """Rules C1, T9: refused before the deadline's second, also if the quorum has revealed."""
    task = yard.revealing([CLAIMS["a"]] * 3)
    yard.reveal(task, yard.workers[0], CLAIMS["a"])
    yard.reveal(task, yard.workers[1], CLAIMS["a"])
    reveal_by = yard.market.task(task)["deadline"]
    yard.at(reveal_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, reveal_by):
            yard.market.settle(task, {"from": yard.stranger})
    else:
        yard.market.settle(task, {"from": yard.stranger})
        assert yard.state(task) == TaskState.SETTLED


def test_nobody_waits_when_all_have_revealed(yard):
    """Rule T9: the last reveal may be followed by the settlement at once."""
    task = play(yard, yard.workers[:3], "aaa")
    assert yard.now() < yard.market.task(task)["deadline"] - 1

    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.SETTLED


def test_running_task_is_not_settled(yard):
    """Rule T9: nothing has been revealed."""
    task = yard.running(Policy.REPLICATE)

    with reverts("MarketUnexpectedState", task, TaskState.RUNNING):
        yard.market.settle(task, {"from": yard.stranger})


@pytest.mark.parametrize(("names", "state"), [("a", TaskState.SETTLED), ("?", TaskState.FAILED)])
def test_ended_task_is_not_settled_again(yard, names, state):
    """Rule V5: nothing is paid twice."""
    task = play(yard, yard.workers[:1], names)
    yard.market.settle(task, {"from": yard.stranger})

    with reverts("MarketUnexpectedState", task, state):
        yard.market.settle(task, {"from": yard.stranger})


def test_unknown_task_is_not_settled(yard):
    """Rule V5: there is nothing to pay."""
    with reverts("MarketUnexpectedState", 99, TaskState.NONE):
        yard.market.settle(99, {"from": yard.stranger})
