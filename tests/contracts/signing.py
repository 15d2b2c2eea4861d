"""Accounts whose keys the tests hold, and what they sign."""

from typing import Any

from brownie import accounts, web3
from eth_account import Account
from eth_account.messages import encode_typed_data

from tests.contracts.yard import ETHER, digest


def key_holder(name: str) -> Any:
    """An account of its own with some of the chain's coin."""
    account = accounts.add(digest(f"key of {name}"))
    accounts[0].transfer(account, 10 * ETHER)
    return account


def sign(signer: Any, message: dict[str, Any]) -> Any:
    """EIP-712 signature, with its parts."""
    return Account.sign_message(encode_typed_data(full_message=message), signer.private_key)


def permit_message(
    token: Any, owner: Any, spender: Any, amount: int, deadline: int
) -> dict[str, Any]:
    """ERC-2612."""
    fields = ["owner", "spender", "value", "nonce", "deadline"]
    kinds = ["address", "address", "uint256", "uint256", "uint256"]
    values = [owner.address, spender.address, amount, token.nonces(owner), deadline]
    return {
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"},
                {"name": "version", "type": "string"},
                {"name": "chainId", "type": "uint256"},
                {"name": "verifyingContract", "type": "address"},
            ],
            "Permit": [
                {"name": name, "type": kind} for name, kind in zip(fields, kinds, strict=True)
            ],
        },
        "primaryType": "Permit",
        "domain": {
            "name": "Odd",
            "version": "1",
            "chainId": web3.eth.chain_id,
            "verifyingContract": token.address,
        },
        "message": dict(zip(fields, values, strict=True)),
    }


def permit(token: Any, owner: Any, spender: Any, amount: int, deadline: int) -> tuple[Any, ...]:
    """A signed permit as `depositWithPermit` and the token itself take it."""
    signed = sign(owner, permit_message(token, owner, spender, amount, deadline))
    return (amount, deadline, signed.v, signed.r.to_bytes(32, "big"), signed.s.to_bytes(32, "big"))
