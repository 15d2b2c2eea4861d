"""Makes `trace.json`: `python -m tests.vectors.make_trace > tests/vectors/trace.json`.

Merkle trees of a few lengths, also for whoever writes the tree in yet another language.
"""

import json
from typing import Any

from eth_utils.crypto import keccak

from trainyard.protocol.trace import Trace

# Around the powers of two, where the depth of the tree changes.
LENGTHS = [1, 2, 3, 4, 7, 8, 9]


def make_vectors() -> list[dict[str, Any]]:
    """Traces whose states are hashes of their place, with the proof of each state."""
    vectors = []
    for segments in LENGTHS:
        states = [keccak(text=f"trace of {segments}, state {i}") for i in range(segments + 1)]
        trace = Trace(states)
        vectors.append(
            {
                "segments": segments,
                "states": [spell(state) for state in states],
                "root": spell(trace.root),
                "proofs": [[spell(word) for word in trace.proof(i)] for i in range(segments + 1)],
            }
        )
    return vectors


def spell(word: bytes) -> str:
    return "0x" + word.hex()


if __name__ == "__main__":
    print(json.dumps(make_vectors(), indent=1))
