"""A market beside which the money model takes every step.

Each method is a call of the market: it is sent, the book follows its events, and the model does
what the rules say. What was decided comes from the book as it was before the call, and amounts from
the model alone.
"""

from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import brownie
from brownie import chain

from tests.contracts.storage import Storage
from tests.contracts.witness import Witness, assert_same, views_of
from tests.contracts.yard import Yard, digest, salt_of
from trainyard.protocol import verdicts
from trainyard.protocol.commitments import Claim, scores_answer
from trainyard.protocol.ledger import Book, Event, apply
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import (
    BURN_ADDRESS,
    OWN_PANEL,
    UNSERVED,
    DisputeState,
    Failure,
    Policy,
    TaskState,
    Terms,
)
from trainyard.protocol.money import Money, Part
from trainyard.protocol.tally import lead_of
from trainyard.protocol.trace import Trace
from trainyard.protocol.verdicts import Outcome

Answer = bytes | tuple[int, ...]


class Shadow:
    def __init__(self, yard: Yard, witness: Witness, book: Book, traces: Sequence[Trace]) -> None:
        self.yard = yard
        self.witness = witness
        self.storage = Storage(witness.address)
        self.book = deepcopy(book)
        self.traces = {trace.root: trace for trace in traces}
        self.money = Money()
        for who in yard.by_address:
            bond = book.workers[who].bond if who in book.workers else 0
            self.money.deposit(who, book.account(who).credit + bond)
            self.money.bond(who, bond)
        # What the market has not been shown yet: claims by task and slot, answers by seat.
        self.claims: dict[tuple[int, int], Claim] = {}
        self.answers: dict[tuple[int, int, int, int], Answer] = {}
        # What happened, to see how far a run has come.
        self.seen: Counter[str] = Counter()

    def check(self) -> None:
        """Everybody's money is what the model says, to the wei, and the market holds all of it."""
        money, book = self.money, self.book
        expected: dict[Any, int] = {("_owed",): money.owed}
        for who in [*self.yard.by_address, BURN_ADDRESS]:
            expected["_accounts", who, "credit"] = money.credits[who]
            expected["_workers", who, "bond"] = money.bonds[who]
            expected["_workers", who, "bondLocked"] = money.pledged[who]
        for task_id, task in book.tasks.items():
            expected["_tasks", task_id, "locked"] = money.tasks[task_id].locked
            for segment in task.disputes:
                bond = money.accusations.get((task_id, segment), 0)
                expected["_disputes", task_id, segment, "bond"] = bond

        expected["held"] = money.owed
        stored = dict(zip(expected, self.storage.read(list(expected)[:-1]), strict=False))
        stored["held"] = brownie.web3.eth.get_balance(self.witness.address)
        assert_same(stored, expected)

    def check_views(self) -> None:
        """The market's views say what its events told, of every account, task and dispute."""
        people = [*self.yard.by_address, BURN_ADDRESS]
        self.witness.compare(self.book, views_of(self.book, people))

    # The vault and the workers

    def deposit(self, who: Any, amount: int) -> None:
        self._send("deposit", amount, by=who, value=amount)

    def withdraw(self, who: Any, amount: int) -> None:
        self._send("withdraw", who.address, amount, by=who)
        self.money.withdraw(who.address, amount)

    def burn(self) -> None:
        self._send("burn", by=self.yard.stranger)
        self.money.burn()

    def register(self, who: Any, env_class: bytes, bond: int) -> None:
        self._send("register", digest("profile"), env_class, bond, by=who)
        self.money.bond(who.address, bond)

    def add_bond(self, who: Any, amount: int) -> None:
        # Half of it rides along.
        self._send("addBond", amount, by=who, value=amount // 2)
        self.money.bond(who.address, amount)

    def retire(self, who: Any) -> None:
        self._send("retire", by=who)

    def go(self, who: Any) -> None:
        """Retire, take the bond back and withdraw everything, in one transaction."""
        amount = self.money.credits[who.address] + self.money.bonds[who.address]
        steps = [("retire",), ("unbond",), ("withdraw", who.address, amount)]
        self._send("multicall", [self.witness.encode(step) for step in steps], by=who)
        self.money.unbond(who.address)
        self.money.withdraw(who.address, amount)

    def unbond(self, who: Any) -> None:
        self._send("unbond", by=who)
        self.money.unbond(who.address)

    # Slots

    def post(self, who: Any, terms: Terms) -> int:
        self._send("post", terms.as_tuple(), by=who)
        task_id = len(self.book.tasks)
        self.money.post(task_id, who.address, terms, self.book.params[-1])
        return task_id

    def join(self, task_id: int, who: Any, value: int = 0) -> None:
        self._send("join", task_id, digest("card"), [], by=who, value=value)
        self.money.join(task_id, who.address)

    def leave(self, task_id: int, slot: int) -> None:
        worker = self.worker(task_id, slot)
        self._send("leave", task_id, slot, by=worker)
        self.money.leave(task_id, worker.address)

    def cancel(self, task_id: int) -> None:
        task = self.book.tasks[task_id]
        self._send("cancel", task_id, by=self.person(task.requester))
        self.money.cancel(task_id, verdicts.holders(task).values())

    def ping(self, task_id: int, slot: int) -> None:
        requester = self.person(self.book.tasks[task_id].requester)
        self._send("ping", task_id, slot, by=requester)

    def pong(self, task_id: int, slot: int) -> None:
        self._send("pong", task_id, slot, by=self.worker(task_id, slot))

    def evict(self, task_id: int, slot: int) -> None:
        self._send("evict", task_id, slot, by=self.yard.stranger)
        self.money.evict(task_id, self.worker(task_id, slot).address)

    def answer(self, task_id: int, slot: int, claim: Claim, shares: Sequence[int] = ()) -> None:
        """Commit to the claim or submit it, as the policy has it."""
        worker, task = self.worker(task_id, slot), self.book.tasks[task_id]
        if task.terms.policy in (Policy.REPLICATE, Policy.CONTEST):
            commitment = self.yard.protocol.claim_commitment(
                task_id, worker.address, salt_of(worker), claim.result, claim.root
            )
            self._send("commit", task_id, slot, commitment, by=worker)
            self.claims[task_id, slot] = claim
        else:
            values = (claim.result, claim.root, list(shares))
            self._send("submit", task_id, slot, *values, by=worker)
        if task.answered == task.joined and not self._agreed_while_running(task):
            # All have answered, so all stakes go back.
            self.money.fail(
                task_id, dict.fromkeys(verdicts.holders(task).values(), Part.SIGNED), {}
            )
            assert task.failure is Failure.NO_QUORUM

    def reveal(self, task_id: int, slot: int) -> None:
        claim, worker = self.claims[task_id, slot], self.worker(task_id, slot)
        shown = (salt_of(worker), claim.result, claim.root)
        self._send("reveal", task_id, slot, *shown, by=self.yard.stranger)

    # Stages

    def expire(self, task_id: int) -> None:
        task, now = self._ahead("expire", task_id)
        match task.state:
            case TaskState.OPEN:
                self.money.cancel(task_id, verdicts.holders(task).values())
            case TaskState.RUNNING if not verdicts.agreed(task):
                self.money.fail(task_id, verdicts.parts(task, Outcome.UNPAID), {})
            case TaskState.REVEALING:
                self._end_revealing(task_id, task)
            case TaskState.OPENING:
                duties = verdicts.duties(task, now, Outcome.FRAUD)
                self.money.convict(task_id, verdicts.parts(task, Outcome.UNPAID), duties)

    def settle(self, task_id: int) -> None:
        task = self.book.tasks[task_id]
        if task.terms.shares_agreed:
            lead = task.slots[task.lead]
            call = ("settleShares", task_id, lead.claim.as_tuple(), list(lead.shares))
        else:
            call = ("settle", task_id)
        task, now = self._ahead(*call)
        if task.state is TaskState.REVEALING:
            return self._end_revealing(task_id, task)
        scored = task.terms.policy is not Policy.AUDIT
        winner = verdicts.winner(task) if scored else None
        if scored and winner is None:
            return self._fail(task_id, task, now)
        duties = verdicts.duties(task, now, Outcome.PAID)
        parts = verdicts.parts(task, Outcome.PAID, winner)
        return self.money.settle(task_id, parts, duties, verdicts.shares(task))

    def draw(self, task_id: int) -> None:
        chain.mine(2)
        task, now = self._ahead("draw", task_id)
        if self.book.tasks[task_id].failure is not None:
            assert task.terms.min_audits
            assert now >= task.deadline
            self.money.fail(task_id, verdicts.parts(task, Outcome.UNPAID), {})

    def commit_seat(self, task_id: int, seat: int, answer: Answer) -> None:
        commitment, member = self._commitment(task_id, OWN_PANEL, 0, seat, answer)
        self._send("auditCommit", task_id, seat, commitment, by=member)

    def open(self, task_id: int) -> None:
        task = self.book.tasks[task_id]
        trace = self.trace(task)
        segments = [seat.segment for seat in task.own_panel.seats]
        states = [trace.after(segment) for segment in segments]
        proofs = [trace.proof_after(segment) for segment in segments]
        claim = task.slots[task.lead].claim.as_tuple()
        self._send("open", task_id, claim, states, proofs, by=self.yard.stranger)

    def reveal_seat(self, task_id: int, seat: int) -> None:
        answer = self.answers[task_id, OWN_PANEL, 0, seat]
        member = self.person(self.book.tasks[task_id].own_panel.seats[seat].member)
        function = "auditReveal" if isinstance(answer, bytes) else "scoreReveal"
        self._send(function, task_id, seat, salt_of(member), answer, by=self.yard.stranger)

    # Disputes

    def challenge(self, task_id: int, segment: int, who: Any) -> None:
        self._send("challenge", task_id, *self._leaf(task_id, segment), by=who)
        self.money.challenge(task_id, segment, who.address)

    def challenge_unserved(self, task_id: int, segment: int, who: Any) -> None:
        self._send("challengeUnserved", task_id, segment, by=who)
        self.money.challenge(task_id, segment, who.address)

    def serve(self, task_id: int, segment: int) -> None:
        self._send("serve", task_id, *self._leaf(task_id, segment), by=self.yard.stranger)

    def draw_referees(self, task_id: int, segment: int) -> None:
        chain.mine(2)
        task, now = self._ahead("drawReferees", task_id, segment)
        outcome = self.book.tasks[task_id].disputes[segment].state
        if outcome in (DisputeState.DISMISSED, DisputeState.INCONCLUSIVE):
            assert now >= task.disputes[segment].deadline
            contested = verdicts.contested(task, segment)
            assert (outcome is DisputeState.INCONCLUSIVE) == contested
            self._give_up(task_id, task, segment, now if contested else None)

    def commit_referee(self, task_id: int, segment: int, seat: int, answer: bytes) -> None:
        round_ = self.book.tasks[task_id].disputes[segment].round
        commitment, member = self._commitment(task_id, segment, round_, seat, answer)
        self._send("refereeCommit", task_id, segment, seat, commitment, by=member)

    def reveal_referee(self, task_id: int, segment: int, seat: int) -> None:
        round_ = self.book.tasks[task_id].disputes[segment].round
        answer = self.answers[task_id, segment, round_, seat]
        member = self.person(self.book.tasks[task_id].panels[segment, round_].seats[seat].member)
        shown = (salt_of(member), answer)
        self._send("refereeReveal", task_id, segment, seat, *shown, by=self.yard.stranger)

    def resolve(self, task_id: int, segment: int) -> None:
        task, now = self._ahead("resolve", task_id, segment)
        dispute = task.disputes[segment]
        if task.state is not TaskState.DISPUTED:
            duties = verdicts.undecided_duties(task, segment, due=False)
            self.money.release(task_id, segment, dispute.accuser, duties)
        elif dispute.state is DisputeState.UNSERVED:
            self._uphold(task_id, task, segment, UNSERVED, now)
        elif dispute.state is DisputeState.RULING:
            self._rule(task_id, task, segment, now)

    def _rule(self, task_id: int, task: Task, segment: int, now: int) -> None:
        dispute = task.disputes[segment]
        truth = verdicts.truth_of(task, segment, self.book.params[task.params_id])
        if truth is None:
            if dispute.escalated:
                self._give_up(task_id, task, segment, now)
        elif truth == dispute.claimed:
            self._reject(task_id, task, segment)
        else:
            self._uphold(task_id, task, segment, truth, now)

    def _give_up(self, task_id: int, task: Task, segment: int, now: int | None) -> None:
        """Nobody can tell who is right; with a time, the task ends as well."""
        duties = verdicts.undecided_duties(task, segment, due=True)
        self.money.release(task_id, segment, task.disputes[segment].accuser, duties)
        if now is not None:
            self._fail(task_id, task, now)

    def _reject(self, task_id: int, task: Task, segment: int) -> None:
        dispute = task.disputes[segment]
        duties = verdicts.referee_duties(task, segment, dispute.claimed)
        lead = task.slots[lead_of(verdicts.claims(task))[0]].worker
        accused = None if verdicts.starved(task, segment) else lead
        self.money.reject(task_id, segment, dispute.accuser, duties, accused=accused)

    def _uphold(self, task_id: int, task: Task, segment: int, truth: bytes, now: int) -> None:
        dispute = task.disputes[segment]
        upheld = replace(dispute, state=DisputeState.UPHELD, truth=truth)
        judged = replace(task, disputes=task.disputes | {segment: upheld})
        self.money.convict(
            task_id,
            verdicts.parts(task, Outcome.UNPAID),
            verdicts.duties(judged, now, Outcome.FRAUD),
            finder=verdicts.finder_of(task, segment, truth),
            referees=verdicts.referee_duties(task, segment, truth),
        )
        self.money.return_accusation(task_id, segment, dispute.accuser)

    def _fail(self, task_id: int, task: Task, now: int) -> None:
        duties = verdicts.duties(task, now, Outcome.UNPAID)
        self.money.fail(task_id, verdicts.parts(task, Outcome.UNPAID), duties)

    # Reading

    def person(self, address: str) -> Any:
        return self.yard.by_address[address]

    def worker(self, task_id: int, slot: int) -> Any:
        return self.person(self.book.tasks[task_id].slots[slot].worker)

    def trace(self, task: Task) -> Trace:
        """The trace of the claim under audit."""
        return self.traces[task.slots[task.lead].claim.root]

    def _leaf(self, task_id: int, segment: int) -> tuple[Any, ...]:
        task = self.book.tasks[task_id]
        trace = self.trace(task)
        claim = task.slots[task.lead].claim.as_tuple()
        return segment, claim, trace.after(segment), trace.proof_after(segment)

    def _commitment(
        self, task_id: int, segment: int, round_: int, seat: int, answer: Answer
    ) -> tuple[bytes, Any]:
        member = self.person(self.book.tasks[task_id].panels[segment, round_].seats[seat].member)
        self.answers[task_id, segment, round_, seat] = answer
        hidden = answer if isinstance(answer, bytes) else scores_answer(answer)
        commitment = self.yard.protocol.answer_commitment(
            task_id, seat, member.address, salt_of(member), hidden, segment=segment
        )
        return commitment, member

    def _agreed_while_running(self, task: Task) -> bool:
        return verdicts.agreed(replace(task, state=TaskState.RUNNING))

    def _end_revealing(self, task_id: int, task: Task) -> None:
        if task.terms.policy is Policy.CONTEST and task.revealed:
            return
        if verdicts.agreed(task):
            self.money.settle(task_id, verdicts.parts(task, Outcome.PAID), {})
        else:
            self.money.fail(task_id, verdicts.parts(task, Outcome.UNPAID), {})

    # Sending

    def _ahead(self, function: str, task_id: int, *args: Any) -> tuple[Task, int]:
        """Send a call of the stranger; the task as it was before, and when the call was mined."""
        before = deepcopy(self.book.tasks[task_id])
        self._send(function, task_id, *args, by=self.yard.stranger)
        return before, self.yard.now()

    def _send(self, function: str, *args: Any, by: Any, value: int = 0) -> None:
        events = self.witness.send((function, *args), by.address, value)
        self.money.deposit(by.address, value)
        for event in events:
            self._follow(event)

    def _follow(self, event: Event) -> None:
        apply(self.book, event)
        if event.name == "SeatDrawn":
            # Who is drawn is chance, which is not the model's to know.
            self.money.pledge(event.args["id"], event.args["member"])
        self._note(event)

    def _note(self, event: Event) -> None:
        what = event.name
        match what:
            case "TaskSettled":
                what = f"settled {self.book.tasks[event.args['id']].terms.policy.name}"
            case "TaskFailed":
                what = f"failed {Failure(event.args['reason']).name}"
            case "DisputeResolved":
                what = f"dispute {DisputeState(event.args['outcome']).name}"
        self.seen[what] += 1
