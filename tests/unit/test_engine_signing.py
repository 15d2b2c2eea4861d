"""Signatures of offers: what Ethereum's own tools make of the same statement."""

from dataclasses import replace
from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data

from trainyard.engine.signing import Statement, address_of

KEY = b"\x01" * 32
SAID = Statement(
    manifest=b"m" * 32,
    round=3,
    slot=1,
    globe=b"g" * 32,
    leaf=b"l" * 32,
    delta=b"d" * 32,
    absence=None,
)


def typed(said: Statement) -> dict[str, Any]:
    kinds = {"round": "uint256", "slot": "uint256", "absence": "uint256"}
    names = ["manifest", "round", "slot", "globe", "leaf", "delta", "absence"]
    return {
        "types": {
            "EIP712Domain": [
                {"name": "name", "type": "string"},
                {"name": "version", "type": "string"},
            ],
            "Offer": [{"name": name, "type": kinds.get(name, "bytes32")} for name in names],
        },
        "primaryType": "Offer",
        "domain": {"name": "Trainyard", "version": "1"},
        "message": {
            **{name: getattr(said, name) for name in names},
            "delta": said.delta or bytes(32),
            "absence": said.absence or 0,
        },
    }


@pytest.mark.parametrize("said", [SAID, replace(SAID, delta=None, absence=3)])
def test_signature_is_that_of_typed_data(said: Statement) -> None:
    signature = said.sign(KEY)

    message = encode_typed_data(full_message=typed(said))
    assert Account.recover_message(message, signature=f"0x{signature}") == address_of(KEY)
    assert said.signer(signature) == address_of(KEY) == Account.from_key(KEY).address


@pytest.mark.parametrize(
    "change",
    [
        {"manifest": b"M" * 32},
        {"round": 4},
        {"slot": 0},
        {"globe": b"G" * 32},
        {"leaf": b"L" * 32},
        {"delta": b"D" * 32},
        {"delta": None},
        {"absence": 3},
    ],
)
def test_signature_is_of_all_that_is_said(change: dict[str, Any]) -> None:
    signature = SAID.sign(KEY)

    assert replace(SAID, **change).signer(signature) != address_of(KEY)


@pytest.mark.parametrize("nothing", ["", "00", "00" * 65, "ff" * 65, "00" * 64 + "1b", "zz"])
def test_what_is_no_signature_is_nobodys(nothing: str) -> None:
    assert SAID.signer(nothing) is None
