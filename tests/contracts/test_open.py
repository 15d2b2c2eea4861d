"""`open`: the workers show what they had claimed, once the answers are committed."""

import pytest

from tests.contracts.yard import SEGMENTS, digest, event, reverts, trace_of
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import OWN_PANEL, UNSERVED, Policy, TaskState
from trainyard.protocol.trace import Trace


@pytest.fixture(scope="module")
def task(staffed_yard):
    return staffed_yard.opening()


@pytest.fixture(scope="module")
def silent(staffed_yard, task):
    """A task of which nobody has committed yet, but time may pass."""
    return staffed_yard.auditing()


@pytest.fixture(scope="module")
def leaves(staffed_yard, task):
    """States and proofs that are to be opened."""
    segments = [seat.segment for seat in staffed_yard.seats(task)]
    trace = staffed_yard.trace
    return (
        [trace.after(segment) for segment in segments],
        [trace.proof_after(segment) for segment in segments],
    )


def test_opening_starts_the_window(yard, task, leaves):
    """rule A7: anyone may open who knows the states."""
    states, proofs = leaves

    tx = yard.market.open(task, yard.claim.as_tuple(), states, proofs, {"from": yard.stranger})

    assert event(tx, "WindowStarted") == {
        "id": task,
        "states": tuple("0x" + state.hex() for state in states),
        "revealBy": tx.timestamp + 600,
        "challengeBy": tx.timestamp + 3_600,
    }
    assert yard.state(task) == TaskState.WINDOW
    assert yard.market.task(task)["deadline"] == tx.timestamp + 3_600
    assert yard.market.panel(task, OWN_PANEL, 0)["revealBy"] == tx.timestamp + 600
    for index, state in enumerate(states):
        assert bytes(yard.market.seat(task, OWN_PANEL, 0, index)["opened"]) == state


def test_opening_in_the_last_second(yard, task):
    """rules A7, C1"""
    yard.at(yard.market.task(task)["deadline"] - 1)

    yard.open(task)

    assert yard.state(task) == TaskState.WINDOW


@pytest.mark.parametrize("late", [0, 1])
def test_opening_from_the_deadline_on_is_refused(yard, task, late):
    """rules A7, C1"""
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        yard.open(task)


def test_opening_is_refused_while_auditors_may_commit(yard, silent):
    """rules A6, C1: who could wait for the opening could copy it."""
    deadline = yard.market.task(silent)["deadline"]
    yard.at(deadline - 1)

    with reverts("MarketTooEarly", silent, deadline):
        yard.open(silent)


@pytest.mark.parametrize("late", [0, 1])
def test_opening_does_not_wait_for_silent_auditors(yard, silent, late):
    """rules A6, C1"""
    yard.at(yard.market.task(silent)["deadline"] + late)

    yard.open(silent)

    assert yard.state(silent) == TaskState.WINDOW


@pytest.mark.parametrize(
    "claim",
    [
        Claim.of(digest("other result"), trace_of().root),
        Claim.of(digest("result"), trace_of("other").root),
        Claim.of(digest("result"), trace_of().root, [10_000]),
    ],
    ids=["result", "root", "shares"],
)
def test_opened_claim_must_be_the_lead(yard, task, leaves, claim):
    """rule A7"""
    with reverts("MarketWrongClaim", task, claim.digest):
        yard.market.open(task, claim.as_tuple(), *leaves, {"from": yard.workers[0]})


def test_every_seat_gets_a_state(yard, task, leaves):
    """rule A7"""
    states, proofs = leaves

    with reverts("MarketWrongLength", 1, 2):
        yard.market.open(task, yard.claim.as_tuple(), states[:1], proofs, {"from": yard.workers[0]})


def test_every_state_gets_a_proof(yard, task, leaves):
    """rule A7"""
    states, proofs = leaves

    with reverts("MarketWrongLength", 3, 2):
        yard.market.open(
            task, yard.claim.as_tuple(), states, [*proofs, []], {"from": yard.workers[0]}
        )


@pytest.mark.parametrize(
    "forge",
    [
        lambda state, proof: (digest("forged"), proof),
        lambda state, proof: (state, [*proof[:-1], digest("forged")]),
        lambda state, proof: (state, proof[:-1]),
        lambda state, proof: (state, [*proof, digest("forged")]),
        lambda state, proof: (state, []),
    ],
    ids=["state", "sibling", "short", "long", "empty"],
)
def test_state_must_be_in_the_trace(yard, task, leaves, forge):
    """rules A7, A10"""
    states, proofs = leaves
    segment = yard.seats(task)[1].segment
    state, proof = forge(states[1], proofs[1])

    with reverts("MarketWrongProof", task, segment):
        yard.market.open(
            task,
            yard.claim.as_tuple(),
            [states[0], state],
            [proofs[0], proof],
            {"from": yard.workers[0]},
        )


def test_state_must_be_that_of_its_segment(yard, task, leaves):
    """rules A7, A10: the other seat's leaf has a proof, but another place."""
    states, proofs = leaves
    segment = yard.seats(task)[0].segment

    with reverts("MarketWrongProof", task, segment):
        yard.market.open(
            task, yard.claim.as_tuple(), states[::-1], proofs[::-1], {"from": yard.workers[0]}
        )


def test_zero_is_no_state(yard):
    """rule A10: it is what auditors answer who were not served, and would match it."""
    empty = Trace([UNSERVED] * (SEGMENTS + 1))
    claim = Claim.of(digest("result"), empty.root)
    task = yard.running()
    yard.submit(task, yard.workers[0], claim=claim)
    yard.draw(task)
    seats = yard.seats(task)
    for seat in seats:
        yard.audit_commit(task, seat, UNSERVED)

    with reverts("MarketWrongProof", task, seats[0].segment):
        yard.market.open(
            task,
            claim.as_tuple(),
            [UNSERVED, UNSERVED],
            [empty.proof_after(seat.segment) for seat in seats],
            {"from": yard.workers[0]},
        )


def test_nothing_is_opened_to_evaluators(yard):
    """rule A7"""
    task = yard.auditing(Policy.SCORE)
    yard.pass_deadline(task)

    with reverts("MarketWrongPolicy", task, Policy.SCORE):
        yard.open(task)


def test_nothing_is_opened_before_the_draw(yard):
    """rules A6, A7"""
    task = yard.submitted()

    with reverts("MarketUnexpectedState", task, TaskState.SUBMITTED):
        yard.open(task)


def test_states_are_opened_once(yard, task):
    """rule A7"""
    yard.open(task)

    with reverts("MarketUnexpectedState", task, TaskState.WINDOW):
        yard.open(task)
