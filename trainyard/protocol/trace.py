"""Merkle trees over the states of a training run, exactly as `contracts/libraries/Trace.sol`.

A trace of n segments has n + 1 states. State i is leaf i; the tree is filled up with zero words to
the next power of two, and a proof is tied to its position.
"""

from collections.abc import Sequence

from eth_utils.crypto import keccak

_LEAF = b"\x00"
_NODE = b"\x01"
_EMPTY = bytes(32)


class Trace:
    """The committed states of one training run."""

    def __init__(self, states: Sequence[bytes]) -> None:
        if len(states) < 2:
            raise ValueError(f"a trace has at least two states, not {len(states)}")
        if any(len(state) != 32 for state in states):
            raise ValueError("a state hash has 32 bytes")
        self.states = tuple(states)
        self._levels = _levels([leaf(state) for state in states])

    @property
    def segments(self) -> int:
        return len(self.states) - 1

    @property
    def root(self) -> bytes:
        return self._levels[-1][0]

    def after(self, segment: int) -> bytes:
        """The state that `segment` ends with."""
        if not 0 <= segment < self.segments:
            raise IndexError(f"segment {segment} of a trace of {self.segments}")
        return self.states[segment + 1]

    def proof(self, index: int) -> list[bytes]:
        """The siblings of state `index`, from the leaf up."""
        if not 0 <= index < len(self.states):
            raise IndexError(f"state {index} of a trace of {len(self.states)} states")
        return [level[(index >> depth) ^ 1] for depth, level in enumerate(self._levels[:-1])]

    def proof_after(self, segment: int) -> list[bytes]:
        return self.proof(segment + 1)


def leaf(state: bytes) -> bytes:
    return keccak(_LEAF + state)


def node(left: bytes, right: bytes) -> bytes:
    return keccak(_NODE + left + right)


def verify(root: bytes, segments: int, index: int, state: bytes, proof: Sequence[bytes]) -> bool:
    """Whether `state` is state `index` of the trace of `segments` segments under `root`."""
    if not 0 <= index <= segments or len(proof) != segments.bit_length():
        return False
    digest = leaf(state)
    for sibling in proof:
        digest = node(sibling, digest) if index & 1 else node(digest, sibling)
        index >>= 1
    return digest == root


def _levels(leaves: list[bytes]) -> list[list[bytes]]:
    width = 1 << (len(leaves) - 1).bit_length()
    levels = [leaves + [_EMPTY] * (width - len(leaves))]
    while len(levels[-1]) > 1:
        below = levels[-1]
        levels.append([node(below[i], below[i + 1]) for i in range(0, len(below), 2)])
    return levels
