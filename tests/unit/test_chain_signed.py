"""Who signed a transaction, by its own bytes."""

from typing import Any

import pytest
from eth_account import Account

from trainyard.chain.signed import ForgedTransactionError, sender_of

SIGNER = Account.from_key("11" * 32)
MARKET = "0x" + "ab" * 20


def shown() -> tuple[dict[str, Any], bytes]:
    """A transaction as a node shows it, and its hash."""
    fields: dict[str, Any] = {
        "type": 2,
        "chainId": 1337,
        "nonce": 3,
        "to": bytes.fromhex(MARKET[2:]),
        "data": b"\x01\x02",
        "value": 7,
        "gas": 90_000,
        "maxFeePerGas": 2_000,
        "maxPriorityFeePerGas": 1_000,
    }
    signed = SIGNER.sign_transaction(fields)
    numbers = ("type", "chainId", "nonce", "value", "gas", "maxFeePerGas", "maxPriorityFeePerGas")
    document: dict[str, Any] = {name: hex(fields[name]) for name in numbers}
    document |= {"v": hex(signed.v), "r": hex(signed.r), "s": hex(signed.s), "accessList": []}
    # A node adds what it was mined with.
    document |= {"to": MARKET, "input": "0x0102", "gasPrice": "0x7d0", "from": SIGNER.address}
    return document, bytes(signed.hash)


def test_the_signer_is_found_from_what_is_shown() -> None:
    assert sender_of(*shown()) == SIGNER.address


@pytest.mark.parametrize(
    "change",
    [{"value": "0x8"}, {"input": "0x0103"}, {"nonce": "0x4"}, {"to": "0x" + "cd" * 20}],
)
def test_what_is_not_what_was_signed_has_another_hash(change: dict[str, str]) -> None:
    document, name = shown()

    with pytest.raises(ForgedTransactionError, match="another hash"):
        sender_of(document | change, name)


@pytest.mark.parametrize("change", [{"type": "0x0"}, {"r": "0xzz"}, {"to": 5}])
def test_what_is_no_transaction_is_refused(change: dict[str, Any]) -> None:
    document, name = shown()

    with pytest.raises(ForgedTransactionError):
        sender_of(document | change, name)
