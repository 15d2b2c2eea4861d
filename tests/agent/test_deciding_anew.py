"""What an agent does after the chain took something back, or its folder was lost."""

from dataclasses import replace

import pytest

from tests.agent.books import (
    CLAIM,
    FETCHED,
    ME,
    NOW,
    PEER,
    TRAINED,
    answering,
    committed,
    disputed,
    seated,
    situation,
    task,
    terms,
)
from tests.agent.test_deciding import ASKED, AUDIT_COMMIT, ELSE, FOUND, doing, keys
from trainyard.protocol.commitments import Claim
from trainyard.protocol.ledger.book import Dispute, Seat
from trainyard.protocol.market import OWN_PANEL, DisputeState, Policy, SeatState, TaskState
from worker_agent.actions import Fetch, Recompute, Tell, Train
from worker_agent.progress import Progress

OWN = (OWN_PANEL, 0)
DRAWN = seated(task(TaskState.AUDITING, (PEER,)), ME, SeatState.DRAWN)
DRAWN_IN = DRAWN.own_panel.draw_block
TOLD = seated(task(TaskState.WINDOW, (PEER,)), ME, SeatState.COMMITTED, answer=committed(FOUND))


def test_answer_to_another_segment_is_not_committed_after_a_new_draw() -> None:
    redrawn = seated(task(TaskState.AUDITING, (PEER,)), ME, SeatState.DRAWN, segment=5)
    old = situation(redrawn, answering(FOUND, segment=2))

    assert keys(old) == []
    assert doing(old) == [Recompute(1, OWN, 0)]
    assert keys(situation(redrawn, answering(FOUND, segment=5))) == [f"1/audit-commit/0/5/{ASKED}"]


def test_answer_to_another_claim_is_not_committed_after_a_new_submission() -> None:
    other = Claim.of(b"s" * 32, CLAIM.root)
    slots = [replace(DRAWN.slots[0], claim=other)]

    assert doing(situation(replace(DRAWN, slots=slots), answering(FOUND))) == [Recompute(1, OWN, 0)]


def test_answer_of_an_agent_that_did_not_note_the_question_is_computed_again() -> None:
    found = answering(FOUND)
    [(place, answer)] = found.answers.items()
    old = Progress(answers={place: replace(answer, about="")})

    assert doing(situation(DRAWN, old)) == [Recompute(1, OWN, 0)]
    # But what it has committed to already it can show.
    assert keys(situation(TOLD, old)) == ["1/audit-reveal/0"]


@pytest.mark.parametrize(
    ("deep", "left_s", "is_sent"),
    [(11, 500, False), (12, 500, True), (1, 31, False), (1, 30, True)],
    ids=["not deep yet", "deep enough", "still time", "no time left"],
)
def test_a_draw_has_to_lie_deep_before_it_is_answered(
    deep: int, left_s: int, is_sent: bool
) -> None:
    """What is signed may be mined after a reorg, and would then answer for another segment."""
    block = DRAWN_IN + deep - 1
    now = DRAWN.deadline - left_s

    s = situation(DRAWN, answering(FOUND), block=block, confirmations=12, now=now)

    assert keys(s) == ([AUDIT_COMMIT] if is_sent else [])
    assert doing(s) == []


def test_answer_to_another_segment_is_not_shown() -> None:
    """It was committed by a transaction that a reorg put behind another draw."""
    redrawn = seated(
        task(TaskState.WINDOW, (PEER,)), ME, SeatState.COMMITTED, segment=5, answer=committed(FOUND)
    )

    assert "1/audit-reveal/0" not in keys(situation(redrawn, answering(FOUND, segment=2)))


def test_answer_that_was_lost_is_found_again_and_shown() -> None:
    assert doing(situation(TOLD, Progress())) == [Recompute(1, OWN, 0)]
    assert keys(situation(TOLD, answering(FOUND))) == ["1/audit-reveal/0"]


def test_answer_of_a_referee_that_was_lost_is_found_again_and_shown() -> None:
    place = (5, 1)
    ruling = Dispute(accuser=PEER, state=DisputeState.RULING, deadline=NOW + 600, round=1)
    seat = Seat(ME, 5, SeatState.COMMITTED, answer=committed(FOUND, place))
    found = disputed(task(TaskState.DISPUTED, (PEER,)), 5, ruling, [seat])

    assert doing(situation(found, Progress())) == [Recompute(1, place, 0)]
    assert keys(situation(found, answering(FOUND, place))) == ["1/referee-reveal/5/1/0"]


def test_answer_that_was_lost_and_comes_out_differently_is_said_and_not_tried_for_ever() -> None:
    [told] = doing(situation(TOLD, answering(ELSE)))

    assert isinstance(told, Tell)
    assert "the answer that was committed to for segment 2 is lost" in told.reason
    assert keys(situation(TOLD, answering(ELSE))) == []


@pytest.mark.parametrize(
    ("state", "policy"),
    [
        (TaskState.RUNNING, Policy.AUDIT),
        (TaskState.AUDITING, Policy.AUDIT),
        (TaskState.OPENING, Policy.AUDIT),
        (TaskState.WINDOW, Policy.AUDIT),
        (TaskState.REVEALING, Policy.REPLICATE),
    ],
)
def test_what_was_trained_alone_and_is_lost_is_trained_again(
    state: TaskState, policy: Policy
) -> None:
    found = task(state, terms=terms(policy))

    assert doing(situation(found, Progress())) == [Fetch(1)]
    assert doing(situation(found, Progress(fetched=FETCHED))) == [Train(1, 0)]


def test_who_lost_the_key_of_its_card_says_so_and_lets_another_take_its_place() -> None:
    found = task(TaskState.RUNNING, (ME, PEER))
    pinged = replace(found, slots=[replace(found.slots[0], pong_by=NOW + 100), found.slots[1]])

    [told] = doing(situation(pinged, Progress()))

    assert isinstance(told, Tell)
    assert "the key by which its other workers know us" in told.reason
    assert keys(situation(pinged, Progress())) == []
    assert any("pong" in key for key in keys(situation(pinged, TRAINED)))


def test_nothing_is_computed_again_when_it_is_too_late_to_show_it() -> None:
    late = situation(TOLD, Progress(), now=TOLD.own_panel.reveal_by)

    assert doing(late) == []
