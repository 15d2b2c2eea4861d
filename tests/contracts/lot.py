"""The draw as anyone can recompute it from a block's hash."""

from collections.abc import Sequence
from math import gcd
from typing import Any

import brownie
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from tests.contracts.yard import ENV_CLASS, Yard
from trainyard.protocol.market import OWN_PANEL


def panel_seed(yard: Yard, task: int, segment: int = OWN_PANEL, round_: int = 0) -> bytes:
    """The seed of a panel that was drawn by the block that it named."""
    block = brownie.web3.eth.get_block(yard.market.panel(task, segment, round_)["drawBlock"])
    return _hash(
        ["bytes32", "uint256", "uint32", "uint256"], [block["hash"], task, segment, round_]
    )


def pool_of(yard: Yard) -> list[str]:
    size = yard.market.poolSize(ENV_CLASS)
    return [yard.market.poolMember(ENV_CLASS, index) for index in range(size)]


def drawn_members(
    seed: bytes, pool: Sequence[str], wanted: int, barred: Sequence[Any] = ()
) -> list[str]:
    """For each seat the first member on a random walk that is neither barred nor seated.

    A walk sees all of a pool of up to 32; no test has more.
    """
    seated: list[str] = []
    for seat in range(wanted):
        walk = _walk(_hash(["bytes32", "uint256"], [seed, seat]), pool)
        seated += [who for who in walk if who not in barred and who not in seated][:1]
    return seated


def drawn_segments(seed: bytes, length: int, count: int) -> list[int]:
    """One segment freely, and the others from the rest of the ring with gaps between them."""
    first = _number(["bytes32", "string"], [seed, "first"]) % length
    line = length - 3 - (count - 2)
    places: list[int] = []
    for index in range(count - 1):
        place = _number(["bytes32", "string", "uint256"], [seed, "next", index]) % (line - index)
        for taken in sorted(places):
            place += taken <= place
        places.append(place)
    others = (first + 2 + place + gap for gap, place in enumerate(sorted(places)))
    return [first, *(other % length for other in others)]


def opt_out(yard: Yard) -> None:
    """Nobody of the pool may be drawn: all ask for more than anybody pays."""
    for auditor in yard.auditors:
        yard.market.setDuty(2**96 - 1, 0, 0, {"from": auditor})


def opt_in(yard: Yard, *members: Any) -> None:
    for member in members:
        yard.market.setDuty(0, 0, 0, {"from": member})


def _walk(seed: bytes, pool: Sequence[str]) -> list[str]:
    """From a random place on in random strides, which are prime to the pool's size."""
    size = len(pool)
    start = int.from_bytes(seed, "big") % size
    stride = 1 + _number(["bytes32", "string"], [seed, "step"]) % (size - 1)
    while gcd(stride, size) != 1:
        stride = stride % (size - 1) + 1
    return [pool[(start + stride * step) % size] for step in range(size)]


def _number(types: list[str], values: list[Any]) -> int:
    return int.from_bytes(_hash(types, values), "big")


def _hash(types: list[str], values: list[Any]) -> bytes:
    return keccak(encode(types, values))
