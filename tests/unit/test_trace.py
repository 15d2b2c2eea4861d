"""Merkle trees over the states of a training run."""

import pytest
from eth_utils.crypto import keccak
from hypothesis import given
from hypothesis import strategies as st

from trainyard.protocol.trace import Trace, leaf, node, verify

ZERO = bytes(32)


def states(count: int) -> list[bytes]:
    return [keccak(text=f"state {index}") for index in range(count)]


def test_root_is_made_by_hand() -> None:
    """Rule A10: leaves and nodes are hashed apart, and the tree is filled up with zero words."""
    first, second, third = states(3)
    trace = Trace([first, second, third])

    by_hand = node(node(leaf(first), leaf(second)), node(leaf(third), ZERO))
    assert trace.root == by_hand
    assert leaf(first) == keccak(b"\x00" + first)
    assert node(first, second) == keccak(b"\x01" + first + second)


def test_segment_lies_between_two_states() -> None:
    trace = Trace(states(4))

    assert trace.segments == 3
    assert [trace.after(segment) for segment in range(3)] == states(4)[1:]
    assert trace.proof_after(1) == trace.proof(2)


@given(st.integers(2, 70), st.data())
def test_each_state_is_proven_at_its_place(count: int, data: st.DataObject) -> None:
    """Rule A10: a proof holds for its own state and position alone."""
    trace = Trace(states(count))
    index = data.draw(st.integers(0, count - 1))
    state, proof = trace.states[index], trace.proof(index)

    assert verify(trace.root, trace.segments, index, state, proof)
    assert not verify(trace.root, trace.segments, index, keccak(text="other"), proof)
    for other in range(count):
        if other != index:
            assert not verify(trace.root, trace.segments, other, state, proof)


@given(st.integers(2, 70))
def test_proof_has_the_depth_of_the_tree(count: int) -> None:
    """Rule A10: shorter or longer proofs prove nothing, so no inner node passes for a leaf."""
    trace = Trace(states(count))
    proof = trace.proof(0)

    assert len(proof) == trace.segments.bit_length()
    assert not verify(trace.root, trace.segments, 0, trace.states[0], proof[:-1])
    assert not verify(trace.root, trace.segments, 0, trace.states[0], [*proof, ZERO])


@pytest.mark.parametrize("index", [-1, 4])
def test_proof_of_no_state_is_refused(index: int) -> None:
    trace = Trace(states(4))

    assert not verify(trace.root, trace.segments, index, trace.states[0], trace.proof(0))
    with pytest.raises(IndexError, match=f"state {index} of a trace of 4 states"):
        trace.proof(index)


@pytest.mark.parametrize("segment", [-1, 3])
def test_state_after_no_segment_is_refused(segment: int) -> None:
    with pytest.raises(IndexError, match=f"segment {segment} of a trace of 3"):
        Trace(states(4)).after(segment)


@pytest.mark.parametrize("count", [0, 1])
def test_trace_has_a_segment(count: int) -> None:
    with pytest.raises(ValueError, match=f"at least two states, not {count}"):
        Trace(states(count))


def test_state_hash_has_its_length() -> None:
    with pytest.raises(ValueError, match="32 bytes"):
        Trace([ZERO, bytes(31)])
