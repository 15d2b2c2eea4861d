"""A market with its people on the test chain, and the ways into every state of a task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import brownie
from brownie import MarketDisputes, MarketSettlement, TrainingMarket, chain, interface
from eth_utils.crypto import keccak

from trainyard.protocol.commitments import Claim, Market, scores_answer
from trainyard.protocol.market import NATIVE_CURRENCY, OWN_PANEL, Params, Policy, Terms
from trainyard.protocol.trace import Trace

ETHER = 10**18
ENV_CLASS = keccak(text="class")
PARAMS = Params(
    seat_bond=9 * ETHER // 100,
    unbond_for=7 * 86_400,
    fault_bps=2_000,
    finder_bps=5_000,
    requester_bps=3_000,
    referees=3,
    escalation=5,
    draw_delay=1,
    min_window=60,
)
REWARD = ETHER
STAKE = ETHER
FEE = ETHER // 100
BOND = PARAMS.seat_bond
SEGMENTS = 9
CREDIT = 50 * ETHER
AUDITOR_BOND = ETHER


def digest(name: str) -> bytes:
    return keccak(text=name)


def salt_of(member: Any) -> bytes:
    return keccak(text=f"salt of {member.address}")


def trace_of(name: str = "honest", segments: int = SEGMENTS) -> Trace:
    return Trace([digest(f"{name} state {index}") for index in range(segments + 1)])


def reverts(error: str, *values: Any) -> Any:
    """Expect a custom error with its values, as brownie spells them."""
    return brownie.reverts(f"{error}: {', '.join(spell(value) for value in values)}")


def spell(value: Any) -> str:
    if isinstance(value, bytes):
        return str(bytes(value))
    if isinstance(value, int):
        return str(int(value))
    return str(getattr(value, "address", value)).lower()


def event(tx: Any, name: str) -> dict[str, Any]:
    """The values of the only event of that name."""
    assert len(tx.events[name]) == 1
    return dict(tx.events[name])


def inherited_event(tx: Any, name: str) -> dict[str, Any]:
    """The values of the only such event, which the market has from a contract that it is."""
    receipt = brownie.web3.eth.get_transaction_receipt(tx.txid)
    kind = brownie.web3.eth.contract(abi=TrainingMarket.abi).events[name]()
    [found] = kind.process_receipt(receipt)
    return dict(found["args"])


def field(name: str) -> bytes:
    """The name of a field as errors carry it."""
    return name.encode().ljust(32, b"\0")


@dataclass
class Seat:
    """A drawn seat as the tests see it."""

    index: int
    member: Any
    segment: int


class Yard:
    def __init__(self, market: Any, people: Sequence[Any]) -> None:
        self.market = market
        self.owner, self.requester = people[0], people[1]
        self.workers = list(people[2:6])
        self.auditors = list(people[6:18])
        self.challenger, self.stranger = people[18], people[19]
        self.by_address = {person.address: person for person in people}
        self.protocol = Market(brownie.web3.eth.chain_id, market.address)
        self.claim = Claim.of(digest("result"), trace_of().root)
        self.trace = trace_of()

    # People

    def fund(self, *people: Any, amount: int = CREDIT) -> None:
        for person in people:
            self.market.deposit(amount, {"from": person, "value": amount})

    def register(self, *people: Any, bond: int = 0, env_class: bytes = ENV_CLASS) -> None:
        for person in people:
            self.market.register(digest("profile"), env_class, bond, {"from": person})

    def credit(self, who: Any) -> int:
        return int(self.market.account(who)["credit"])

    def credits_of(self, people: Sequence[Any]) -> list[int]:
        """The credits of many, in one call."""
        account = self.market.account
        market = brownie.web3.eth.contract(self.market.address, abi=TrainingMarket.abi)
        calls = [account.encode_input(person) for person in people]
        answers = market.functions.multicall(calls).call()
        return [int(account.decode_output(answer)["credit"]) for answer in answers]

    def holdings(self, who: Any) -> int:
        """What an account has of the market's currency outside of the market."""
        return int(brownie.web3.eth.get_balance(str(getattr(who, "address", who))))

    # Terms

    def terms(self, policy: Policy = Policy.AUDIT, **changes: Any) -> Terms:
        terms = Terms(
            manifest=digest("manifest"),
            env_class=ENV_CLASS,
            policy=policy,
            reward=REWARD,
            stake=STAKE,
        )
        match policy:
            case Policy.AUDIT:
                terms = replace(terms, audits=2, audit_fee=FEE, segments=SEGMENTS)
            case Policy.SCORE | Policy.CONTEST:
                terms = replace(terms, audits=3, min_audits=1, audit_fee=FEE, target=900)
            case _:
                pass
        if "slots" in changes and "quorum" not in changes and policy is Policy.REPLICATE:
            changes["quorum"] = changes["slots"] // 2 + 1
        return replace(terms, **changes)

    # The way of a task

    def post(self, policy: Policy = Policy.AUDIT, **changes: Any) -> int:
        return self.post_terms(self.terms(policy, **changes))

    def post_terms(self, terms: Terms) -> int:
        tx = self.market.post(terms.as_tuple(), {"from": self.requester})
        return int(tx.events["TaskPosted"]["id"])

    def join(self, task: int, *workers: Any) -> None:
        for worker in workers:
            self.market.join(task, digest("card"), [], {"from": worker})

    def running(self, policy: Policy = Policy.AUDIT, **changes: Any) -> int:
        task = self.post(policy, **changes)
        self.join(task, *self.workers[: changes.get("slots", 1)])
        return task

    def submit(
        self, task: int, *workers: Any, claim: Claim | None = None, shares: Sequence[int] = ()
    ) -> None:
        claim = claim or Claim.of(self.claim.result, self.claim.root, shares)
        for worker in workers:
            slot = self.slot_of(task, worker)
            self.market.submit(task, slot, claim.result, claim.root, list(shares), {"from": worker})

    def commit(self, task: int, worker: Any, claim: Claim | None = None) -> None:
        claim = claim or self.claim
        commitment = self.protocol.claim_commitment(
            task, worker.address, salt_of(worker), claim.result, claim.root
        )
        self.market.commit(task, self.slot_of(task, worker), commitment, {"from": worker})

    def reveal(self, task: int, worker: Any, claim: Claim | None = None) -> Any:
        claim = claim or self.claim
        return self.market.reveal(
            task,
            self.slot_of(task, worker),
            salt_of(worker),
            claim.result,
            claim.root,
            {"from": worker},
        )

    def revealing(
        self, claims: Sequence[Claim | None], policy: Policy = Policy.REPLICATE, **changes: Any
    ) -> int:
        """One slot per claim; None is a slot that does not commit, so that time must pass."""
        task = self.running(policy, slots=len(claims), **changes)
        for worker, claim in zip(self.workers, claims, strict=False):
            if claim is not None:
                self.commit(task, worker, claim)
        if None in claims:
            self.pass_deadline(task)
            self.market.expire(task, {"from": self.stranger})
        return task

    def submitted(self, policy: Policy = Policy.AUDIT, **changes: Any) -> int:
        task = self.running(policy, **changes)
        self.submit(task, *self.workers[: changes.get("slots", 1)])
        return task

    def draw(self, task: int) -> Any:
        chain.mine(2)
        return self.market.draw(task, {"from": self.stranger})

    def auditing(
        self, policy: Policy = Policy.AUDIT, sparing: int | None = None, **changes: Any
    ) -> int:
        """Auditors are drawn; of several tasks the first whose draw leaves out segment `sparing`.

        Whoever confirms a segment that proves wrong pays for it, so a test of what a wrong segment
        costs says whether it has an auditor, and does not leave that to the draw.
        """
        while True:
            task = self.submitted(policy, **changes)
            self.draw(task)
            if sparing is None or sparing not in [seat.segment for seat in self.seats(task)]:
                return task

    def seats(self, task: int, segment: int = OWN_PANEL, round_: int = 0) -> list[Seat]:
        count = self.market.panel(task, segment, round_)["seats"]
        found = [self.market.seat(task, segment, round_, index) for index in range(count)]
        return [
            Seat(index, self.by_address[seat["member"]], seat["segment"])
            for index, seat in enumerate(found)
        ]

    def audit_commit(self, task: int, seat: Seat, answer: bytes | None = None) -> Any:
        answer = self.trace.after(seat.segment) if answer is None else answer
        commitment = self.protocol.answer_commitment(
            task, seat.index, seat.member.address, salt_of(seat.member), answer
        )
        return self.market.auditCommit(task, seat.index, commitment, {"from": seat.member})

    def audit_reveal(self, task: int, seat: Seat, answer: bytes | None = None) -> Any:
        answer = self.trace.after(seat.segment) if answer is None else answer
        return self.market.auditReveal(
            task, seat.index, salt_of(seat.member), answer, {"from": seat.member}
        )

    def score_commit(self, task: int, seat: Seat, scores: Sequence[int]) -> Any:
        return self.audit_commit(task, seat, scores_answer(scores))

    def score_reveal(self, task: int, seat: Seat, scores: Sequence[int]) -> Any:
        return self.market.scoreReveal(
            task, seat.index, salt_of(seat.member), list(scores), {"from": seat.member}
        )

    def opening(self, answers: dict[int, bytes] | None = None, **changes: Any) -> int:
        """All auditors have committed; `answers` has what a seat commits to but the truth."""
        task = self.auditing(**changes)
        for seat in self.seats(task):
            self.audit_commit(task, seat, (answers or {}).get(seat.index))
        return task

    def open(self, task: int, trace: Trace | None = None) -> Any:
        trace = trace or self.trace
        segments = [seat.segment for seat in self.seats(task)]
        return self.market.open(
            task,
            self.claim.as_tuple(),
            [trace.after(segment) for segment in segments],
            [trace.proof_after(segment) for segment in segments],
            {"from": self.workers[0]},
        )

    def window(self, answers: dict[int, bytes] | None = None, **changes: Any) -> int:
        task = self.opening(answers, **changes)
        self.open(task)
        return task

    def audited(self, **changes: Any) -> int:
        """All auditors have revealed and agree; the window is open."""
        task = self.window(**changes)
        for seat in self.seats(task):
            self.audit_reveal(task, seat)
        return task

    def scoring(self, policy: Policy, scores: Sequence[Sequence[int]], **changes: Any) -> int:
        """Evaluators have committed `scores`, one row per seat; they are still to reveal."""
        if policy is Policy.CONTEST:
            claims = [
                Claim.of(digest(f"result {i}"), digest(f"root {i}"))
                for i in range(changes.get("slots", 1))
            ]
            task = self.revealing(
                claims, policy, **{k: v for k, v in changes.items() if k != "slots"}
            )
            for worker, claim in zip(self.workers, claims, strict=False):
                self.reveal(task, worker, claim)
            self.draw(task)
        else:
            task = self.auditing(policy, **changes)
        for seat, row in zip(self.seats(task), scores, strict=True):
            self.score_commit(task, seat, row)
        return task

    # Disputes

    def challenge(self, task: int, segment: int, by: Any = None, trace: Trace | None = None) -> Any:
        trace = trace or self.trace
        return self.market.challenge(
            task,
            segment,
            self.claim.as_tuple(),
            trace.after(segment),
            trace.proof_after(segment),
            {"from": by or self.challenger},
        )

    def draw_referees(self, task: int, segment: int) -> list[Seat]:
        chain.mine(2)
        self.market.drawReferees(task, segment, {"from": self.stranger})
        return self.referees(task, segment)

    def referees(self, task: int, segment: int) -> list[Seat]:
        return self.seats(task, segment, self.market.dispute(task, segment)["round"])

    def referee_commit(self, task: int, segment: int, seat: Seat, answer: bytes) -> Any:
        commitment = self.protocol.answer_commitment(
            task, seat.index, seat.member.address, salt_of(seat.member), answer, segment=segment
        )
        return self.market.refereeCommit(
            task, segment, seat.index, commitment, {"from": seat.member}
        )

    def referee_reveal(self, task: int, segment: int, seat: Seat, answer: bytes) -> Any:
        return self.market.refereeReveal(
            task, segment, seat.index, salt_of(seat.member), answer, {"from": seat.member}
        )

    def rule(self, task: int, segment: int, answers: Sequence[bytes | None]) -> Any:
        """Draw referees, let each answer (None keeps silent), and resolve."""
        seats = self.draw_referees(task, segment)
        voting = [
            (seat, answer)
            for seat, answer in zip(seats, answers, strict=True)
            if answer is not None
        ]
        for seat, answer in voting:
            self.referee_commit(task, segment, seat, answer)
        if len(voting) < len(seats):
            self.pass_dispute_deadline(task, segment)
            self.market.resolve(task, segment, {"from": self.stranger})
        for seat, answer in voting:
            self.referee_reveal(task, segment, seat, answer)
        return self.market.resolve(task, segment, {"from": self.stranger})

    # Reading and time

    def slot_of(self, task: int, worker: Any) -> int:
        for index in range(self.market.task(task)["slots"]):
            if self.market.slot(task, index)["worker"] == worker:
                return index
        raise LookupError(f"{worker} holds no slot of task {task}")

    def state(self, task: int) -> int:
        return int(self.market.task(task)["state"])

    def now(self) -> int:
        """Time of the latest block; a transaction that follows at once has one second more."""
        return int(brownie.web3.eth.get_block("latest")["timestamp"])

    def at(self, timestamp: int) -> None:
        """The next transaction's block has exactly this `timestamp`; no block is mined for it."""
        if timestamp <= self.now():
            raise ValueError(f"the chain is at {self.now()} already, not before {timestamp}")
        # Ganache adds a second of its own (see step_clock).
        brownie.web3.provider.make_request("evm_setTime", [(timestamp - 1) * 1_000])

    def warp(self, timestamp: int) -> None:
        """Mine a block at `timestamp` unless it is past; the next transaction is a second later."""
        if timestamp > self.now():
            self.at(timestamp)
            chain.mine(1)

    def pass_deadline(self, task: int) -> None:
        self.warp(self.market.task(task)["deadline"])

    def pass_dispute_deadline(self, task: int, segment: int) -> None:
        self.warp(self.market.dispute(task, segment)["deadline"])

    def pass_window(self, task: int) -> None:
        reveal_by = self.market.panel(task, OWN_PANEL, 0)["revealBy"]
        self.warp(max(self.market.task(task)["deadline"], reveal_by))


def deploy_market(owner: Any, currency: str = NATIVE_CURRENCY, params: Params = PARAMS) -> Any:
    disputes = MarketDisputes.deploy({"from": owner})
    settlement = MarketSettlement.deploy(disputes, {"from": owner})
    market = TrainingMarket.deploy(currency, owner, settlement, params.as_tuple(), {"from": owner})
    return interface.ITrainingMarket(market.address)
