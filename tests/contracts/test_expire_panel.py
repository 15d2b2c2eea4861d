"""expire while a panel sits: anyone may end the waiting for auditors, evaluators and workers."""

import pytest

from tests.contracts.crew import running_with, submit_each
from tests.contracts.money import (
    add_up,
    credits_of_all,
    fault_part,
    gains,
    is_drained,
    requester_part,
)
from tests.contracts.panels import members
from tests.contracts.wealth import Wealth
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, Failure, Policy, TaskState

AT_THE_DEADLINE = pytest.mark.parametrize("offset", [-1, 0, 1])
OTHER = Claim.of(digest("other result"), digest("other root"))


def expire(yard, task):
    return yard.market.expire(task, {"from": yard.stranger})


@AT_THE_DEADLINE
def test_audits_are_over_at_commit_by(yard, offset):
    """Rules A6, C1, C2: the workers have to open now."""
    task = yard.auditing()
    commit_by = yard.market.task(task)["deadline"]
    yard.at(commit_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, commit_by):
            expire(yard, task)
    else:
        tx = expire(yard, task)
        open_by = tx.timestamp + yard.terms().answer_for
        assert event(tx, "OpeningStarted") == {"id": task, "openBy": open_by}
        assert yard.state(task) == TaskState.OPENING


@AT_THE_DEADLINE
def test_evaluations_are_over_at_commit_by(yard, offset):
    """Rules A6, C1, C2: those who have committed reveal now."""
    task = yard.auditing(Policy.SCORE)
    commit_by = yard.market.task(task)["deadline"]
    yard.at(commit_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, commit_by):
            expire(yard, task)
    else:
        tx = expire(yard, task)
        reveal_by = tx.timestamp + yard.terms().answer_for
        assert event(tx, "WindowStarted") == {
            "id": task,
            "states": (),
            "revealBy": reveal_by,
            "challengeBy": reveal_by,
        }
        assert yard.state(task) == TaskState.WINDOW


@AT_THE_DEADLINE
def test_withheld_states_cost_the_stakes_at_open_by(yard, offset):
    """Rules A7, P3, C1, C2: nobody found the wrong, so its part burns too."""
    before = credits_of_all(yard)
    task = yard.opening()
    auditors = members(yard.seats(task))
    open_by = yard.market.task(task)["deadline"]
    yard.at(open_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, open_by):
            expire(yard, task)
    else:
        tx = expire(yard, task)
        assert event(tx, "TaskFailed") == {
            "id": task,
            "reason": Failure.WITHHELD,
            "refunded": REWARD,
        }
        assert gains(yard, before) == add_up(
            (yard.workers[0], -STAKE),
            *((auditor, FEE) for auditor in auditors),
            (yard.requester, requester_part(STAKE) - 2 * FEE),
            (BURN_ADDRESS, STAKE - requester_part(STAKE)),
        )
        assert is_drained(yard, task)


# What the slots do: a signs, b dissents, and . is absent.
@pytest.mark.parametrize("names", ["aaa", "aba", "aa.", "aab.", "aaaa"])
def test_who_did_not_sign_does_not_answer_for_it(yard, names):
    """Rules A7, T8, P2, P3: its stake comes back; of the signers' stakes only one is split."""
    crew = yard.workers[: len(names)]
    wealth = Wealth(yard)
    task = running_with(yard, crew, Policy.AUDIT, stake=STAKE + 1)
    submit_each(yard, task, crew, [{"a": yard.claim, "b": OTHER}.get(name) for name in names])
    if "." in names:
        yard.pass_deadline(task)
        expire(yard, task)
    yard.draw(task)
    seats = yard.seats(task)
    yard.audit_commit(task, seats[0])
    yard.pass_deadline(task)
    expire(yard, task)
    yard.pass_deadline(task)

    expire(yard, task)

    pot = names.count("a") * (STAKE + 1)
    assert wealth.gains() == add_up(
        *((crew[slot], -STAKE - 1) for slot, name in enumerate(names) if name == "a"),
        (seats[0].member, FEE),
        (seats[1].member, -fault_part(BOND)),
        (yard.requester, requester_part(STAKE + 1) - FEE),
        (BURN_ADDRESS, pot - requester_part(STAKE + 1) + fault_part(BOND)),
    )
    assert is_drained(yard, task)
