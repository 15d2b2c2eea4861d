"""Whose money goes where: stakes, fees and earnings never count on the same wei."""

from dataclasses import replace
from typing import Any

import pytest

from tests.agent.books import (
    FETCHED,
    MARKET,
    ME,
    OTHER,
    PEER,
    STAKE,
    situation,
    task,
    terms,
)
from trainyard.chain.calls import MarketCalls
from trainyard.devnet.options import DEVNET_PARAMS
from trainyard.protocol.gas import gas_of
from trainyard.protocol.ledger.book import Task, Worker
from trainyard.protocol.market import TaskState
from worker_agent.actions import Fetch, MakeCard, Send
from worker_agent.deciding import decide
from worker_agent.deciding.fees import fees_of, left_of, standing
from worker_agent.deciding.offers import why_not
from worker_agent.policy import Policy as Wanted
from worker_agent.progress import Progress
from worker_agent.situation import Situation

CALLS = MarketCalls(MARKET.address)
CARD = b"k" * 32
JOIN = f"2/join/{CARD.hex()}"
REWARD = STAKE // 10
OFFERED = Progress(fetched=FETCHED, card=CARD)


def offer(**changes: Any) -> Task:
    return replace(task(TaskState.OPEN, workers=(), terms=terms(**changes)), joined=0)


def paid(*offers: Task, credit: int = STAKE + REWARD, **changes: Any) -> Situation:
    """We were in task 1, whose stake and reward are credited; others are on offer from 2 on."""
    s = situation(task(TaskState.SETTLED), payout=OTHER, **changes)
    s.book.tasks.update(enumerate(offers, start=2))
    s.book.account(ME).credit = credit
    progress = dict.fromkeys(range(2, 2 + len(offers)), OFFERED)
    return replace(s, progress={**s.progress, **progress})


def sends(s: Situation) -> list[Send]:
    return [one for one in decide(s) if isinstance(one, Send)]


def paid_out(s: Situation) -> list[Send]:
    return [one for one in sends(s) if one.key.startswith("withdraw/")]


def test_earnings_are_paid_out_and_the_stake_stays() -> None:
    [send] = paid_out(paid())
    assert send.call == CALLS.withdraw(OTHER, REWARD)
    # A second one would not be refused any more, but take the stake.
    assert send.adds_up


@pytest.mark.parametrize(
    ("policy", "payout_float", "left"),
    [
        (Wanted(concurrency=2), None, 2 * STAKE),
        # Who only audits stakes nothing.
        (Wanted(concurrency=0), None, 0),
        (Wanted(max_stake=STAKE // 2), None, STAKE // 2),
        (Wanted(), 0, 0),
        (Wanted(), 3 * STAKE, 3 * STAKE),
    ],
)
def test_float_is_what_the_operator_says_or_what_was_needed(
    policy: Wanted, payout_float: int | None, left: int
) -> None:
    s = paid(credit=5 * STAKE, policy=policy, payout_float=payout_float)
    [send] = paid_out(s)
    assert send.call == CALLS.withdraw(OTHER, 5 * STAKE - left)


def test_who_audits_keeps_what_a_challenge_costs() -> None:
    s = paid(credit=5 * STAKE)
    s.book.workers[ME] = Worker(s.env_class, b"p" * 32, bond=STAKE)
    s.book.params.append(replace(DEVNET_PARAMS, seat_bond=STAKE // 2))
    [send] = paid_out(s)
    assert send.call == CALLS.withdraw(OTHER, 4 * STAKE - STAKE // 2)


@pytest.mark.parametrize("credit", [0, STAKE - 1, STAKE])
def test_nothing_is_paid_out_of_the_float(credit: int) -> None:
    assert paid_out(paid(credit=credit)) == []


def test_what_is_joined_next_is_not_taken_home_in_the_same_step() -> None:
    """The lower nonce would be mined first, and the join refused for what it counted on."""
    [join] = sends(paid(offer(), payout_float=0))
    assert (join.key, join.call.value) == (JOIN, 0)
    no_card = replace(paid(offer(), payout_float=0), progress={2: Progress(fetched=FETCHED)})
    assert [one for one in decide(no_card) if isinstance(one, MakeCard)] == [MakeCard(2)]
    assert paid_out(no_card) == []


@pytest.mark.parametrize("key", [JOIN, "2/challenge/3", "2/accuse/deposit/3", "duty/1/2-3-4"])
def test_nothing_is_paid_out_while_something_is_under_way(key: str) -> None:
    s = paid(offer(), credit=5 * STAKE, pending={key: CALLS.settle(2)})
    s.book.params.append(DEVNET_PARAMS)
    assert paid_out(s) == []


@pytest.mark.parametrize("key", ["withdraw:abc", "withdraw/0-0"])
def test_what_is_being_withdrawn_is_spent(key: str) -> None:
    leaving = {key: CALLS.withdraw(OTHER, STAKE)}
    s = paid(offer(), credit=STAKE + REWARD, pending=leaving)
    assert s.credit == REWARD
    [join] = sends(s)
    assert join.call.value == STAKE - REWARD


def test_what_a_join_takes_of_the_credit_is_spent_while_it_is_pending() -> None:
    joining = {JOIN: CALLS.join(2, CARD, value=STAKE // 4)}
    s = paid(offer(), credit=STAKE, pending=joining)
    assert s.credit == STAKE // 4


def test_one_who_has_nothing_left_for_fees_is_paid_into_its_own_purse_first() -> None:
    price = 10**9
    s = paid(gas_price=price, purse=0)
    filled = standing(s) + 4 * fees_of(s, terms())
    [send] = paid_out(s)
    assert send.call == CALLS.withdraw(ME, filled)
    little = paid(gas_price=price, purse=0, credit=STAKE + filled // 2)
    assert paid_out(little)[0].call == CALLS.withdraw(ME, filled // 2)
    rich = paid(gas_price=price, purse=STAKE)
    [send] = paid_out(rich)
    assert send.call == CALLS.withdraw(OTHER, REWARD)


def test_what_is_worth_less_than_its_fee_stays() -> None:
    assert paid_out(paid(credit=STAKE + 10**6, gas_price=10)) == []


def better_paid() -> Situation:
    return paid(offer(), offer(reward=2 * STAKE), credit=0)


def test_a_better_paid_task_is_not_joined_beside_one_that_waits_for_its_block() -> None:
    s = replace(better_paid(), pending={JOIN: CALLS.join(2, CARD, value=STAKE)})
    assert sends(better_paid())[0].key.startswith("3/join/")
    assert sends(s) == []
    [reason] = why_not(s, 3)
    assert reason.why.endswith("policy.concurrency allows: 2")
    assert "under way" in why_not(s, 2)[0].why


def test_with_room_for_two_the_second_waits_for_the_first_and_is_fetched_meanwhile() -> None:
    pending = {JOIN: CALLS.join(2, CARD, value=STAKE)}
    s = replace(better_paid(), pending=pending, policy=Wanted(concurrency=2))
    assert sends(s) == []
    assert Fetch(3) in decide(replace(s, progress={}))
    mined = replace(s, pending={})
    mined.book.tasks[2] = task(TaskState.OPEN, (ME, PEER), joined=1, terms=terms(slots=2))
    assert [one.key.split("/")[:2] for one in sends(mined)] == [["3", "join"]]


def test_fees_of_the_answer_are_asked_for_before_joining() -> None:
    price = 50 * 10**9
    fees = gas_of(terms()) * price * 3
    s = paid(offer(), credit=0, gas_price=price)
    assert fees_of(s, terms()) == fees
    just = replace(s, purse=STAKE + fees + standing(s))
    [join] = sends(just)
    assert join.key == JOIN

    short = replace(just, purse=just.purse - 1)
    assert sends(short) == []
    [reason] = why_not(short, 2)
    assert reason.why == (
        f"its stake is {STAKE} wei, its fees may come to {fees}, and 1 of that are missing"
    )
    assert reason.change == f"add funds: send 1 wei to {ME}"


def test_a_hundredth_is_laid_aside_also_where_gas_is_cheap_but_not_where_it_is_free() -> None:
    assert standing(paid(gas_price=10**6)) == STAKE // 100
    assert standing(paid(gas_price=100 * 10**9)) > STAKE // 100
    assert standing(paid(gas_price=0)) == 0


def test_fees_of_what_is_under_way_are_laid_aside() -> None:
    s = paid(offer(), gas_price=10**9, purse=STAKE)
    before = left_of(s)
    s.book.tasks[3] = task(TaskState.RUNNING)
    assert before - left_of(s) == fees_of(s, terms())
