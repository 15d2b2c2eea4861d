"""Which segments a block hash draws, exactly as `contracts/market/Audits.sol` picks them."""

from eth_abi.abi import encode
from eth_utils.crypto import keccak

from trainyard.protocol.market import OWN_PANEL


def auditable(segments: int, audits: int) -> int:
    """How many audits a trace bears: drawn segments are never neighbours."""
    return min(audits, segments if segments < 2 else segments // 2)


def panel_seed(block_hash: bytes, task: int, *, segment: int = OWN_PANEL, round_: int = 0) -> bytes:
    types = ["bytes32", "uint256", "uint32", "uint256"]
    return keccak(encode(types, [block_hash, task, segment, round_]))


def draw_segments(seed: bytes, length: int, count: int) -> list[int]:
    """`count` segments of a ring of `length`, no two of them neighbours, all equally likely."""
    first = _number(encode(["bytes32", "string"], [seed, "first"])) % length
    if count == 1:
        return [first]
    # Leaving a gap after each is the same as drawing from a line that is shorter by the gaps.
    line = length - 3 - (count - 2)
    places: list[int] = []
    for i in range(count - 1):
        number = _number(encode(["bytes32", "string", "uint256"], [seed, "next", i]))
        place = number % (line - i)
        for taken in places:
            if taken > place:
                break
            place += 1
        places = sorted([*places, place])
    return [first, *((first + 2 + place + i) % length for i, place in enumerate(places))]


def _number(encoded: bytes) -> int:
    return int.from_bytes(keccak(encoded), "big")
