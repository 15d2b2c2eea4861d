"""Who signed a transaction that a node shows: found from its own bytes, not from what is said."""

from typing import Any

from eth_account import Account
from eth_account.typed_transactions.typed_transaction import TypedTransaction
from eth_utils.crypto import keccak
from hexbytes import HexBytes

from trainyard.chain.quantities import parse_bytes

# Those of a transaction with fees by EIP-1559 or with a list of accesses, as they are signed.
_FIELDS = (
    *("type", "chainId", "nonce", "to", "value", "gas", "maxFeePerGas", "maxPriorityFeePerGas"),
    *("gasPrice", "accessList", "v", "r", "s"),
)
_TYPED = {"0x1": "maxFeePerGas maxPriorityFeePerGas", "0x2": "gasPrice"}


def target_of(raw: bytes) -> bytes:
    """Whom a transaction of our own is to."""
    return bytes(TypedTransaction.from_bytes(HexBytes(raw)).as_dict()["to"])


class ForgedTransactionError(ValueError):
    """What a node shows as a transaction is not the one of this hash."""


def sender_of(shown: dict[str, Any], transaction: bytes) -> str:
    """The account that signed the transaction of this hash, which has to be what is `shown`."""
    kind = str(shown.get("type"))
    if kind not in _TYPED:
        raise ForgedTransactionError(f"a transaction of type {kind} cannot be checked here")
    left_out = _TYPED[kind].split()
    fields = {
        name: shown[name]
        for name in _FIELDS
        if shown.get(name) is not None and name not in left_out
    }
    fields["data"] = shown.get("input", "0x")
    fields.setdefault("accessList", [])
    try:
        if "to" in fields:
            # As text, its spelling would have to be one that carries a checksum.
            fields["to"] = parse_bytes(fields["to"], 20)
        encoded = TypedTransaction.from_dict(fields).encode()
        if keccak(encoded) != transaction:
            raise ForgedTransactionError("its bytes have another hash")
        return str(Account.recover_transaction(encoded))
    except ForgedTransactionError:
        raise
    except Exception as error:
        # Whatever the libraries say of fields that make no transaction.
        raise ForgedTransactionError(f"it is no transaction: {error}") from error
