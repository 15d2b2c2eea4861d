"""Calls of the market, ready for the outbox. Amounts in the market's smallest unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.chain.codec import market_codec
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import Terms

_NOBODY = "0x" + "0" * 40


@dataclass(frozen=True, slots=True)
class Call:
    to: str
    data: bytes
    value: int = 0


@dataclass(frozen=True, slots=True)
class MarketCalls:
    """What can be done on a market; the interfaces in `contracts/` say what it means.

    `value` is credited first, where the currency is the chain's own.
    """

    address: str

    # Money

    def deposit(self, amount: int, *, value: int = 0) -> Call:
        return self._call("deposit", amount, value=value)

    def withdraw(self, to: str, amount: int) -> Call:
        return self._call("withdraw", to, amount)

    # The register of workers

    def register(self, profile: bytes, env_class: bytes, bond: int, *, value: int = 0) -> Call:
        return self._call("register", profile, env_class, bond, value=value)

    def set_profile(self, profile: bytes) -> Call:
        return self._call("setProfile", profile)

    def add_bond(self, amount: int, *, value: int = 0) -> Call:
        return self._call("addBond", amount, value=value)

    def set_duty(self, min_fee: int, min_audit_for: int, min_answer_for: int) -> Call:
        return self._call("setDuty", min_fee, min_audit_for, min_answer_for)

    def retire(self) -> Call:
        return self._call("retire")

    def unbond(self) -> Call:
        return self._call("unbond")

    # The life of a task

    def post(self, terms: Terms, *, value: int = 0) -> Call:
        return self._call("post", terms.as_tuple(), value=value)

    def join(
        self, task: int, peer_card: bytes, proof: Sequence[bytes] = (), *, value: int = 0
    ) -> Call:
        return self._call("join", task, peer_card, list(proof), value=value)

    def leave(self, task: int, slot: int) -> Call:
        return self._call("leave", task, slot)

    def cancel(self, task: int) -> Call:
        return self._call("cancel", task)

    def ping(self, task: int, slot: int) -> Call:
        return self._call("ping", task, slot)

    def pong(self, task: int, slot: int) -> Call:
        return self._call("pong", task, slot)

    def evict(self, task: int, slot: int) -> Call:
        return self._call("evict", task, slot)

    def commit(self, task: int, slot: int, commitment: bytes) -> Call:
        return self._call("commit", task, slot, commitment)

    def reveal(self, task: int, slot: int, salt: bytes, result: bytes, root: bytes) -> Call:
        return self._call("reveal", task, slot, salt, result, root)

    def submit(
        self, task: int, slot: int, result: bytes, root: bytes, shares: Sequence[int] = ()
    ) -> Call:
        return self._call("submit", task, slot, result, root, list(shares))

    def settle(self, task: int) -> Call:
        return self._call("settle", task)

    def settle_shares(self, task: int, claim: Claim, shares: Sequence[int]) -> Call:
        return self._call("settleShares", task, claim.as_tuple(), list(shares))

    def expire(self, task: int) -> Call:
        return self._call("expire", task)

    # Audits

    def draw(self, task: int) -> Call:
        return self._call("draw", task)

    def audit_commit(self, task: int, seat: int, commitment: bytes) -> Call:
        return self._call("auditCommit", task, seat, commitment)

    def open(
        self, task: int, claim: Claim, states: Sequence[bytes], proofs: Sequence[Sequence[bytes]]
    ) -> Call:
        shown = [list(proof) for proof in proofs]
        return self._call("open", task, claim.as_tuple(), list(states), shown)

    def audit_reveal(self, task: int, seat: int, salt: bytes, answer: bytes) -> Call:
        return self._call("auditReveal", task, seat, salt, answer)

    def score_reveal(self, task: int, seat: int, salt: bytes, scores: Sequence[int]) -> Call:
        return self._call("scoreReveal", task, seat, salt, list(scores))

    # Disputes

    def challenge(
        self, task: int, segment: int, claim: Claim, state: bytes, proof: Sequence[bytes]
    ) -> Call:
        return self._call("challenge", task, segment, claim.as_tuple(), state, list(proof))

    def challenge_unserved(self, task: int, segment: int) -> Call:
        return self._call("challengeUnserved", task, segment)

    def serve(
        self, task: int, segment: int, claim: Claim, state: bytes, proof: Sequence[bytes]
    ) -> Call:
        return self._call("serve", task, segment, claim.as_tuple(), state, list(proof))

    def draw_referees(self, task: int, segment: int) -> Call:
        return self._call("drawReferees", task, segment)

    def referee_commit(self, task: int, segment: int, seat: int, commitment: bytes) -> Call:
        return self._call("refereeCommit", task, segment, seat, commitment)

    def referee_reveal(
        self, task: int, segment: int, seat: int, salt: bytes, answer: bytes
    ) -> Call:
        return self._call("refereeReveal", task, segment, seat, salt, answer)

    def resolve(self, task: int, segment: int) -> Call:
        return self._call("resolve", task, segment)

    def _call(self, function: str, *args: Any, value: int = 0) -> Call:
        return Call(self.address, market_codec().call(function, args), value)


def bond_of(call: Call) -> int:
    """What a call puts down as its sender's bond; zero if it does not."""
    codec, none = market_codec(), bytes(32)
    calls = codec.call("register", (none, none, 0)), codec.call("addBond", (0,))
    is_bond = call.data[:4] in [one[:4] for one in calls]
    return int.from_bytes(call.data[-32:]) if is_bond else 0


def withdrawal_of(call: Call) -> int:
    """What a call takes out of its sender's credit to an address; zero if it is no withdrawal."""
    selector = market_codec().call("withdraw", (_NOBODY, 0))[:4]
    return int.from_bytes(call.data[-32:]) if call.data[:4] == selector else 0
