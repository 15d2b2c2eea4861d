"""settle under Score: the lead claim is paid if the median of its scores reaches the target."""

from collections.abc import Sequence

import pytest

from tests.contracts.crew import full_crew, lose, running_with, submit_each
from tests.contracts.lot import opt_out
from tests.contracts.money import PENALTY, add_up, credits_of_all, fault_part, gains, is_drained
from tests.contracts.panels import evaluate, members
from tests.contracts.wealth import Wealth
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, Failure, Policy, TaskState

TARGET = 900
GOOD = [[TARGET]] * 3
BAD = [[TARGET - 1]] * 3
OTHER = Claim.of(digest("other result"), digest("other root"))


def submitted(yard, crew: Sequence, names: str, **changes) -> int:
    """A submitted task, by what each slot does.

    `a` submits the claim that is then scored, `b` another one, `.` is absent, and `x` is evicted
    when the others have answered.
    """
    task = running_with(yard, crew, Policy.SCORE, target=TARGET, **changes)
    submit_each(yard, task, crew, [{"a": yard.claim, "b": OTHER}.get(name) for name in names])
    for slot, name in enumerate(names):
        if name == "x":
            lose(yard, task, slot)
    if "." in names:
        yard.pass_deadline(task)
    if "." in names or "x" in names:
        yard.market.expire(task, {"from": yard.stranger})
    return task


# What the slots do, the ones that are paid, and the ones at fault.
PAID = [
    ("a", [0], []),
    ("aaa", [0, 1, 2], []),
    ("aba", [0, 2], [1]),
    ("a.a", [0, 2], [1]),
    ("ax.", [0], [1]),
    ("baa.", [1, 2], [0, 3]),
    ("aaxa", [0, 1, 3], [2]),
]


@pytest.mark.parametrize(("names", "signers", "faulty"), PAID)
def test_signers_and_evaluators_are_paid_and_faults_are_burned(yard, names, signers, faulty):
    """Rules T8, P1, P2, P4, P6: the rest of the escrow goes back to the requester."""
    crew = yard.workers[: len(names)]
    before = credits_of_all(yard)
    task = submitted(yard, crew, names)
    seats = evaluate(yard, task, GOOD)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        *((crew[slot], REWARD) for slot in signers),
        *((crew[slot], -PENALTY) for slot in faulty),
        *((evaluator, FEE) for evaluator in members(seats)),
        (yard.requester, -REWARD * len(signers) - 3 * FEE),
        (BURN_ADDRESS, PENALTY * len(faulty)),
    )
    assert yard.state(task) == TaskState.SETTLED
    assert is_drained(yard, task)


MISSED = [("a", []), ("aab", []), ("aa.", []), ("aax", [2]), ("ax.", [1]), ("abba", [])]


@pytest.mark.parametrize(("names", "faulty"), MISSED)
def test_missed_target_pays_the_evaluators_alone(yard, names, faulty):
    """Rules P6, P2, A8: stakes go back, also to who disagreed with a claim that was no good."""
    crew = yard.workers[: len(names)]
    before = credits_of_all(yard)
    task = submitted(yard, crew, names)
    seats = evaluate(yard, task, BAD)

    tx = yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        *((crew[slot], -PENALTY) for slot in faulty),
        *((evaluator, FEE) for evaluator in members(seats)),
        (yard.requester, -3 * FEE),
        (BURN_ADDRESS, PENALTY * len(faulty)),
    )
    assert event(tx, "TaskFailed") == {
        "id": task,
        "reason": Failure.BELOW_TARGET,
        "refunded": REWARD * len(names),
    }
    assert is_drained(yard, task)


MEDIANS = [
    ([[900], [900], [900]], TaskState.SETTLED),
    ([[899], [899], [899]], TaskState.FAILED),
    ([[0], [900], [2**32 - 1]], TaskState.SETTLED),
    ([[2**32 - 1], [0], [899]], TaskState.FAILED),
    ([[901], [899], [900]], TaskState.SETTLED),
    # Of two the lower one is the median.
    ([None, [900], [2_000]], TaskState.SETTLED),
    ([[2_000], None, [899]], TaskState.FAILED),
    # One alone decides.
    ([None, None, [900]], TaskState.SETTLED),
    ([None, [899], None], TaskState.FAILED),
]


@pytest.mark.parametrize(("rows", "state"), MEDIANS)
def test_median_of_the_revealed_scores_decides(yard, rows, state):
    """Rule P6: whatever single evaluators say."""
    task = submitted(yard, yard.workers[:1], "a")
    evaluate(yard, task, rows)

    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == state


# Scores, tolerance, and which seats are wrong.
JUDGED = [
    ([[950], [950], [10]], 0, [2]),
    ([[951], [950], [949]], 1, []),
    ([[952], [950], [951]], 0, []),
    ([[960], [950], [944]], 5, []),
    ([[955], [950], [944]], 5, [2]),
    ([[0], [950], [2_000]], 5, []),
]


@pytest.mark.parametrize(("rows", "tolerance", "wrong"), JUDGED)
def test_evaluator_off_an_agreeing_majority_loses_its_bond(yard, rows, tolerance, wrong):
    """Rules A8, A9, P4: all of it is burned, and its fee goes back to the requester."""
    wealth = Wealth(yard)
    task = submitted(yard, yard.workers[:1], "a", tolerance=tolerance)
    seats = evaluate(yard, task, rows)

    yard.market.settle(task, {"from": yard.stranger})

    right = [seat.member for seat in seats if seat.index not in wrong]
    assert wealth.gains() == add_up(
        (yard.workers[0], REWARD),
        *((evaluator, FEE) for evaluator in right),
        *((seats[index].member, -BOND) for index in wrong),
        (yard.requester, -REWARD - FEE * len(right)),
        (BURN_ADDRESS, BOND * len(wrong)),
    )
    assert is_drained(yard, task)


@pytest.mark.parametrize("score", [TARGET, TARGET - 1])
@pytest.mark.parametrize(("committed", "lost"), [(False, fault_part(BOND)), (True, BOND)])
def test_silent_evaluator_loses_of_its_bond(yard, committed, lost, score):
    """Rules A8, P4: all of it if it had committed, whether the target is reached or missed."""
    wealth = Wealth(yard)
    task = submitted(yard, yard.workers[:1], "a")
    rows = [[score], [score], [score] if committed else None]
    seats = evaluate(yard, task, rows, hidden={2})
    yard.pass_deadline(task)

    yard.market.settle(task, {"from": yard.stranger})

    reward = REWARD if score >= TARGET else 0
    assert wealth.gains() == add_up(
        (yard.workers[0], reward),
        *((seat.member, FEE) for seat in seats[:2]),
        (seats[2].member, -lost),
        (yard.requester, -reward - 2 * FEE),
        (BURN_ADDRESS, lost),
    )
    assert is_drained(yard, task)


@pytest.mark.parametrize(("committed", "lost"), [(False, fault_part(BOND)), (True, BOND)])
def test_without_a_score_everyone_but_the_silent_is_refunded(yard, committed, lost):
    """Rules P6, A8: evaluators do not earn by committing what they never show."""
    wealth = Wealth(yard)
    task = submitted(yard, yard.workers[:3], "aab")
    rows = GOOD if committed else [None] * 3
    seats = evaluate(yard, task, rows, hidden={0, 1, 2})
    yard.pass_deadline(task)

    tx = yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        *((evaluator, -lost) for evaluator in members(seats)),
        (BURN_ADDRESS, 3 * lost),
    )
    assert event(tx, "TaskFailed") == {
        "id": task,
        "reason": Failure.UNAUDITED,
        "refunded": 3 * REWARD + 3 * FEE,
    }
    assert is_drained(yard, task)


def test_too_few_evaluators_refund_everyone(yard):
    """Rule A5: the requester demanded one, and there is none."""
    opt_out(yard)
    before = credits_of_all(yard)
    task = submitted(yard, yard.workers[:1], "a")
    yard.pass_deadline(task)

    yard.draw(task)

    assert yard.state(task) == TaskState.FAILED
    assert gains(yard, before) == {}
    assert is_drained(yard, task)


def test_two_and_thirty_slots_are_paid(yard):
    """Rules T8, P1, P6: in one transaction, whatever each did."""
    crew = full_crew(yard)
    names = "." * 3 + "a" * 22 + "b" * 7
    before = credits_of_all(yard)
    task = submitted(yard, crew, names)
    seats = evaluate(yard, task, GOOD)

    tx = yard.market.settle(task, {"from": yard.stranger})

    paid = [(worker, REWARD) for worker, name in zip(crew, names, strict=True) if name == "a"]
    faulty = [(worker, -PENALTY) for worker, name in zip(crew, names, strict=True) if name != "a"]
    assert gains(yard, before) == add_up(
        *paid,
        *faulty,
        *((evaluator, FEE) for evaluator in members(seats)),
        (yard.requester, -22 * REWARD - 3 * FEE),
        (BURN_ADDRESS, 10 * PENALTY),
    )
    assert event(tx, "TaskSettled")["lead"] == 3
    assert is_drained(yard, task)


def test_event_adds_up_to_the_lock(yard):
    """Rules V5, V6: what left for the slots, and what went back; fees are the rest."""
    task = submitted(yard, yard.workers[:3], "aba")
    evaluate(yard, task, GOOD)

    tx = yard.market.settle(task, {"from": yard.stranger})

    assert event(tx, "TaskSettled") == {
        "id": task,
        "lead": 0,
        "paid": 2 * REWARD + 3 * STAKE,
        "refunded": REWARD,
    }


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_evaluators_have_their_time_to_reveal(yard, offset):
    """Rules C1, D8: refused before the deadline's second."""
    task = submitted(yard, yard.workers[:1], "a")
    evaluate(yard, task, GOOD, hidden={1})
    reveal_by = yard.market.task(task)["deadline"]
    yard.at(reveal_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, reveal_by):
            yard.market.settle(task, {"from": yard.stranger})
    else:
        yard.market.settle(task, {"from": yard.stranger})
        assert yard.state(task) == TaskState.SETTLED


@pytest.mark.parametrize(
    ("way", "state"), [("submitted", TaskState.SUBMITTED), ("auditing", TaskState.AUDITING)]
)
def test_task_is_not_settled_before_its_scores(yard, way, state):
    """Rule D8: verification is not over, however late it is."""
    task = getattr(yard, way)(Policy.SCORE)
    yard.pass_deadline(task)

    with reverts("MarketUnexpectedState", task, state):
        yard.market.settle(task, {"from": yard.stranger})
