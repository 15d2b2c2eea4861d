"""Tokens with bad habits: refused, or accounted for by what really moved. Never insolvent."""

from enum import IntEnum

import pytest

from tests.contracts.yard import CREDIT, FEE, REWARD, event, reverts
from trainyard.protocol.market import BURN_ADDRESS, TaskState

AMOUNT = 1_000


class Habit(IntEnum):
    """As `OddToken` has them."""

    NONE = 0
    FEE = 1
    OVERCHARGE = 2
    FALSE = 3
    SILENT = 4
    CALLBACK = 5


# What arrives, and what leaves the sender, when AMOUNT is transferred.
ARRIVES = dict.fromkeys(Habit, AMOUNT) | {Habit.FEE: AMOUNT * 99 // 100}
LEAVES = dict.fromkeys(Habit, AMOUNT) | {Habit.OVERCHARGE: AMOUNT * 101 // 100}
TRUTHFUL = [habit for habit in Habit if habit is not Habit.FALSE]
PAYING = [habit for habit in TRUTHFUL if habit is not Habit.OVERCHARGE]


def adopt(yard, habit: Habit) -> None:
    yard.token.setHabit(habit, {"from": yard.stranger})


def owed_in_parts(yard, *tasks: int) -> int:
    """All that the market owes, asked for one by one."""
    people = [*yard.by_address, BURN_ADDRESS]
    credited = sum(yard.credit(who) for who in people)
    bonds = sum(yard.market.worker(who)["bond"] for who in people)
    return credited + bonds + sum(yard.market.task(task)["locked"] for task in tasks)


def withdraw_everything(yard) -> None:
    for person in yard.by_address.values():
        yard.market.withdraw(person, yard.credit(person), {"from": person})


@pytest.mark.parametrize("habit", TRUTHFUL, ids=lambda habit: habit.name)
def test_deposit_is_credited_by_what_arrived(token_yard, habit):
    """Rules V1, V3: the market neither loses nor promises what the token kept."""
    yard = token_yard
    yard.supply(yard.stranger, amount=2 * AMOUNT)
    held, owed = yard.market.solvency()
    adopt(yard, habit)
    tx = yard.market.deposit(AMOUNT, {"from": yard.stranger})

    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": ARRIVES[habit]}
    assert yard.credit(yard.stranger) == ARRIVES[habit]
    assert yard.token.balanceOf(yard.stranger) == 2 * AMOUNT - LEAVES[habit]
    assert yard.market.solvency() == (held + ARRIVES[habit], owed + ARRIVES[habit])


def test_deposit_of_a_token_that_answers_false_is_refused(token_yard):
    """Rule V3: nothing arrived, so nothing is credited."""
    yard = token_yard
    yard.supply(yard.stranger, amount=AMOUNT)
    adopt(yard, Habit.FALSE)
    with reverts("SafeERC20FailedOperation", yard.token):
        yard.market.deposit(AMOUNT, {"from": yard.stranger})

    assert yard.credit(yard.stranger) == 0


@pytest.mark.parametrize("habit", PAYING, ids=lambda habit: habit.name)
def test_withdrawal_costs_the_market_its_amount(token_yard, habit):
    """Rules V1, V2: what the token keeps on the way is the receiver's loss alone."""
    yard = token_yard
    held, owed = yard.market.solvency()
    adopt(yard, habit)
    tx = yard.market.withdraw(yard.stranger, AMOUNT, {"from": yard.requester})

    assert event(tx, "Withdrawn")["amount"] == AMOUNT
    assert yard.token.balanceOf(yard.stranger) == ARRIVES[habit]
    assert yard.credit(yard.requester) == CREDIT - AMOUNT
    assert yard.market.solvency() == (held - AMOUNT, owed - AMOUNT)


def test_withdrawal_that_would_cost_the_others_is_refused(token_yard):
    """Rules V1, V3: a token that takes more than asked for takes nothing."""
    yard = token_yard
    before = yard.market.solvency()
    adopt(yard, Habit.OVERCHARGE)
    with reverts("MarketTokenTookMore", AMOUNT, LEAVES[Habit.OVERCHARGE]):
        yard.market.withdraw(yard.stranger, AMOUNT, {"from": yard.requester})

    assert yard.credit(yard.requester) == CREDIT
    assert yard.market.solvency() == before


def test_withdrawal_of_a_token_that_answers_false_is_refused(token_yard):
    """Rules V2, V3: who was not paid keeps its credit."""
    yard = token_yard
    before = yard.market.solvency()
    adopt(yard, Habit.FALSE)
    with reverts("SafeERC20FailedOperation", yard.token):
        yard.market.withdraw(yard.stranger, AMOUNT, {"from": yard.requester})

    assert yard.credit(yard.requester) == CREDIT
    assert yard.market.solvency() == before


@pytest.mark.parametrize("habit", Habit, ids=lambda habit: habit.name)
def test_task_lives_and_pays_whatever_the_token_does(token_yard, habit):
    """Rules P1, V1, V5: between deposit and withdrawal no token is asked."""
    yard = token_yard
    worker = yard.workers[0]
    adopt(yard, habit)
    task = yard.audited()
    assert yard.market.solvency()[1] == owed_in_parts(yard, task)
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.SETTLED
    assert yard.credit(worker) == CREDIT + REWARD
    assert yard.credit(yard.requester) == CREDIT - REWARD - 2 * FEE
    held, owed = yard.market.solvency()
    assert held == owed == owed_in_parts(yard, task)


@pytest.mark.parametrize("habit", PAYING, ids=lambda habit: habit.name)
def test_everybody_gets_everything_out(token_yard, habit):
    """Rules V1, V2: also the last one finds what it is owed."""
    yard = token_yard
    adopt(yard, habit)
    yard.supply(yard.stranger, amount=AMOUNT)
    yard.market.deposit(AMOUNT, {"from": yard.stranger})
    withdraw_everything(yard)

    bonds = sum(yard.market.worker(auditor)["bond"] for auditor in yard.auditors)
    assert yard.market.solvency() == (bonds, bonds)


@pytest.mark.parametrize("habit", [Habit.OVERCHARGE, Habit.FALSE], ids=lambda habit: habit.name)
def test_credit_outlasts_a_bad_habit(token_yard, habit):
    """Rules V1, V2: when the token behaves again, everybody gets everything out."""
    yard = token_yard
    adopt(yard, habit)
    task = yard.audited()
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})
    adopt(yard, Habit.NONE)
    withdraw_everything(yard)

    assert yard.token.balanceOf(yard.workers[0]) == CREDIT + REWARD
    held, owed = yard.market.solvency()
    assert held == owed == owed_in_parts(yard, task)
