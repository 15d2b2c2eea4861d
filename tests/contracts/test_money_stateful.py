"""The money model beside the market, through random lives of several tasks at once.

Each step is one stage of a task, one act at the vault, or a call that must be refused; after each
everybody's money is compared. For a longer run raise `max_examples` in `SETTINGS`, which takes two
to three minutes as it is.
"""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from brownie import accounts
from hypothesis import strategies as st

from tests.contracts.play import TRACES, Play
from tests.contracts.shadow import Shadow
from tests.contracts.witness import RefusedError, Witness
from tests.contracts.wrong import wrong_calls
from tests.contracts.yard import BOND, ENV_CLASS, ETHER, PARAMS, Yard, deploy_market
from trainyard.protocol.ledger import replay
from trainyard.protocol.market import BURN_ADDRESS, DisputeState, Policy, TaskState

SETTINGS = {"max_examples": 12, "stateful_step_count": 8}
MOST_TASKS = 6
# What a run must have come to, or it has proved little. Which of each kind differs from run to run.
DEPTHS = ("settled", "failed", "dispute")


class MoneyMachine:
    """Rules V1, V2, V5, C2: no step creates or loses a wei, and none is stuck in the end."""

    # Brownie hands these to the rules that name them. Without zero, hypothesis gives up trying the
    # smallest runs first, which are all alike.
    seed = st.integers(0, 2**32 - 1).filter(bool)
    policy = st.sampled_from(Policy)

    def __init__(cls, yard, reached):  # noqa: N805 - brownie calls it with the class
        cls.yard, cls.reached = yard, reached
        cls.witness = Witness(yard.market.address)
        cls.book = replay(event for _, event in cls.witness.events(0))

    def setup(self):
        self.shadow = Shadow(self.yard, self.witness, self.book, TRACES)

    def initialize_tasks(self, seed):
        for step, policy in enumerate([*Policy, Policy.AUDIT]):
            self.rule_post(seed + step, policy)
        self.rule_live(seed)

    def rule_post(self, seed, policy):
        play = self._play(seed)
        if len(play.running_tasks()) < MOST_TASKS:
            play.move(play.post(policy))

    def rule_move_one(self, seed):
        play = self._play(seed)
        for task_id in play.running_tasks()[:1]:
            play.move(task_id)

    def rule_live(self, seed):
        play = self._play(seed)
        for _ in range(play.dice.randint(3, 6)):
            for task_id in play.running_tasks():
                play.move(task_id)
            self.shadow.check()

    def rule_vault(self, seed):
        play = self._play(seed)
        who = play.dice.choice([*self.yard.auditors, self.yard.requester])
        credit = self.shadow.money.credits[who.address]
        registered = play.is_registered(who)
        match play.dice.choice(["deposit", "withdraw", "burn", "bond", "retire"]):
            case "deposit":
                self.shadow.deposit(who, play.dice.randrange(ETHER))
            case "withdraw":
                self.shadow.withdraw(who, play.dice.randint(0, credit))
            case "burn":
                self.shadow.burn()
            case "bond" if registered and credit >= BOND:
                self.shadow.add_bond(who, BOND)
            case "retire" if registered and not self.shadow.money.pledged[who.address]:
                self._retire(who)

    def rule_wrong(self, seed):
        function, args, sender = Random(seed).choice(wrong_calls(self.shadow))
        with pytest.raises(RefusedError, match="Market"):
            self.witness.send((function, *args), sender.address)

    def invariant_money(self):
        self.shadow.check()

    def teardown(self):
        if self._failed or not self.shadow.book.tasks:
            return
        self._end_all_tasks()
        self.shadow.check_views()
        assert all(task.locked == 0 for task in self.shadow.money.tasks.values())
        self._take_everything_out()
        assert self.shadow.money.owed == 0
        assert self.yard.market.solvency() == (0, 0)
        self.reached.update(self.shadow.seen)

    def _play(self, seed):
        return Play(self.shadow, Random(seed))

    def _retire(self, who):
        self.shadow.retire(who)
        self.shadow.unbond(who)
        credit = self.shadow.money.credits[who.address]
        if credit >= BOND:
            self.shadow.register(who, ENV_CLASS, BOND)

    def _end_all_tasks(self):
        """Rule C2: time, and calls that anyone may make, end everything."""
        play = self._play(0)
        while tasks := play.running_tasks():
            for task_id in tasks:
                self._end_stage(play, task_id)
            self.shadow.check()

    def _end_stage(self, play, task_id):
        task, shadow = self.shadow.book.tasks[task_id], self.shadow
        match task.state:
            case TaskState.SUBMITTED:
                self.yard.warp(task.deadline)
                shadow.draw(task_id)
            case TaskState.WINDOW:
                self.yard.warp(max(task.deadline, task.own_panel.reveal_by))
                shadow.settle(task_id)
            case TaskState.DISPUTED | TaskState.SETTLED | TaskState.FAILED:
                self._end_dispute(task_id, play.live_disputes(task)[0])
            case _:
                self.yard.warp(task.deadline)
                shadow.expire(task_id)

    def _end_dispute(self, task_id, segment):
        task = self.shadow.book.tasks[task_id]
        dispute = task.disputes[segment]
        if dispute.state is DisputeState.CALLED and task.state is TaskState.DISPUTED:
            self.yard.warp(dispute.deadline)
            self.shadow.draw_referees(task_id, segment)
        else:
            self.yard.warp(dispute.deadline)
            self.shadow.resolve(task_id, segment)

    def _take_everything_out(self):
        for member in list(self.shadow.book.workers):
            self.shadow.go(self.shadow.person(member))
        for who, credit in list(self.shadow.money.credits.items()):
            if credit and who != BURN_ADDRESS:
                self.shadow.withdraw(self.shadow.person(who), credit)
        self.shadow.burn()


@pytest.fixture(scope="module")
def small_yard(module_isolation):
    """Few members with small bonds, so that panels run out of them; they may go at any time."""
    params = replace(PARAMS, unbond_for=0)
    yard = Yard(deploy_market(accounts[0], params=params), list(accounts)[:20])
    yard.auditors = yard.auditors[:9]
    yard.fund(yard.requester, yard.challenger, *yard.workers, *yard.auditors)
    yard.register(*yard.workers)
    yard.register(*yard.auditors, bond=2 * BOND)
    return yard


def test_money_is_where_the_model_says(state_machine, small_yard):
    """Rules V1, V2, V5, C2, P1, P2, P3, P4: the model agrees to the wei after every step."""
    reached = Counter()

    state_machine(MoneyMachine, small_yard, reached, settings=SETTINGS)

    kinds = {depth.split()[0] for depth in reached}
    assert [depth for depth in DEPTHS if depth not in kinds] == []
