"""Accounts that refuse money, call back or burn gas when it arrives. They harm only themselves."""

from enum import IntEnum

import pytest
from brownie import HostileReceiver, TrainingMarket

from tests.contracts.yard import CREDIT, ENV_CLASS, PARAMS, REWARD, STAKE, digest, event, reverts
from trainyard.protocol.market import BPS, Policy, TaskState

# Enough to withdraw, little enough to be burned in a moment.
LITTLE_GAS = 300_000


class Mood(IntEnum):
    """As `HostileReceiver` has them."""

    ACCEPT = 0
    REFUSE = 1
    REENTER = 2
    BURN = 3


class Hostile:
    """A hostile account, led by a stranger."""

    def __init__(self, yard) -> None:
        self.yard = yard
        self.contract = HostileReceiver.deploy({"from": yard.stranger})
        self.address = self.contract.address

    def act(self, call, *arguments, value: int = 0, **options):
        by = {"from": self.yard.stranger, "value": value, **options}
        return self.contract.act(self.yard.market, value, call.encode_input(*arguments), by)

    def be(self, mood: Mood, call=None, *arguments) -> None:
        data = call.encode_input(*arguments) if call else b""
        self.contract.setMood(mood, self.yard.market, data, {"from": self.yard.stranger})

    def register(self) -> None:
        self.act(self.yard.market.register, digest("profile"), ENV_CLASS, 0)


@pytest.fixture
def hostile(yard):
    """Has as much credit as everybody."""
    hostile = Hostile(yard)
    hostile.act(yard.market.deposit, CREDIT, value=CREDIT)
    return hostile


def two_replicas(yard, hostile) -> int:
    """A task that the hostile account and an honest worker have answered alike and revealed."""
    hostile.register()
    task = yard.post(Policy.REPLICATE, slots=2)
    hostile.act(yard.market.join, task, digest("card"), [])
    yard.join(task, yard.workers[0])
    claim, salt = yard.claim, digest("salt")
    commitment = yard.market.commitmentOf(task, hostile.address, salt, claim.result, claim.root)
    hostile.act(yard.market.commit, task, 0, commitment)
    yard.commit(task, yard.workers[0])
    yard.market.reveal(task, 0, salt, claim.result, claim.root, {"from": yard.stranger})
    yard.reveal(task, yard.workers[0])
    return task


@pytest.mark.parametrize("mood", [Mood.REFUSE, Mood.BURN], ids=lambda mood: mood.name)
def test_withdrawal_of_a_hostile_account_fails_alone(yard, hostile, mood):
    """Rule V4: it keeps its credit, others are paid, and better manners pay it too."""
    hostile.be(mood)
    with reverts("MarketTransferFailed", hostile, 7):
        hostile.act(yard.market.withdraw, hostile.address, 7, gas_limit=LITTLE_GAS)
    before = yard.owner.balance()
    yard.market.withdraw(yard.owner, 7, {"from": yard.requester})

    assert yard.credit(hostile.address) == CREDIT
    assert yard.owner.balance() == before + 7
    hostile.be(Mood.ACCEPT)
    hostile.act(yard.market.withdraw, hostile.address, CREDIT)
    assert hostile.contract.balance() == CREDIT


@pytest.mark.parametrize("mood", [Mood.REFUSE, Mood.BURN], ids=lambda mood: mood.name)
def test_task_settles_with_a_hostile_worker(yard, hostile, mood):
    """Rules P1, V4: settling credits and calls nobody."""
    task = two_replicas(yard, hostile)
    hostile.be(mood)
    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.SETTLED
    assert yard.credit(hostile.address) == CREDIT + REWARD
    assert yard.credit(yard.workers[0]) == CREDIT + REWARD


@pytest.mark.parametrize("mood", [Mood.REFUSE, Mood.BURN], ids=lambda mood: mood.name)
def test_task_of_a_hostile_requester_ends(yard, hostile, mood):
    """Rules C2, T10, V4: its worker, absent here, gets the rest of its stake."""
    terms = yard.terms(Policy.REPLICATE)
    hostile.act(yard.market.post, terms.as_tuple())
    yard.join(1, yard.workers[0])
    hostile.be(mood)
    yard.pass_deadline(1)
    yard.market.expire(1, {"from": yard.stranger})

    assert yard.state(1) == TaskState.FAILED
    assert yard.credit(hostile.address) == CREDIT
    assert yard.credit(yard.workers[0]) == CREDIT - STAKE * PARAMS.fault_bps // BPS


GUARDED = {
    "withdraw": lambda market, who: (market.withdraw, who, 7),
    "deposit": lambda market, who: (market.deposit, 0),
    "depositWithPermit": lambda market, who: (
        *(market.depositWithPermit, 7, 2**40, 27),
        *(digest("r"), digest("s")),
    ),
    "burn": lambda market, who: (market.burn,),
    "multicall": lambda market, who: (
        TrainingMarket.at(market.address).multicall,
        [market.withdraw.encode_input(who, 7)],
    ),
}


@pytest.mark.parametrize("act", GUARDED)
def test_doors_for_money_cannot_be_re_entered(yard, hostile, act):
    """Rules V1, V4: the call back fails, and the withdrawal is one withdrawal."""
    held, owed = yard.market.solvency()
    hostile.be(Mood.REENTER, *GUARDED[act](yard.market, hostile.address))
    tx = hostile.act(yard.market.withdraw, hostile.address, 7)

    assert hostile.contract.reentered() is False
    assert event(tx, "Withdrawn")["amount"] == 7
    assert yard.credit(hostile.address) == CREDIT - 7
    assert hostile.contract.balance() == 7
    assert yard.market.solvency() == (held - 7, owed - 7)


def test_task_settled_from_within_a_withdrawal_is_settled_once(yard, hostile):
    """Rules P1, V1, V4: bookkeeping is over when money leaves, so calling back gains nothing."""
    task = two_replicas(yard, hostile)
    hostile.be(Mood.REENTER, yard.market.settle, task)
    hostile.act(yard.market.withdraw, hostile.address, 7)

    assert hostile.contract.reentered() is True
    assert yard.state(task) == TaskState.SETTLED
    assert yard.credit(hostile.address) == CREDIT + REWARD - 7
    assert yard.credit(yard.workers[0]) == CREDIT + REWARD
    held, owed = yard.market.solvency()
    assert held == owed


def test_slot_joined_from_within_a_withdrawal_is_paid_for(yard, hostile):
    """Rules T3, V1, V4: the stake comes out of what the withdrawal left."""
    hostile.register()
    task = yard.post()
    hostile.be(Mood.REENTER, yard.market.join, task, digest("card"), [])
    hostile.act(yard.market.withdraw, hostile.address, CREDIT - STAKE)

    assert hostile.contract.reentered() is True
    assert yard.market.slot(task, 0)["worker"] == hostile.address
    assert yard.credit(hostile.address) == 0


def test_credit_is_not_spent_twice_by_calling_back(yard, hostile):
    """Rules V2, V4: what is being withdrawn is no stake, so the call back finds too little."""
    hostile.register()
    task = yard.post()
    hostile.be(Mood.REENTER, yard.market.join, task, digest("card"), [])
    hostile.act(yard.market.withdraw, hostile.address, CREDIT - STAKE + 1)

    assert hostile.contract.reentered() is False
    assert yard.market.task(task)["joined"] == 0
    assert yard.credit(hostile.address) == STAKE - 1


@pytest.fixture
def hostile_holder(token_yard):
    """Holds tokens that call it back when they move."""
    yard = token_yard
    yard.token.setHabit(5, {"from": yard.owner})
    hostile = Hostile(yard)
    yard.token.mint(hostile.address, 100, {"from": yard.owner})
    approve = yard.token.approve.encode_input(yard.market, 100)
    hostile.contract.act(yard.token, 0, approve, {"from": yard.stranger})
    return hostile


@pytest.mark.parametrize("act", ["withdraw", "deposit"])
def test_deposit_cannot_be_re_entered_by_the_token(token_yard, hostile_holder, act):
    """Rules V1, V3, V4: what arrives in between would be counted twice."""
    yard, hostile = token_yard, hostile_holder
    held, owed = yard.market.solvency()
    hostile.act(yard.market.deposit, 50)
    calls = {
        "withdraw": (yard.market.withdraw, hostile.address, 50),
        "deposit": (yard.market.deposit, 20),
    }
    hostile.be(Mood.REENTER, *calls[act])
    hostile.act(yard.market.deposit, 30)

    assert hostile.contract.reentered() is False
    assert yard.credit(hostile.address) == 80
    assert yard.token.balanceOf(hostile.address) == 20
    assert yard.market.solvency() == (held + 80, owed + 80)


@pytest.mark.parametrize("act", ["withdraw", "deposit"])
def test_withdrawal_cannot_be_re_entered_by_the_token(token_yard, hostile_holder, act):
    """Rules V1, V2, V4: the receiver is called before the tokens move, and gains nothing."""
    yard, hostile = token_yard, hostile_holder
    hostile.act(yard.market.deposit, 50)
    held, owed = yard.market.solvency()
    calls = {
        "withdraw": (yard.market.withdraw, hostile.address, 30),
        "deposit": (yard.market.deposit, 20),
    }
    hostile.be(Mood.REENTER, *calls[act])
    hostile.act(yard.market.withdraw, hostile.address, 30)

    assert hostile.contract.reentered() is False
    assert yard.credit(hostile.address) == 20
    assert yard.token.balanceOf(hostile.address) == 80
    assert yard.market.solvency() == (held - 30, owed - 30)
