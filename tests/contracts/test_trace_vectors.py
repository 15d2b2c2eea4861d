"""Merkle trees of traces: fixed vectors, and properties, in Python and in Solidity."""

import json
from pathlib import Path

import pytest
from brownie import TraceProbe, accounts
from brownie.test import given
from eth_utils.crypto import keccak
from hypothesis import strategies as st

from tests.vectors.make_trace import make_vectors, spell
from trainyard.protocol.trace import Trace, verify

VECTORS = json.loads((Path(__file__).resolve().parents[1] / "vectors/trace.json").read_text())

words = st.binary(min_size=32, max_size=32)
traces = st.lists(words, min_size=2, max_size=70).map(Trace)


def read(word: str) -> bytes:
    return bytes.fromhex(word.removeprefix("0x"))


@pytest.fixture(scope="module")
def probe(module_isolation):
    return TraceProbe.deploy({"from": accounts[0]})


@pytest.fixture(params=VECTORS, ids=lambda vector: str(vector["segments"]))
def vector(request):
    return request.param


def test_vectors_are_what_made_them():
    """Rule A10: the file was not edited by hand."""
    assert make_vectors() == VECTORS


def test_python_agrees_with_the_vectors(vector):
    """Rule A10: root and proofs of each length."""
    trace = Trace([read(state) for state in vector["states"]])

    assert trace.segments == vector["segments"]
    assert spell(trace.root) == vector["root"]
    assert [
        [spell(word) for word in trace.proof(index)] for index in range(len(trace.states))
    ] == vector["proofs"]


def test_solidity_agrees_with_the_vectors(probe, vector):
    """Rule A10: every state is proven at its own place."""
    segments = vector["segments"]
    for index, (state, proof) in enumerate(zip(vector["states"], vector["proofs"], strict=True)):
        assert probe.verify(vector["root"], segments, index, state, proof) is True
    assert probe.depth(segments) == len(vector["proofs"][0])


def test_solidity_refuses_a_state_at_any_other_place(probe, vector):
    """Rule A10: a trace holds one state per index."""
    segments, root = vector["segments"], vector["root"]
    state, proof = vector["states"][1], vector["proofs"][1]
    taken = [
        index for index in range(segments + 2) if probe.verify(root, segments, index, state, proof)
    ]

    assert taken == [1]


@given(segments=st.integers(0, 2**256 - 1))
def test_depth_is_the_bit_length(probe, segments):
    """Rule A10: a tree has a leaf more than segments, filled up to a power of two."""
    assert probe.depth(segments) == segments.bit_length()


@given(trace=traces, data=st.data())
def test_both_accept_what_python_proves(probe, trace, data):
    """Rules A7, A10: whatever the length, every state has its proof."""
    index = data.draw(st.integers(0, trace.segments))
    proof = trace.proof(index)
    state = trace.states[index]

    assert verify(trace.root, trace.segments, index, state, proof) is True
    assert probe.verify(trace.root, trace.segments, index, state, proof) is True


# What a cheat may change of a valid proof.
TAMPERINGS = ["state", "root", "index", "segments", "sibling", "longer", "shorter", "inner node"]


@given(trace=traces, other=words, tampering=st.sampled_from(TAMPERINGS), data=st.data())
def test_both_refuse_what_was_tampered_with(probe, trace, other, tampering, data):
    """Rule A10: proofs are tied to their state, position and depth."""
    segments, index = trace.segments, data.draw(st.integers(0, trace.segments))
    root, state, proof = trace.root, trace.states[index], trace.proof(index)
    match tampering:
        case "state":
            state = other
        case "root":
            root = other
        case "index":
            index = (index + data.draw(st.integers(1, segments))) % (segments + 1)
        case "segments":
            segments = 1 << len(proof) if data.draw(st.booleans()) else segments >> 1
        case "sibling":
            proof[data.draw(st.integers(0, len(proof) - 1))] = other
        case "longer":
            proof = [*proof, other]
        case "shorter":
            proof = proof[:-1]
        case _:
            # A node's own preimage is no leaf: the two are hashed apart.
            state, proof, index = keccak(state + proof[0]), proof[1:], index >> 1

    # A change may leave all as it was, say where a sibling was zero already.
    untouched = (root, segments, state, proof) == (
        *(trace.root, trace.segments),
        *(trace.states[index], trace.proof(index)),
    )
    assert verify(root, segments, index, state, proof) is untouched
    assert probe.verify(root, segments, index, state, proof) is untouched


@given(
    root=words,
    segments=st.integers(0, 40),
    index=st.integers(0, 50),
    state=words,
    proof=st.lists(words, max_size=7),
)
def test_both_refuse_nonsense_alike(probe, root, segments, index, state, proof):
    """Rule A10: nothing is proven by chance."""
    assert verify(root, segments, index, state, proof) is False
    assert probe.verify(root, segments, index, state, proof) is False


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([], "a trace has at least two states, not 0"),
        ([bytes(32)], "a trace has at least two states, not 1"),
        ([bytes(32), bytes(31)], "a state hash has 32 bytes"),
    ],
)
def test_python_builds_no_broken_trace(states, message):
    """Rule A10: a segment has a start and an end, and both are hashes."""
    with pytest.raises(ValueError, match=message):
        Trace(states)


@pytest.mark.parametrize("index", [-1, 3])
def test_python_proves_no_state_that_is_not_there(index):
    """Rule A10: neither a state nor a segment beyond the ends."""
    trace = Trace([keccak(text=str(i)) for i in range(3)])
    with pytest.raises(IndexError, match=f"state {index} of a trace of 3 states"):
        trace.proof(index)
    with pytest.raises(IndexError, match=f"segment {index} of a trace of 2"):
        trace.after(index)
