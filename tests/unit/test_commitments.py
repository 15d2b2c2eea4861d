"""What is hashed and signed."""

from collections.abc import Callable
from typing import Any

import pytest
from eth_abi.abi import encode
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak

from trainyard.protocol.commitments import Claim, Market, scores_answer, shares_digest

MARKET = Market(1337, "0x1111111111111111111111111111111111111111")
WORKER = Account.from_key(keccak(text="worker"))
RESULT, ROOT, SALT = keccak(text="result"), keccak(text="root"), keccak(text="salt")
CLAIM = Claim.of(RESULT, ROOT, [7_000, 3_000])

# Each names one thing that a commitment is bound to, and changes it.
OTHER_CLAIM_COMMITMENTS: dict[str, Callable[[], bytes]] = {
    "chain": lambda: claim_commitment(market=Market(1, MARKET.address)),
    "market": lambda: claim_commitment(market=Market(1337, "0x" + 40 * "2")),
    "task": lambda: claim_commitment(task=2),
    "worker": lambda: claim_commitment(worker="0x" + 40 * "3"),
    "salt": lambda: claim_commitment(salt=RESULT),
    "result": lambda: claim_commitment(result=ROOT),
    "root": lambda: claim_commitment(root=RESULT),
}
OTHER_ANSWER_COMMITMENTS: dict[str, Callable[[], bytes]] = {
    "chain": lambda: answer_commitment(market=Market(1, MARKET.address)),
    "market": lambda: answer_commitment(market=Market(1337, "0x" + 40 * "2")),
    "task": lambda: answer_commitment(task=2),
    "seat": lambda: answer_commitment(seat=1),
    "member": lambda: answer_commitment(member="0x" + 40 * "3"),
    "salt": lambda: answer_commitment(salt=RESULT),
    "answer": lambda: answer_commitment(answer=ROOT),
    "segment": lambda: answer_commitment(segment=0),
}


def claim_commitment(market: Market = MARKET, **changes: Any) -> bytes:
    values = {"task": 1, "worker": WORKER.address, "salt": SALT, "result": RESULT, "root": ROOT}
    return market.claim_commitment(**values | changes)


def answer_commitment(market: Market = MARKET, **changes: Any) -> bytes:
    values = {"task": 1, "seat": 0, "member": WORKER.address, "salt": SALT, "answer": RESULT}
    return market.answer_commitment(**values | changes)


def test_claim_digest_is_that_of_its_struct() -> None:
    assert CLAIM.digest == keccak(RESULT + ROOT + CLAIM.shares)
    assert CLAIM.as_tuple() == (RESULT, ROOT, CLAIM.shares)


def test_shares_are_packed_by_words() -> None:
    """Rule P1: the claim names the shares by their digest."""
    assert CLAIM.shares == keccak((7_000).to_bytes(32, "big") + (3_000).to_bytes(32, "big"))


def test_equal_parts_have_no_digest() -> None:
    assert shares_digest([]) == bytes(32)
    assert Claim.of(RESULT, ROOT) == Claim(RESULT, ROOT)


@pytest.mark.parametrize("other", OTHER_CLAIM_COMMITMENTS.values(), ids=OTHER_CLAIM_COMMITMENTS)
def test_claim_commitment_is_bound_to_all_it_names(other: Callable[[], bytes]) -> None:
    """Rule T6: a copied commitment cannot be revealed."""
    assert claim_commitment() != other()


@pytest.mark.parametrize("other", OTHER_ANSWER_COMMITMENTS.values(), ids=OTHER_ANSWER_COMMITMENTS)
def test_answer_commitment_is_bound_to_all_it_names(other: Callable[[], bytes]) -> None:
    """Rule A6: a copied commitment cannot be revealed."""
    assert answer_commitment() != other()


def test_scores_are_answered_by_their_digest() -> None:
    assert scores_answer([950, 960]) == keccak(encode(["uint32[]"], [[950, 960]]))
    assert scores_answer([950]) != scores_answer([950, 0])


@pytest.mark.parametrize(
    "message",
    [
        MARKET.commitment_message(1, 0, claim_commitment(), 1_900_000_000),
        MARKET.submission_message(1, 0, CLAIM, 1_900_000_000),
    ],
    ids=["Commitment", "Submission"],
)
def test_signed_message_names_its_signer(message: dict[str, Any]) -> None:
    """Rule T7: whoever relays it, the signature is the worker's, and for this message alone."""
    signed = WORKER.sign_typed_data(full_message=message)
    altered = message | {"message": message["message"] | {"slot": 1}}

    recover = Account.recover_message
    assert recover(encode_typed_data(full_message=message), signature=signed.signature) == (
        WORKER.address
    )
    assert recover(encode_typed_data(full_message=altered), signature=signed.signature) != (
        WORKER.address
    )


def test_submission_is_hashed_as_the_contract_does() -> None:
    """Rule T7: the struct's type is spelled as in `Claims.sol`."""
    signable = encode_typed_data(full_message=MARKET.submission_message(1, 0, CLAIM, 5))
    kind = keccak(
        text="Submission(uint256 task,uint256 slot,bytes32 result,bytes32 root,bytes32 shares,"
        "uint256 deadline)"
    )
    types = ["bytes32", "uint256", "uint256", "bytes32", "bytes32", "bytes32", "uint256"]

    assert signable.body == keccak(encode(types, [kind, 1, 0, *CLAIM.as_tuple(), 5]))


def test_messages_are_bound_to_the_market() -> None:
    """Rule T7: a signature for one market is worth nothing on another."""
    here = MARKET.commitment_message(1, 0, SALT, 5)
    elsewhere = Market(1, MARKET.address).commitment_message(1, 0, SALT, 5)

    domain = here["domain"]
    assert domain == {
        "name": "Trainyard",
        "version": "1",
        "chainId": 1337,
        "verifyingContract": MARKET.address,
    }
    assert encode_typed_data(full_message=here).header != (
        encode_typed_data(full_message=elsewhere).header
    )
