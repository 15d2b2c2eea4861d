"""settle under Contest: the best revealed entry takes all rewards."""

from collections.abc import Sequence

import pytest

from tests.contracts.crew import commit_each, full_crew, lose, reveal_each, running_with
from tests.contracts.money import PENALTY, add_up, credits_of_all, fault_part, gains, is_drained
from tests.contracts.panels import evaluate, members
from tests.contracts.wealth import Wealth
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, Failure, Policy, TaskState

TARGET = 900


def entry(slot: int) -> Claim:
    return Claim.of(digest(f"entry {slot}"), digest(f"weights {slot}"))


def entered(yard, crew: Sequence, names: str, **changes) -> int:
    """A contest whose entries are in, by what each slot does.

    `e` enters a result of its own, `?` commits to one without revealing it, `.` is absent, and `x`
    is evicted when the others have committed.
    """
    task = running_with(yard, crew, Policy.CONTEST, target=TARGET, **changes)
    commit_each(yard, task, crew, [entry(i) if n in "e?" else None for i, n in enumerate(names)])
    for slot, name in enumerate(names):
        if name == "x":
            lose(yard, task, slot)
    if "." in names:
        yard.pass_deadline(task)
    if "." in names or "x" in names:
        yard.market.expire(task, {"from": yard.stranger})
    reveal_each(yard, task, crew, [entry(i) if n == "e" else None for i, n in enumerate(names)])
    if "?" in names:
        yard.pass_deadline(task)
        yard.market.expire(task, {"from": yard.stranger})
    return task


# What the slots do, the medians that their entries get, the winner, and the slots at fault.
WON = [
    ("e", [900], 0, []),
    ("eee", [910, 930, 920], 1, []),
    ("eee", [899, 899, 900], 2, []),
    ("eee", [950, 950, 950], 0, []),
    ("eee", [0, 950, 950], 1, []),
    ("ee.", [901, 902, 0], 1, [2]),
    ("?ee", [0, 901, 900], 1, [0]),
    ("xee", [0, 901, 902], 2, [0]),
    # What nobody has seen cannot win, whatever it is said to score.
    ("?ee", [999, 900, 901], 2, [0]),
    (".ee", [999, 900, 901], 2, [0]),
    ("eeee", [900, 950, 940, 0], 1, []),
    ("e?.e", [900, 0, 0, 901], 3, [1, 2]),
]


@pytest.mark.parametrize(("names", "medians", "winner", "faulty"), WON)
def test_best_entry_takes_all(yard, names, medians, winner, faulty):
    """Rules P5, P2, P4, A8: of equals the lowest slot; the others get their stakes back."""
    crew = yard.workers[: len(names)]
    before = credits_of_all(yard)
    task = entered(yard, crew, names)
    seats = evaluate(yard, task, [medians] * 3)

    tx = yard.market.settle(task, {"from": yard.stranger})

    prize = REWARD * len(names)
    assert gains(yard, before) == add_up(
        (crew[winner], prize),
        *((crew[slot], -PENALTY) for slot in faulty),
        *((evaluator, FEE) for evaluator in members(seats)),
        (yard.requester, -prize - 3 * FEE),
        (BURN_ADDRESS, PENALTY * len(faulty)),
    )
    assert event(tx, "TaskSettled") == {
        "id": task,
        "lead": winner,
        "paid": prize + STAKE * (len(names) - names.count("x")),
        "refunded": 0,
    }
    assert is_drained(yard, task)


@pytest.mark.parametrize(
    ("names", "scores", "faulty"),
    [("e", [899], []), ("eee", [899, 0, 898], []), ("e?e", [0, 999, 899], [1])],
)
def test_missed_target_pays_the_evaluators_alone(yard, names, scores, faulty):
    """Rules P5, P2, A8: the prize goes back to the requester."""
    crew = yard.workers[: len(names)]
    before = credits_of_all(yard)
    task = entered(yard, crew, names)
    seats = evaluate(yard, task, [scores] * 3)

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


def test_zero_target_takes_the_best_of_what_there_is(yard):
    """Rule P5: a score of zero is a score."""
    before = credits_of_all(yard)
    task = running_with(yard, yard.workers[:2], Policy.CONTEST, target=0)
    commit_each(yard, task, yard.workers[:2], [entry(0), entry(1)])
    reveal_each(yard, task, yard.workers[:2], [entry(0), entry(1)])
    seats = evaluate(yard, task, [[0, 0]] * 3)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        (yard.workers[0], 2 * REWARD),
        *((evaluator, FEE) for evaluator in members(seats)),
        (yard.requester, -2 * REWARD - 3 * FEE),
    )


@pytest.mark.parametrize(
    ("rows", "winner"),
    [
        ([[900, 0], [901, 950], [0, 960]], 1),
        ([[990, 0], [990, 990], [0, 990]], 0),
        ([[900, 2_000], None, [950, 900]], 0),
        ([None, None, [900, 901]], 1),
    ],
)
def test_median_of_the_revealed_scores_decides(yard, rows, winner):
    """Rule P5: each entry has a median of its own; of two scores the lower one is it."""
    task = entered(yard, yard.workers[:2], "ee", tolerance=2**32 - 1)
    evaluate(yard, task, rows)

    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.SETTLED
    assert yard.market.task(task)["lead"] == winner


def test_evaluator_is_judged_by_each_entry(yard):
    """Rules A8, A9: one entry far off an agreeing majority costs the whole bond."""
    wealth = Wealth(yard)
    task = entered(yard, yard.workers[:2], "ee", tolerance=3)
    seats = evaluate(yard, task, [[950, 900], [951, 899], [952, 800]])

    yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.workers[0], 2 * REWARD),
        (seats[0].member, FEE),
        (seats[1].member, FEE),
        (seats[2].member, -BOND),
        (yard.requester, -2 * REWARD - 2 * FEE),
        (BURN_ADDRESS, BOND),
    )


@pytest.mark.parametrize("names", ["e?", "e.", "ex"])
def test_evaluator_is_not_judged_by_what_nobody_has_seen(yard, names):
    """Rule A9: a slot without an entry has no score to be far from."""
    wealth = Wealth(yard)
    task = entered(yard, yard.workers[:2], names)
    seats = evaluate(yard, task, [[950, 0], [950, 0], [950, 77]])

    yard.market.settle(task, {"from": yard.stranger})

    gained = wealth.gains()
    assert [gained[seat.member.address] for seat in seats] == [FEE] * 3


@pytest.mark.parametrize(("committed", "lost"), [(False, fault_part(BOND)), (True, BOND)])
def test_without_a_score_everyone_but_the_silent_is_refunded(yard, committed, lost):
    """Rules P5, A8: evaluators do not earn by committing what they never show."""
    wealth = Wealth(yard)
    task = entered(yard, yard.workers[:2], "ee")
    rows = [[950, 940]] * 3 if committed else [None] * 3
    seats = evaluate(yard, task, rows, hidden={0, 1, 2})
    yard.pass_deadline(task)

    tx = yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        *((evaluator, -lost) for evaluator in members(seats)),
        (BURN_ADDRESS, 3 * lost),
    )
    assert event(tx, "TaskFailed")["reason"] == Failure.UNAUDITED
    assert is_drained(yard, task)


def test_best_of_two_and_thirty_takes_all(yard):
    """Rules P5, P2: each evaluator scores every slot."""
    crew = full_crew(yard)
    names = "e" * 26 + "?" * 3 + "." * 3
    before = credits_of_all(yard)
    task = entered(yard, crew, names)
    scores = [700 + 13 * slot for slot in range(32)]
    seats = evaluate(yard, task, [scores] * 3)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        (crew[25], 32 * REWARD),
        *((worker, -PENALTY) for worker in crew[26:]),
        *((evaluator, FEE) for evaluator in members(seats)),
        (yard.requester, -32 * REWARD - 3 * FEE),
        (BURN_ADDRESS, 6 * PENALTY),
    )
    assert is_drained(yard, task)


def test_only_the_winner_and_the_faulty_have_a_record(yard):
    """Rules W4, P5: losing a contest is no failure."""
    task = entered(yard, yard.workers[:3], "ee?")
    evaluate(yard, task, [[900, 901, 0]] * 3)

    yard.market.settle(task, {"from": yard.stranger})

    records = [yard.market.account(worker) for worker in yard.workers[:3]]
    assert [record["settled"] for record in records] == [0, 1, 0]
    assert [record["failed"] for record in records] == [0, 0, 1]


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_evaluators_have_their_time_to_reveal(yard, offset):
    """Rules C1, D8: refused before the deadline's second."""
    task = entered(yard, yard.workers[:1], "e")
    evaluate(yard, task, [[900]] * 3, hidden={1})
    reveal_by = yard.market.task(task)["deadline"]
    yard.at(reveal_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, reveal_by):
            yard.market.settle(task, {"from": yard.stranger})
    else:
        yard.market.settle(task, {"from": yard.stranger})
        assert yard.state(task) == TaskState.SETTLED


def test_contest_is_not_settled_by_its_reveals(yard):
    """Rules T6, P5: unlike a replica, an entry has to be scored."""
    task = yard.revealing([entry(0), entry(1)], Policy.CONTEST)
    yard.pass_deadline(task)

    with reverts("MarketUnexpectedState", task, TaskState.REVEALING):
        yard.market.settle(task, {"from": yard.stranger})
