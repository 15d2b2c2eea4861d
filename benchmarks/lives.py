"""Whole lives of tasks on a market of our own, and the gas that every call of them took."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from eth_abi.abi import encode
from eth_utils.abi import function_abi_to_4byte_selector, get_abi_input_types
from eth_utils.crypto import keccak
from web3.types import TxReceipt

from benchmarks.anvil import Anvil
from benchmarks.gas_figures import AUDITS, Life, Spent
from scripts.deploy_settings import read_deploy_settings
from trainyard.chain import load_artifact
from trainyard.protocol.commitments import Claim, Market, scores_answer
from trainyard.protocol.market import NATIVE_CURRENCY, OWN_PANEL, Policy, TaskState, Terms
from trainyard.protocol.trace import Trace

ETHER = 10**18
# What a training run of ten thousand steps has at a hundred steps per segment.
SEGMENTS = 100
MOST_WORKERS = 5
# So many that two seats of a panel rarely begin their search at the same member.
AUDITORS = 200
ACCOUNTS = 2 + MOST_WORKERS + AUDITORS

_CREDIT = 100_000 * ETHER
_BOND = 100 * ETHER
_FEE = ETHER // 100
_GAS_LIMIT = 10_000_000
_ENV_CLASS = keccak(text="class")
_RESULT = keccak(text="result")
_PROFILE = keccak(text="profile")
_CARD = keccak(text="card")
_SCORES = [950]


class LifeError(RuntimeError):
    """A call was refused, or a task did not end as its script says."""


@dataclass(frozen=True, slots=True)
class Seat:
    index: int
    member: str
    segment: int


class LiveMarket:
    """A new market with its people: all have credit, workers are registered, auditors bonded."""

    def __init__(self, anvil: Anvil) -> None:
        self.anvil = anvil
        people = list(anvil.web3.eth.accounts)
        self.requester, self.challenger = people[:2]
        self.workers, self.auditors = people[2 : 2 + MOST_WORKERS], people[2 + MOST_WORKERS :]
        self.address = self._deploy()
        self._functions = self._bind()
        self.protocol = Market(anvil.web3.eth.chain_id, self.address)
        self.trace = Trace([keccak(text=f"state {index}") for index in range(SEGMENTS + 1)])
        self.claim = Claim.of(_RESULT, self.trace.root)
        self._log: list[tuple[str, int]] = []
        self._settle_in()

    def terms(self, policy: Policy, slots: int) -> Terms:
        terms = Terms(
            manifest=keccak(text="manifest"),
            env_class=_ENV_CLASS,
            policy=policy,
            slots=slots,
            quorum=slots // 2 + 1,
            reward=ETHER,
            stake=ETHER,
        )
        if policy is Policy.AUDIT:
            return replace(
                terms, audits=AUDITS, min_audits=AUDITS, audit_fee=_FEE, segments=SEGMENTS
            )
        if policy is Policy.SCORE:
            return replace(terms, audits=3, min_audits=1, audit_fee=_FEE, target=900)
        return terms

    def life(self, play: Callable[[], None]) -> Life:
        """Play a script and say what its calls took."""
        self._log.clear()
        play()
        return {
            name: Spent(len(gas), sum(gas))
            for name in dict.fromkeys(name for name, _ in self._log)
            for gas in [[spent for called, spent in self._log if called == name]]
        }

    @property
    def count(self) -> int:
        """How many tasks were posted; the number of the newest."""
        return int(self._read("taskCount"))

    def settled(self, worker: str) -> int:
        return int(self._read("account", worker).settled)

    # Scripts

    def replicate(self, slots: int) -> None:
        task = self._run(Policy.REPLICATE, slots)
        claim = (self.claim.result, self.claim.root)
        for slot, worker in enumerate(self.workers[:slots]):
            commitment = self.protocol.claim_commitment(task, worker, salt_of(worker), *claim)
            self.call("commit", task, slot, commitment, by=worker)
        for slot, worker in enumerate(self.workers[:slots]):
            self.call("reveal", task, slot, salt_of(worker), *claim, by=worker)
        self.call("settle", task, by=self.requester)
        self._expect(task, TaskState.SETTLED)

    def audit(self, slots: int) -> None:
        task = self._audited(slots)
        self.anvil.next_block_at(self._read("task", task).deadline)
        self.call("settle", task, by=self.requester)
        self._expect(task, TaskState.SETTLED)

    def score(self, slots: int) -> None:
        task = self._submitted(Policy.SCORE, slots)
        self.call("draw", task, by=self.requester)
        seats = self._seats(task)
        for seat in seats:
            self._commit_answer("auditCommit", (task,), seat, scores_answer(_SCORES))
        for seat in seats:
            salt = salt_of(seat.member)
            self.call("scoreReveal", task, seat.index, salt, _SCORES, by=seat.member)
        self.call("settle", task, by=self.requester)
        self._expect(task, TaskState.SETTLED)

    def absence(self) -> None:
        """One worker joins and never answers."""
        task = self._run(Policy.AUDIT, 1)
        self.anvil.next_block_at(self._read("task", task).deadline)
        self.call("expire", task, by=self.requester)
        self._expect(task, TaskState.FAILED)

    def fraud(self, slots: int) -> None:
        """The audits find nothing, but a challenger does, and three referees agree with it."""
        task = self._audited(slots)
        seated = [seat.segment for seat in self._seats(task)]
        segment = next(index for index in range(SEGMENTS) if index not in seated)
        state, proof = self.trace.after(segment), self.trace.proof_after(segment)
        claim = self.claim.as_tuple()
        self.call("challenge", task, segment, claim, state, proof, by=self.challenger)
        self.anvil.mine(2)
        self.call("drawReferees", task, segment, by=self.requester)
        truth = keccak(text="truth")
        seats = self._seats(task, segment, 1)
        for seat in seats:
            self._commit_answer("refereeCommit", (task, segment), seat, truth, segment=segment)
        for seat in seats:
            salt = salt_of(seat.member)
            self.call("refereeReveal", task, segment, seat.index, salt, truth, by=seat.member)
        self.call("resolve", task, segment, by=self.requester)
        self._expect(task, TaskState.FAILED)

    # Calls

    def call(self, name: str, *arguments: Any, by: str, value: int = 0) -> TxReceipt:
        function = self._functions[name](*arguments)
        sent = function.transact({"from": by, "gas": _GAS_LIMIT, "value": value})
        receipt = self.anvil.receipt(sent)
        if receipt["status"] != 1:
            # Calling it again says why.
            function.call({"from": by, "value": value})
            raise LifeError(f"{name} failed, but would not fail now")
        self._log.append((name, receipt["gasUsed"]))
        return receipt

    def encode(self, name: str, *arguments: Any) -> str:
        """The data of a call; web3 takes long enough over it to be felt in 50,000 calls."""
        abi = self._functions[name].abi
        data = encode(get_abi_input_types(abi), arguments)
        return f"0x{(function_abi_to_4byte_selector(abi) + data).hex()}"

    def call_in_one_block(self, calls: Sequence[tuple[str, str]], *, value: int = 0) -> None:
        """Send many calls, each a sender and its data, and mine them together.

        Receipts of so many take their time: the caller looks at what the calls should have done.
        """
        nonces = {by: self.anvil.nonce(by) for by in {by for by, _ in calls}}
        transactions = []
        for by, data in calls:
            transactions.append(
                {
                    "from": by,
                    "to": self.address,
                    "nonce": hex(nonces[by]),
                    "gas": hex(_GAS_LIMIT),
                    "value": hex(value),
                    "data": data,
                }
            )
            nonces[by] += 1
        self.anvil.send_in_one_block(transactions)

    def post(self, policy: Policy, slots: int) -> int:
        self.call("post", self.terms(policy, slots).as_tuple(), by=self.requester)
        return self.count

    # Parts of scripts

    def _run(self, policy: Policy, slots: int) -> int:
        task = self.post(policy, slots)
        for worker in self.workers[:slots]:
            self.call("join", task, _CARD, [], by=worker)
        return task

    def _submitted(self, policy: Policy, slots: int) -> int:
        task = self._run(policy, slots)
        for slot, worker in enumerate(self.workers[:slots]):
            self.call("submit", task, slot, self.claim.result, self.claim.root, [], by=worker)
        self.anvil.mine(2)
        return task

    def _audited(self, slots: int) -> int:
        task = self._submitted(Policy.AUDIT, slots)
        self.call("draw", task, by=self.requester)
        seats = self._seats(task)
        for seat in seats:
            self._commit_answer("auditCommit", (task,), seat, self.trace.after(seat.segment))
        states = [self.trace.after(seat.segment) for seat in seats]
        proofs = [self.trace.proof_after(seat.segment) for seat in seats]
        self.call("open", task, self.claim.as_tuple(), states, proofs, by=self.workers[0])
        for seat in seats:
            answer = self.trace.after(seat.segment)
            salt = salt_of(seat.member)
            self.call("auditReveal", task, seat.index, salt, answer, by=seat.member)
        return task

    def _commit_answer(
        self,
        function: str,
        of: tuple[int, ...],
        seat: Seat,
        answer: bytes,
        *,
        segment: int = OWN_PANEL,
    ) -> None:
        salt = salt_of(seat.member)
        commitment = self.protocol.answer_commitment(
            of[0], seat.index, seat.member, salt, answer, segment=segment
        )
        self.call(function, *of, seat.index, commitment, by=seat.member)

    def _seats(self, task: int, segment: int = OWN_PANEL, round_: int = 0) -> list[Seat]:
        count = self._read("panel", task, segment, round_).seats
        found = [self._read("seat", task, segment, round_, index) for index in range(count)]
        return [Seat(index, seat.member, seat.segment) for index, seat in enumerate(found)]

    def _read(self, name: str, *arguments: Any) -> Any:
        return self._functions[name](*arguments).call()

    def _expect(self, task: int, state: TaskState) -> None:
        found = TaskState(self._read("task", task).state)
        if found is not state:
            raise LifeError(f"task {task} is {found.name}, not {state.name}")

    # Set-up

    def _deploy(self) -> Any:
        settings = read_deploy_settings({})
        disputes = self._create("MarketDisputes")
        settlement = self._create("MarketSettlement", disputes)
        return self._create(
            "TrainingMarket",
            *(NATIVE_CURRENCY, self.requester, settlement, settings.params.as_tuple()),
        )

    def _bind(self) -> dict[str, Any]:
        """The market's functions, each with an ABI of its own, since web3 searches it per call."""
        bind = partial(self.anvil.web3.eth.contract, self.address, decode_tuples=True)
        return {
            entry["name"]: bind(abi=[entry]).functions[entry["name"]]
            for entry in load_artifact("ITrainingMarket").abi
            if entry["type"] == "function"
        }

    def _create(self, name: str, *arguments: Any) -> Any:
        eth, artifact = self.anvil.web3.eth, load_artifact(name)
        constructor = eth.contract(abi=artifact.abi, bytecode=artifact.bytecode).constructor
        sent = constructor(*arguments).transact({"from": self.requester, "gas": _GAS_LIMIT})
        return self.anvil.receipt(sent)["contractAddress"]

    def _settle_in(self) -> None:
        for person in (self.requester, self.challenger):
            self.call("deposit", _CREDIT, by=person, value=_CREDIT)
        # A deposit rides along, and leaves credit beside the bond.
        for people, bond in ((self.workers, 0), (self.auditors, _BOND)):
            data = self.encode("register", _PROFILE, _ENV_CLASS, bond)
            self.call_in_one_block([(who, data) for who in people], value=_CREDIT)
        if self._read("poolSize", _ENV_CLASS) != AUDITORS:
            raise LifeError("not all auditors could register")
        # Another task stays open all the time.
        self.post(Policy.AUDIT, 1)


def salt_of(member: str) -> bytes:
    return keccak(text=f"salt of {member}")
