"""`resolve`: moves a dispute on, as soon as its stage is over and not before."""

import pytest

from tests.contracts.yard import digest, event, reverts, trace_of
from trainyard.protocol.market import DisputeState, Failure, TaskState

SEGMENT = 4
FOUND = digest("what referees found")
OTHER = digest("what others found")


@pytest.fixture(scope="module")
def challenged(staffed_yard):
    """Three referees are to hear a challenge of segment 4."""
    task = staffed_yard.audited()
    staffed_yard.challenge(task, SEGMENT)
    staffed_yard.draw_referees(task, SEGMENT)
    return task


@pytest.fixture
def ruling(yard, challenged):
    """All three have committed and are to reveal."""
    for seat in yard.referees(challenged, SEGMENT):
        yard.referee_commit(challenged, SEGMENT, seat, FOUND)
    return challenged


@pytest.fixture
def unserved(yard):
    """The workers are asked for the leaf of segment 4."""
    task = yard.audited()
    yard.market.challengeUnserved(task, SEGMENT, {"from": yard.challenger})
    return task


def resolve(yard, task, segment=SEGMENT):
    return yard.market.resolve(task, segment, {"from": yard.stranger})


def dispute_state(yard, task):
    return yard.market.dispute(task, SEGMENT)["state"]


def deadline(yard, task):
    return yard.market.dispute(task, SEGMENT)["deadline"]


def test_workers_have_their_time_to_serve(yard, unserved):
    """rules C1, D3"""
    serve_by = deadline(yard, unserved)
    yard.at(serve_by - 1)

    with reverts("MarketTooEarly", unserved, serve_by):
        resolve(yard, unserved)


@pytest.mark.parametrize("late", [0, 1])
def test_unserved_leaf_ends_the_task(yard, unserved, late):
    """rules C1, C2, D3"""
    yard.at(deadline(yard, unserved) + late)

    tx = resolve(yard, unserved)

    assert event(tx, "DisputeResolved") == {
        "id": unserved,
        "segment": SEGMENT,
        "outcome": DisputeState.UPHELD,
        "truth": "0x" + "00" * 32,
    }
    assert event(tx, "TaskFailed")["reason"] == Failure.WITHHELD
    assert dispute_state(yard, unserved) == DisputeState.UPHELD
    assert yard.state(unserved) == TaskState.FAILED


def test_referees_have_their_time_to_commit(yard, challenged):
    """rules C1, D4"""
    commit_by = deadline(yard, challenged)
    yard.at(commit_by - 1)

    with reverts("MarketTooEarly", challenged, commit_by):
        resolve(yard, challenged)


@pytest.mark.parametrize("late", [0, 1])
def test_hearing_ends_by_time(yard, challenged, late):
    """rules C1, C2, D4: who has committed by then may reveal."""
    yard.referee_commit(challenged, SEGMENT, yard.referees(challenged, SEGMENT)[0], FOUND)
    commit_by = deadline(yard, challenged)
    yard.at(commit_by + late)

    tx = resolve(yard, challenged)

    assert event(tx, "RulingStarted") == {
        "id": challenged,
        "segment": SEGMENT,
        "round": 1,
        "revealBy": commit_by + late + 600,
    }
    assert dispute_state(yard, challenged) == DisputeState.RULING
    assert deadline(yard, challenged) == commit_by + late + 600


def test_referees_have_their_time_to_reveal(yard, ruling):
    """rules C1, D4: though a majority has revealed already."""
    for seat in yard.referees(ruling, SEGMENT)[:2]:
        yard.referee_reveal(ruling, SEGMENT, seat, FOUND)
    reveal_by = deadline(yard, ruling)
    yard.at(reveal_by - 1)

    with reverts("MarketTooEarly", ruling, reveal_by):
        resolve(yard, ruling)


@pytest.mark.parametrize("late", [0, 1])
def test_ruling_ends_by_time(yard, ruling, late):
    """rules C1, C2, D4"""
    for seat in yard.referees(ruling, SEGMENT)[:2]:
        yard.referee_reveal(ruling, SEGMENT, seat, FOUND)
    yard.at(deadline(yard, ruling) + late)

    resolve(yard, ruling)

    assert dispute_state(yard, ruling) == DisputeState.UPHELD


def test_ruling_ends_with_the_last_reveal(yard, ruling):
    """rule D4: nothing is left to wait for."""
    for seat in yard.referees(ruling, SEGMENT):
        yard.referee_reveal(ruling, SEGMENT, seat, FOUND)

    tx = resolve(yard, ruling)

    assert event(tx, "DisputeResolved") == {
        "id": ruling,
        "segment": SEGMENT,
        "outcome": DisputeState.UPHELD,
        "truth": "0x" + FOUND.hex(),
    }
    assert event(tx, "TaskFailed")["reason"] == Failure.FRAUD
    assert bytes(yard.market.dispute(ruling, SEGMENT)["truth"]) == FOUND
    assert yard.state(ruling) == TaskState.FAILED


def test_confirmed_segment_lets_the_task_go_on(yard, challenged):
    """rule D4"""
    claimed = yard.trace.after(SEGMENT)
    for seat in yard.referees(challenged, SEGMENT):
        yard.referee_commit(challenged, SEGMENT, seat, claimed)
    for seat in yard.referees(challenged, SEGMENT):
        yard.referee_reveal(challenged, SEGMENT, seat, claimed)

    tx = resolve(yard, challenged)

    assert event(tx, "DisputeResolved") == {
        "id": challenged,
        "segment": SEGMENT,
        "outcome": DisputeState.REJECTED,
        "truth": "0x" + claimed.hex(),
    }
    assert "TaskFailed" not in tx.events
    assert yard.state(challenged) == TaskState.WINDOW


@pytest.mark.parametrize(
    "answers", [[FOUND, FOUND, None, None, None], [FOUND, FOUND, OTHER, None, None]]
)
def test_majority_is_one_of_the_whole_committee(yard, challenged, answers):
    """rules D4, D5: silence does not make the answer of a few the truth."""
    yard.pass_dispute_deadline(challenged, SEGMENT)
    resolve(yard, challenged)
    resolve(yard, challenged)

    tx = yard.rule(challenged, SEGMENT, answers)

    assert event(tx, "DisputeResolved")["outcome"] == DisputeState.INCONCLUSIVE


@pytest.mark.parametrize(
    "answers", [[FOUND, OTHER, None], [FOUND, None, None], [None] * 3], ids=["split", "one", "none"]
)
def test_committee_without_a_majority_calls_a_second(yard, answers):
    """rules D5, A1: by a block that is still to come."""
    task = yard.audited()
    yard.challenge(task, SEGMENT)
    window_ends = yard.market.task(task)["deadline"]

    tx = yard.rule(task, SEGMENT, answers)

    assert event(tx, "RefereesCalled") == {
        "id": task,
        "segment": SEGMENT,
        "round": 2,
        "drawBlock": tx.block_number + 1,
        "pool": 12,
        "calledAt": tx.timestamp,
        "dismissAt": max(window_ends, tx.timestamp) + 600 + 2 * (3_600 + 600),
    }
    dispute = yard.market.dispute(task, SEGMENT)
    assert dispute["state"] == DisputeState.CALLED
    assert (dispute["round"], dispute["escalated"]) == (2, True)
    assert yard.state(task) == TaskState.DISPUTED


def test_two_committees_without_a_majority_end_the_task(yard):
    """rule D5"""
    task = yard.audited()
    yard.challenge(task, SEGMENT)
    yard.rule(task, SEGMENT, [FOUND, OTHER, None])

    tx = yard.rule(task, SEGMENT, [FOUND, FOUND, OTHER, OTHER, None])

    assert event(tx, "DisputeResolved") == {
        "id": task,
        "segment": SEGMENT,
        "outcome": DisputeState.INCONCLUSIVE,
        "truth": "0x" + "00" * 32,
    }
    assert event(tx, "TaskFailed")["reason"] == Failure.INCONCLUSIVE
    assert yard.state(task) == TaskState.FAILED


def test_second_committee_alone_decides(yard):
    """rule D5: votes of the first are not counted again."""
    claimed = yard.trace.after(SEGMENT)
    task = yard.audited()
    yard.challenge(task, SEGMENT)
    yard.rule(task, SEGMENT, [FOUND, claimed, None])

    tx = yard.rule(task, SEGMENT, [FOUND, FOUND, claimed, claimed, claimed])

    assert event(tx, "DisputeResolved")["outcome"] == DisputeState.REJECTED


def test_called_dispute_waits_for_the_draw(yard):
    """rule D4"""
    task = yard.audited()
    yard.challenge(task, SEGMENT)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, DisputeState.CALLED):
        resolve(yard, task)


def test_segment_without_a_dispute_is_not_resolved(yard, challenged):
    """rule D4"""
    with reverts("MarketUnexpectedDispute", challenged, SEGMENT + 1, DisputeState.NONE):
        resolve(yard, challenged, SEGMENT + 1)


@pytest.mark.parametrize(
    ("rounds", "outcome"),
    [
        ([[FOUND] * 3], DisputeState.UPHELD),
        ([[trace_of().after(SEGMENT)] * 3], DisputeState.REJECTED),
        ([[None] * 3, [None] * 5], DisputeState.INCONCLUSIVE),
    ],
)
def test_dispute_is_resolved_once(yard, rounds, outcome):
    """rules D4, D5"""
    task = yard.audited()
    yard.challenge(task, SEGMENT)
    for answers in rounds:
        yard.rule(task, SEGMENT, answers)

    with reverts("MarketUnexpectedDispute", task, SEGMENT, outcome):
        resolve(yard, task)
