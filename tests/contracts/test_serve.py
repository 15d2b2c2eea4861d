"""`serve`: the workers show the leaf that was asked for."""

import pytest

from tests.contracts.yard import SEGMENTS, digest, event, reverts, trace_of
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import UNSERVED, DisputeState, TaskState
from trainyard.protocol.trace import Trace

SEGMENT = 4


@pytest.fixture(scope="module")
def task(staffed_yard):
    """Somebody says that segment 4 is not served."""
    task = staffed_yard.window()
    staffed_yard.market.challengeUnserved(task, SEGMENT, {"from": staffed_yard.challenger})
    return task


def serve(yard, task, segment=SEGMENT, by=None, claim=None, state=None, proof=None):
    return yard.market.serve(
        task,
        segment,
        (claim or yard.claim).as_tuple(),
        yard.trace.after(segment) if state is None else state,
        yard.trace.proof_after(segment) if proof is None else proof,
        {"from": by or yard.workers[0]},
    )


def test_served_leaf_goes_to_the_referees(yard, task):
    """rule D3: they try to fetch the data."""
    claimed = "0x" + yard.trace.after(SEGMENT).hex()

    tx = serve(yard, task)

    assert event(tx, "SegmentServed") == {"id": task, "segment": SEGMENT, "claimed": claimed}
    assert event(tx, "RefereesCalled") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "drawBlock": tx.block_number + 1,
        "pool": 12,
        "calledAt": tx.timestamp,
        "dismissAt": yard.market.task(task)["deadline"] + 600 + 2 * (3_600 + 600),
    }
    dispute = yard.market.dispute(task, SEGMENT)
    assert dispute["state"] == DisputeState.CALLED
    assert dispute["accuser"] == yard.challenger
    assert dispute["claimed"] == claimed


def test_anyone_may_serve(yard, task):
    """rules D3, A7"""
    serve(yard, task, by=yard.stranger)

    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.CALLED


def test_serving_in_the_last_second(yard, task):
    """rules C1, D3"""
    yard.at(yard.market.dispute(task, SEGMENT)["deadline"] - 1)

    serve(yard, task)

    assert yard.market.dispute(task, SEGMENT)["state"] == DisputeState.CALLED


@pytest.mark.parametrize("late", [0, 1])
def test_serving_from_the_deadline_on_is_refused(yard, task, late):
    """rules C1, D3"""
    deadline = yard.market.dispute(task, SEGMENT)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        serve(yard, task)


def test_served_claim_must_be_the_lead(yard, task):
    """rule D3"""
    other = Claim.of(digest("other result"), yard.claim.root)

    with reverts("MarketWrongClaim", task, other.digest):
        serve(yard, task, claim=other)


@pytest.mark.parametrize(
    ("state", "proof"),
    [
        (trace_of("other").after(SEGMENT), trace_of().proof_after(SEGMENT)),
        (trace_of().after(SEGMENT), trace_of("other").proof_after(SEGMENT)),
        (trace_of().after(SEGMENT - 1), trace_of().proof_after(SEGMENT - 1)),
        (trace_of().after(SEGMENT), []),
    ],
    ids=["state", "proof", "neighbour", "empty"],
)
def test_served_state_must_be_in_the_trace(yard, task, state, proof):
    """rules D3, A10"""
    with reverts("MarketWrongProof", task, SEGMENT):
        serve(yard, task, state=state, proof=proof)


def test_zero_is_no_state(yard):
    """rule A10: workers cannot serve what means that nothing was served."""
    empty = Trace([UNSERVED] * (SEGMENTS + 1))
    claim = Claim.of(digest("result"), empty.root)
    task = yard.running(audits=0)
    yard.submit(task, yard.workers[0], claim=claim)
    yard.draw(task)
    yard.market.challengeUnserved(task, SEGMENT, {"from": yard.challenger})

    with reverts("MarketWrongProof", task, SEGMENT):
        serve(yard, task, claim=claim, state=UNSERVED, proof=empty.proof_after(SEGMENT))


def test_leaf_is_served_once(yard, task):
    """rule D3"""
    serve(yard, task)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.CALLED):
        serve(yard, task)


def test_only_what_was_asked_for_is_served(yard, task):
    """rule D3"""
    with reverts("MarketUnexpectedDispute", task, SEGMENT + 1, DisputeState.NONE):
        serve(yard, task, SEGMENT + 1)


def test_nothing_is_served_without_a_dispute(yard):
    """rule D3"""
    task = yard.window()

    with reverts("MarketUnexpectedState", task, TaskState.WINDOW):
        serve(yard, task)
