"""What is hashed and signed: commitments, digests of claims, and EIP-712 messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eth_abi.abi import encode
from eth_abi.packed import encode_packed
from eth_utils.crypto import keccak

from trainyard.protocol.market import OWN_PANEL

_NO_SHARES = bytes(32)


@dataclass(frozen=True, slots=True)
class Claim:
    """A result, the trace behind it, and how the reward is shared."""

    result: bytes
    root: bytes
    shares: bytes = _NO_SHARES

    @classmethod
    def of(cls, result: bytes, root: bytes, shares: Sequence[int] = ()) -> "Claim":
        return cls(result, root, shares_digest(shares))

    @property
    def digest(self) -> bytes:
        return keccak(encode(["bytes32"] * 3, [self.result, self.root, self.shares]))

    def as_tuple(self) -> tuple[bytes, bytes, bytes]:
        return (self.result, self.root, self.shares)


def shares_digest(shares: Sequence[int]) -> bytes:
    """Digest of the shares per slot, in hundredths of a percent; zero for equal parts."""
    if not shares:
        return _NO_SHARES
    # Elements of an array are padded to words even where Solidity packs.
    return keccak(encode_packed(["uint256"] * len(shares), list(shares)))


@dataclass(frozen=True, slots=True)
class Market:
    """The market on its chain: every commitment and signature is bound to it."""

    chain_id: int
    address: str

    def claim_commitment(
        self, task: int, worker: str, salt: bytes, result: bytes, root: bytes
    ) -> bytes:
        types = ["uint256", "address", "uint256", "address", "bytes32", "bytes32", "bytes32"]
        return keccak(
            encode(types, [self.chain_id, self.address, task, worker, salt, result, root])
        )

    def answer_commitment(
        self,
        task: int,
        seat: int,
        member: str,
        salt: bytes,
        answer: bytes,
        *,
        segment: int = OWN_PANEL,
    ) -> bytes:
        """What an auditor or, with the disputed `segment`, a referee commits to."""
        types = [
            *("uint256", "address", "uint256", "uint32", "uint256"),
            *("address", "bytes32", "bytes32"),
        ]
        values = [self.chain_id, self.address, task, segment, seat, member, salt, answer]
        return keccak(encode(types, values))

    def commitment_message(
        self, task: int, slot: int, commitment: bytes, deadline: int
    ) -> dict[str, Any]:
        """Typed data that a worker signs to let anyone relay its commitment."""
        return self._message(
            "Commitment",
            {
                "task": ("uint256", task),
                "slot": ("uint256", slot),
                "commitment": ("bytes32", commitment),
                "deadline": ("uint256", deadline),
            },
        )

    def submission_message(
        self, task: int, slot: int, claim: Claim, deadline: int
    ) -> dict[str, Any]:
        """Typed data that a worker signs to let anyone relay its submission."""
        return self._message(
            "Submission",
            {
                "task": ("uint256", task),
                "slot": ("uint256", slot),
                "result": ("bytes32", claim.result),
                "root": ("bytes32", claim.root),
                "shares": ("bytes32", claim.shares),
                "deadline": ("uint256", deadline),
            },
        )

    def card_message(
        self, task: int, worker: str, certificate: str, endpoints: Sequence[str], signer: str
    ) -> dict[str, Any]:
        """Typed data that a worker signs to tell the others of a task where and who it is."""
        return self._message(
            "PeerCard",
            {
                "task": ("uint256", task),
                "worker": ("address", worker),
                "certificate": ("string", certificate),
                "endpoints": ("string[]", list(endpoints)),
                "signer": ("address", signer),
            },
        )

    def _message(self, name: str, values: dict[str, tuple[str, Any]]) -> dict[str, Any]:
        domain = {
            "name": ("string", "Trainyard"),
            "version": ("string", "1"),
            "chainId": ("uint256", self.chain_id),
            "verifyingContract": ("address", self.address),
        }
        return {
            "types": {
                "EIP712Domain": [{"name": key, "type": kind} for key, (kind, _) in domain.items()],
                name: [{"name": key, "type": kind} for key, (kind, _) in values.items()],
            },
            "primaryType": name,
            "domain": {key: value for key, (_, value) in domain.items()},
            "message": {key: value for key, (_, value) in values.items()},
        }


def scores_answer(scores: Sequence[int]) -> bytes:
    """The answer of an evaluator: a digest of its scores."""
    return keccak(encode(["uint32[]"], [list(scores)]))
