"""`challenge`: anyone may say that a segment is wrong, and put money behind it."""

import pytest

from tests.contracts.yard import BOND, SEGMENTS, digest, event, reverts, trace_of
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import (
    OWN_PANEL,
    UNSERVED,
    DisputeState,
    Policy,
    TaskState,
)
from trainyard.protocol.trace import Trace

SEGMENT = 4


@pytest.fixture(scope="module")
def task(staffed_yard):
    return staffed_yard.window()


def test_challenge_calls_referees(yard, task):
    """rules D2, A1"""
    claimed = "0x" + yard.trace.after(SEGMENT).hex()

    tx = yard.challenge(task, SEGMENT)

    assert event(tx, "SegmentChallenged") == {
        "id": task,
        "segment": SEGMENT,
        "accuser": yard.challenger,
        "auditSeat": 0,
        "bond": BOND,
        "claimed": claimed,
        "serveBy": 0,
    }
    # From the window's end on, time to serve, and two committees that commit and reveal.
    dismiss_at = yard.market.task(task)["deadline"] + 600 + 2 * (3_600 + 600)
    assert event(tx, "RefereesCalled") == {
        "id": task,
        "segment": SEGMENT,
        "round": 1,
        "drawBlock": tx.block_number + 1,
        "pool": 12,
        "calledAt": tx.timestamp,
        "dismissAt": dismiss_at,
    }
    dispute = yard.market.dispute(task, SEGMENT)
    assert dispute["accuser"] == yard.challenger
    assert dispute["state"] == DisputeState.CALLED
    assert (dispute["auditSeat"], dispute["round"], dispute["bond"]) == (0, 1, BOND)
    assert dispute["deadline"] == dismiss_at
    assert dispute["claimed"] == claimed
    assert yard.market.panel(task, OWN_PANEL, 0)["disputes"] == 1
    assert yard.state(task) == TaskState.DISPUTED


def test_challenge_takes_a_bond(yard, task):
    """rule D2"""
    credit = yard.credit(yard.challenger)

    yard.challenge(task, SEGMENT)

    assert yard.credit(yard.challenger) == credit - BOND == credit - yard.market.bondOf(task)


@pytest.mark.parametrize("role", ["requester", "workers", "auditors"])
def test_anyone_may_challenge(yard, task, role):
    """rule D2: nobody has to be asked, not even a party."""
    who = getattr(yard, role)
    who = who[0] if isinstance(who, list) else who

    yard.challenge(task, SEGMENT, by=who)

    assert yard.market.dispute(task, SEGMENT)["accuser"] == who


def test_challenge_needs_credit_for_the_bond(yard, task):
    """rules D2, V2"""
    yard.fund(yard.stranger, amount=BOND - 1)

    with reverts("MarketInsufficientCredit", yard.stranger, BOND - 1, BOND):
        yard.challenge(task, SEGMENT, by=yard.stranger)


def test_challenge_without_auditors(yard):
    """rules D2, A5: the window protects where nobody could be drawn."""
    task = yard.submitted(audits=0)
    yard.draw(task)

    yard.challenge(task, 0)

    assert yard.state(task) == TaskState.DISPUTED


def test_challenge_in_the_last_second(yard, task):
    """rules C1, D2"""
    yard.at(yard.market.task(task)["deadline"] - 1)

    yard.challenge(task, SEGMENT)

    assert yard.state(task) == TaskState.DISPUTED


@pytest.mark.parametrize("late", [0, 1])
def test_challenge_from_the_deadline_on_is_refused(yard, task, late):
    """rules C1, D2"""
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline + late)

    with reverts("MarketTooLate", task, deadline):
        yard.challenge(task, SEGMENT)


def test_dispute_does_not_extend_the_window(yard, task):
    """rules C1, D2"""
    yard.challenge(task, SEGMENT)
    deadline = yard.market.task(task)["deadline"]
    yard.at(deadline)

    with reverts("MarketTooLate", task, deadline):
        yard.challenge(task, SEGMENT + 1)


def test_window_of_no_length_lets_nobody_challenge(yard):
    """rules C1, D2"""
    task = yard.window(challenge_for=0)
    deadline = yard.market.task(task)["deadline"]
    assert deadline == yard.now()

    with reverts("MarketTooLate", task, deadline):
        yard.challenge(task, SEGMENT)


@pytest.mark.parametrize("segment", [SEGMENTS, OWN_PANEL])
def test_segment_must_exist(yard, task, segment):
    """rule D2"""
    with reverts("MarketNoSuchSegment", task, segment):
        yard.market.challenge(
            task,
            segment,
            yard.claim.as_tuple(),
            yard.trace.states[-1],
            yard.trace.proof(SEGMENTS),
            {"from": yard.challenger},
        )


def test_challenged_claim_must_be_the_lead(yard, task):
    """rule D2"""
    other = Claim.of(digest("other result"), yard.claim.root)

    with reverts("MarketWrongClaim", task, other.digest):
        yard.market.challenge(
            task,
            SEGMENT,
            other.as_tuple(),
            yard.trace.after(SEGMENT),
            yard.trace.proof_after(SEGMENT),
            {"from": yard.challenger},
        )


@pytest.mark.parametrize(
    ("state", "proof"),
    [
        (trace_of("other").after(SEGMENT), trace_of().proof_after(SEGMENT)),
        (trace_of().after(SEGMENT), trace_of("other").proof_after(SEGMENT)),
        (trace_of().after(SEGMENT + 1), trace_of().proof_after(SEGMENT + 1)),
        (trace_of().after(SEGMENT), trace_of().proof_after(SEGMENT)[:-1]),
    ],
    ids=["state", "proof", "neighbour", "short"],
)
def test_challenger_must_show_the_workers_state(yard, task, state, proof):
    """rules D2, A10: nobody can put another state into the workers' mouth."""
    with reverts("MarketWrongProof", task, SEGMENT):
        yard.market.challenge(
            task, SEGMENT, yard.claim.as_tuple(), state, proof, {"from": yard.challenger}
        )


def test_zero_is_no_state(yard):
    """rule A10: referees that cannot fetch the data would confirm it."""
    empty = Trace([UNSERVED] * (SEGMENTS + 1))
    claim = Claim.of(digest("result"), empty.root)
    task = yard.running(audits=0)
    yard.submit(task, yard.workers[0], claim=claim)
    yard.draw(task)

    with reverts("MarketWrongProof", task, SEGMENT):
        yard.market.challenge(
            task,
            SEGMENT,
            claim.as_tuple(),
            UNSERVED,
            empty.proof_after(SEGMENT),
            {"from": yard.challenger},
        )


def test_segment_is_challenged_once(yard, task):
    """rule D2"""
    yard.challenge(task, SEGMENT)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.CALLED):
        yard.challenge(task, SEGMENT, by=yard.requester)


def test_confirmed_segment_is_not_challenged_again(yard, task):
    """rule D2"""
    yard.challenge(task, SEGMENT)
    yard.rule(task, SEGMENT, [yard.trace.after(SEGMENT)] * 3)
    assert yard.state(task) == TaskState.WINDOW

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.REJECTED):
        yard.challenge(task, SEGMENT)


def test_nothing_is_challenged_before_the_window(yard):
    """rules D2, A6: a challenge would open leaves to auditors who have not answered."""
    task = yard.auditing()

    with reverts("MarketUnexpectedState", task, TaskState.AUDITING):
        yard.challenge(task, SEGMENT)


def test_nothing_is_challenged_after_the_end(yard, task):
    """rule D2"""
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})

    with reverts("MarketUnexpectedState", task, TaskState.SETTLED):
        yard.challenge(task, SEGMENT)


def test_scores_are_not_challenged(yard):
    """rule D2"""
    task = yard.scoring(Policy.SCORE, [[950]] * 3)

    with reverts("MarketWrongPolicy", task, Policy.SCORE):
        yard.challenge(task, SEGMENT)
