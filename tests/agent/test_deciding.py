"""What an agent does next, in every state that a task can be in and in every part it can have."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import pytest

from tests.agent.books import (
    CLAIM,
    FETCHED,
    MARKET,
    ME,
    MEMBER,
    NOW,
    OTHER,
    PEER,
    TRACE,
    TRAINED,
    answering,
    committed,
    disputed,
    seated,
    situation,
    task,
    terms,
)
from trainyard.chain.calls import MarketCalls
from trainyard.protocol.commitments import scores_answer
from trainyard.protocol.ledger.book import Dispute, Seat
from trainyard.protocol.market import UNSERVED, DisputeState, Policy, SeatState, TaskState
from worker_agent.actions import Action, MakeCard, Recompute, Seal, Send, Stop, Tell, Train
from worker_agent.deciding import decide
from worker_agent.policy import Policy as Wanted
from worker_agent.progress import Answer, Failure, Progress, asked
from worker_agent.situation import TURN_S, Situation

CALLS = MarketCalls(MARKET.address)
FOUND, ELSE = TRACE.after(2), b"x" * 32
ASKED = asked([CLAIM], 2)[:8]
AUDIT_COMMIT = f"1/audit-commit/0/2/{ASKED}"


def keys(s: Situation) -> list[str]:
    return [action.key for action in decide(s) if isinstance(action, Send)]


def doing(s: Situation) -> list[Action]:
    return [action for action in decide(s) if not isinstance(action, Send)]


def sent(s: Situation, key: str) -> Send:
    [found] = [one for one in decide(s) if isinstance(one, Send) and one.key == key]
    return found


# As worker


def test_an_open_task_is_joined_with_a_card_first() -> None:
    offer = replace(task(TaskState.OPEN, workers=()), joined=0)
    assert doing(situation(offer, replace(TRAINED, card=None, claim=None))) == [MakeCard(1)]
    joining = sent(situation(offer), f"1/join/{(b'k' * 32).hex()}")
    assert (joining.call.value, joining.by) == (offer.terms.stake, offer.deadline)


@pytest.mark.parametrize(("posted", "is_joined"), [(100, False), (99, True), (None, True)])
def test_a_task_is_joined_when_its_post_lies_deep(posted: int | None, is_joined: bool) -> None:
    """A join names the number alone, and a reorg may give that to another task."""
    offer = replace(task(TaskState.OPEN, workers=()), joined=0)
    recent = {} if posted is None else {1: posted}

    s = situation(offer, block=100, posted=recent, join_confirmations=2)

    assert bool(keys(s)) is is_joined
    # What it takes is got ready meanwhile.
    fresh = replace(s, progress={1: Progress(fetched=FETCHED)})
    assert doing(fresh) == [MakeCard(1)]


def test_a_running_task_is_trained_and_then_submitted_in_time_only() -> None:
    running = task(TaskState.RUNNING)
    assert doing(situation(running, Progress(fetched=FETCHED))) == [Train(1, 0)]
    submitting = sent(situation(running), "1/submit/0")
    assert submitting.call == CALLS.submit(1, 0, CLAIM.result, CLAIM.root)
    assert submitting.by == running.deadline


def test_what_cannot_be_finished_in_time_is_stopped() -> None:
    late = situation(
        task(TaskState.RUNNING), Progress(fetched=FETCHED), now=NOW + 480, margin_s=30.0
    )
    assert [type(one) for one in doing(late)] == [Stop, Tell]


def test_blind_policies_commit_and_show_nothing_before_all_have() -> None:
    running = task(TaskState.RUNNING, terms=terms(Policy.REPLICATE, audits=0, min_audits=0))
    s = situation(running)
    assert keys(s) == ["1/commit/0"]
    assert doing(s) == []


def test_when_all_have_committed_the_claim_is_revealed_and_the_run_shown() -> None:
    """rule T6: nobody is left who could copy, and whoever pays wants to see."""
    offered = terms(Policy.REPLICATE, audits=0, min_audits=0)
    s = situation(task(TaskState.REVEALING, terms=offered))
    assert keys(s) == ["1/reveal/0"]
    assert doing(s) == [Seal(1, (), is_open=True)]
    done = situation(task(TaskState.REVEALING, (ME, PEER), terms=offered, revealed=1))
    assert keys(done) == []


def test_drawn_segments_are_served_and_nothing_else() -> None:
    audited = seated(task(TaskState.AUDITING), MEMBER, SeatState.DRAWN)
    assert doing(situation(audited)) == [Seal(1, (2,))]
    assert doing(situation(audited, replace(TRAINED, served=frozenset({2})))) == []


def test_the_leader_opens_at_once_and_the_others_if_it_does_not() -> None:
    """rule A7"""
    opening = seated(task(TaskState.OPENING, (PEER, ME)), MEMBER, SeatState.COMMITTED)
    opening = replace(opening, deadline=NOW + 600)
    assert "1/open" not in keys(situation(opening))
    assert "1/open" in keys(situation(opening, now=NOW + TURN_S))
    alone = seated(task(TaskState.OPENING), MEMBER, SeatState.COMMITTED)
    opened = CALLS.open(1, CLAIM, [FOUND], [TRACE.proof_after(2)])
    assert sent(situation(alone), "1/open").call == opened


def test_short_windows_leave_everybody_time_to_open() -> None:
    given = terms(slots=2, answer_for=10)
    opening = seated(task(TaskState.OPENING, (PEER, ME), terms=given), MEMBER, SeatState.COMMITTED)
    opening = replace(opening, deadline=NOW + 5)
    assert "1/open" in keys(situation(opening))


def test_in_the_window_the_whole_run_is_shown() -> None:
    window = seated(task(TaskState.WINDOW), MEMBER, SeatState.COMMITTED)
    served = replace(TRAINED, served=frozenset({2}))
    assert doing(situation(window, served)) == [Seal(1, (2,), is_open=True)]
    assert doing(situation(window, replace(served, is_open=True))) == []


@pytest.mark.parametrize(
    ("opened", "left_s", "is_shown"),
    [(98, 500, False), (97, 500, True), (None, 500, True), (98, 30, True)],
    ids=["not deep yet", "deep", "long ago", "no time left"],
)
def test_the_whole_run_is_shown_when_its_opening_lies_deep(
    opened: int | None, left_s: int, is_shown: bool
) -> None:
    """A reorg that takes the opening back draws anew, and what is drawn is answered blind."""
    window = seated(task(TaskState.WINDOW), MEMBER, SeatState.COMMITTED)
    served = replace(TRAINED, served=frozenset({2}))

    s = situation(
        window,
        served,
        block=100,
        confirmations=4,
        opened={} if opened is None else {1: opened},
        now=window.deadline - left_s,
    )

    assert doing(s) == ([Seal(1, (2,), is_open=True)] if is_shown else [])


def test_what_is_disputed_is_served_before_the_opening_lies_deep() -> None:
    dispute = Dispute(accuser=MEMBER, state=DisputeState.HEARING, deadline=NOW + 600, round=1)
    found = disputed(task(TaskState.DISPUTED), 5, dispute)
    served = replace(TRAINED, served=frozenset({2}))

    s = situation(found, served, block=100, confirmations=4, opened={1: 100})

    assert doing(s) == [Seal(1, (2, 5))]


@pytest.mark.parametrize("state", [DisputeState.UNSERVED, DisputeState.CALLED])
def test_referees_of_any_segment_are_served_what_they_compute_it_from(state: DisputeState) -> None:
    """rule D3: also of one that no auditor was drawn for."""
    dispute = Dispute(accuser=OTHER, state=state, deadline=NOW + 600, round=1)
    found = disputed(task(TaskState.DISPUTED), 5, dispute)
    shown = replace(TRAINED, served=frozenset({2}), is_open=True)
    assert doing(situation(found, shown)) == [Seal(1, (2, 5), is_open=True)]
    assert doing(situation(found, replace(shown, served=frozenset({2, 5})))) == []


def test_who_is_said_to_serve_nothing_shows_the_leaf_before_it_is_too_late() -> None:
    """rule D3"""
    dispute = Dispute(accuser=OTHER, state=DisputeState.UNSERVED, unserved=True, deadline=NOW + 600)
    found = disputed(task(TaskState.DISPUTED), 5, dispute)
    serving = sent(situation(found), "1/serve/5")
    assert serving.call == CALLS.serve(1, 5, CLAIM, TRACE.after(5), TRACE.proof_after(5))
    assert serving.by == dispute.deadline


def test_what_is_paid_for_is_shown_even_if_the_task_was_settled_first() -> None:
    settled = task(TaskState.SETTLED)
    stop = Stop(1, "the task is over", spared=("seal",))
    assert doing(situation(settled)) == [stop, Seal(1, (), is_open=True)]
    assert doing(situation(settled, replace(TRAINED, is_open=True))) == [stop]
    assert doing(situation(task(TaskState.FAILED))) == [stop]


def test_work_that_failed_waits_for_its_time() -> None:
    audited = seated(task(TaskState.AUDITING), MEMBER, SeatState.DRAWN)
    failed = replace(TRAINED, failures={"seal": Failure("no room", 1, 60.0)})
    assert doing(situation(audited, failed)) == []
    assert doing(situation(audited, failed, clock=60.0)) == [Seal(1, (2,))]


# As auditor and referee


def test_an_auditor_computes_commits_and_reveals() -> None:
    """rule A6"""
    drawn = seated(task(TaskState.AUDITING, (PEER,)), ME, SeatState.DRAWN)
    assert doing(situation(drawn, Progress())) == [Recompute(1, (2**32 - 1, 0), 0)]
    committing = sent(situation(drawn, answering(ELSE)), AUDIT_COMMIT)
    assert committing.call == CALLS.audit_commit(1, 0, committed(ELSE))
    told = seated(task(TaskState.WINDOW, (PEER,)), ME, SeatState.COMMITTED, answer=committed(ELSE))
    assert "1/audit-reveal/0" in keys(situation(told, answering(ELSE)))


def test_that_nothing_is_served_is_said_at_the_last_moment_only() -> None:
    drawn = seated(task(TaskState.AUDITING, (PEER,)), ME, SeatState.DRAWN)
    early, late = situation(drawn, answering(UNSERVED)), NOW + 490
    assert (keys(early), len(doing(early))) == ([], 1)
    assert keys(situation(drawn, answering(UNSERVED), now=late)) == [AUDIT_COMMIT]


def test_who_committed_to_nothing_served_reveals_that_whatever_it_found_since() -> None:
    told = seated(
        task(TaskState.WINDOW, (PEER,)), ME, SeatState.COMMITTED, answer=committed(UNSERVED)
    )
    salt = sent(situation(told, answering(ELSE)), "1/audit-reveal/0").call
    assert salt == sent(situation(told, answering(UNSERVED)), "1/audit-reveal/0").call


def test_a_referee_computes_commits_and_reveals() -> None:
    """rule D4"""
    place = (5, 1)
    hearing = Dispute(accuser=OTHER, state=DisputeState.HEARING, deadline=NOW + 600, round=1)
    found = disputed(task(TaskState.DISPUTED, (PEER,)), 5, hearing, [Seat(ME, 5)])
    assert doing(situation(found, Progress())) == [Recompute(1, place, 0)]
    committing = sent(situation(found, answering(ELSE, place)), f"1/referee-commit/5/1/0/{ASKED}")
    assert committing.call == CALLS.referee_commit(1, 5, 0, committed(ELSE, place))
    seat = Seat(ME, 5, SeatState.COMMITTED, answer=committed(ELSE, place))
    ruling = disputed(found, 5, replace(hearing, state=DisputeState.RULING), [seat])
    assert "1/referee-reveal/5/1/0" in keys(situation(ruling, answering(ELSE, place)))


# What anyone may do


def test_bonds_behind_a_void_dispute_come_free_even_if_the_leader_is_gone() -> None:
    """rule C2, rule D7"""
    called = Dispute(accuser=OTHER, state=DisputeState.HEARING, deadline=NOW + 100, round=1)
    found = disputed(task(TaskState.FAILED, (PEER,)), 5, called, [Seat(ME, 5)])
    resolve = "1/resolve/5/1/HEARING"
    assert resolve not in keys(situation(found))
    assert resolve in keys(situation(found, now=NOW + 100 + 5 * TURN_S))
    assert resolve in keys(situation(found, me=PEER))


def test_a_draw_that_waits_for_busy_members_is_tried_again_before_its_time_is_over() -> None:
    """rule A5"""
    waiting = seated(task(TaskState.SUBMITTED), MEMBER, SeatState.DRAWN)
    waiting.own_panel.seats, waiting.own_panel.seed = [], b"s" * 32
    assert keys(situation(waiting)) == ["1/draw/late"]
    others = replace(waiting, slots=task(TaskState.SUBMITTED, (PEER, ME)).slots, joined=3)
    assert keys(situation(others)) == []
    assert keys(situation(others, now=others.deadline + TURN_S)) == ["1/draw/late"]


def test_a_bond_that_was_lost_is_not_put_down_again() -> None:
    member = situation(task(TaskState.FAILED, (PEER,)), policy=Wanted(bond=10**17))
    assert keys(member) == ["bond/0"]
    member.book.account(ME).audits_wrong = 1
    assert keys(member) == []


def test_stakes_that_came_back_twice_are_taken_home_twice() -> None:
    """rule V2: two cancelled tasks leave the same credit and no record."""
    found = situation(task(TaskState.CANCELLED), payout=OTHER, payout_float=0)
    found.book.account(ME).credit = 10**18
    once = keys(found)
    found.book.tasks[2] = task(TaskState.CANCELLED)
    assert (len(once), len({*once, *keys(found)})) == (1, 2)


def test_an_accuser_sees_to_its_dispute() -> None:
    called = Dispute(accuser=ME, state=DisputeState.CALLED, deadline=NOW + 900, round=1)
    found = disputed(task(TaskState.DISPUTED, (PEER,)), 5, called)
    assert any("draw-referees/5" in key for key in keys(situation(found, now=NOW + 5 * TURN_S)))


@pytest.mark.parametrize(
    ("state", "key"),
    [
        (TaskState.OPEN, "1/expire/OPEN"),
        (TaskState.RUNNING, "1/expire/RUNNING"),
        (TaskState.REVEALING, "1/expire/REVEALING"),
        (TaskState.AUDITING, "1/expire/AUDITING"),
        (TaskState.OPENING, "1/expire/OPENING"),
    ],
)
def test_every_state_is_ended_by_whoever_is_left(state: TaskState, key: str) -> None:
    """rule C2: the last one in turn does it, if nobody else has."""
    found = task(state, (PEER, OTHER, MEMBER, ME), terms=terms(slots=4))
    patient = situation(found, Progress(), now=found.deadline + 10 * TURN_S)
    assert any(one.startswith(key) for one in keys(patient))
    assert not any(one.startswith(key) for one in keys(situation(found, Progress())))


def _every_situation() -> Iterator[Situation]:
    """Every state, with us in every part, with and without work done, early and late."""
    for state, policy, workers, seat_state, dispute, progress, now in product(
        [state for state in TaskState if state is not TaskState.NONE],
        Policy,
        [(PEER, ME), (PEER, OTHER)],
        [SeatState.DRAWN, SeatState.COMMITTED, SeatState.REVEALED],
        DisputeState,
        [Progress(), TRAINED, answering(ELSE)],
        [NOW, NOW + 100_000],
    ):
        if dispute is not DisputeState.NONE and policy is not Policy.AUDIT:
            # There are none.
            continue
        found = task(state, workers, terms=terms(policy, slots=2))
        found = seated(found, MEMBER if ME in workers else ME, seat_state)
        known = Dispute(OTHER, NOW + 300, dispute, round=1)
        whole = disputed(found, 5, known, [Seat(ME, 5, seat_state)])
        yield situation(whole, progress, now=now)


def test_nothing_is_done_twice_or_after_its_deadline_in_any_state() -> None:
    """rule C1"""
    for s in _every_situation():
        found = [action for action in decide(s) if isinstance(action, Send)]
        assert len({action.key for action in found}) == len(found)
        # One call never goes by two names, or it would be sent and paid for twice.
        assert len({action.call for action in found}) == len(found)
        assert all(action.by is None or s.now < action.by for action in found)


def test_nobody_without_a_part_in_a_task_does_anything_about_it() -> None:
    for state in TaskState:
        if state in (TaskState.NONE, TaskState.OPEN, TaskState.RUNNING):
            continue
        found = seated(task(state, (PEER,)), MEMBER, SeatState.COMMITTED)
        assert decide(situation(found, Progress(), now=NOW + 100_000)) == []


# What others found against us


def test_nobody_evicts_itself_or_who_has_answered() -> None:
    late = task(TaskState.RUNNING, workers=(ME, PEER))
    for slot in late.slots:
        slot.pong_by = NOW - 1_000
    assert [key for key in keys(situation(late)) if "evict" in key] == [f"1/evict/1/{NOW - 1_000}"]
    answered = replace(late, answered=0b10)
    assert [key for key in keys(situation(answered)) if "evict" in key] == []


@pytest.mark.parametrize(("workers", "left"), [((ME, PEER), 0b01), ((PEER, ME), 0b10)])
def test_what_is_left_is_over_when_all_of_it_has_answered(
    workers: tuple[str, str], left: int
) -> None:
    found = replace(task(TaskState.RUNNING, workers=workers), joined=left, answered=left)
    assert any("expire/RUNNING" in key for key in keys(situation(found)))


def test_who_has_answered_asks_after_who_is_silent_and_has_not() -> None:
    running = task(TaskState.RUNNING, workers=(ME, PEER))
    silent = replace(TRAINED, silent={1: 1_000.0})
    mine, both = replace(running, answered=0b01), replace(running, answered=0b11)
    assert [key for key in keys(situation(mine, silent)) if "ping" in key] == [f"1/ping/1/0/{PEER}"]
    assert [key for key in keys(situation(both, silent)) if "ping" in key] == []


def test_a_machine_that_changed_its_class_is_drawn_no_more_and_answers_nothing() -> None:
    drawn = seated(task(TaskState.AUDITING, workers=(PEER,)), ME, SeatState.DRAWN)
    changed = situation(drawn, answering(FOUND), env_class=b"d" * 32)
    assert not any("audit-commit" in key for key in keys(changed))
    assert doing(changed) == []


def test_an_evaluator_commits_to_nothing_that_it_could_not_reveal() -> None:
    scored = terms(Policy.SCORE, segments=0, audits=1, min_audits=1)
    drawn = seated(
        replace(task(TaskState.AUDITING, workers=(PEER,)), terms=scored), ME, SeatState.DRAWN
    )
    late = situation(drawn, answering(UNSERVED), now=drawn.deadline - 1)
    committing = sent(late, AUDIT_COMMIT)
    worthless = committed(scores_answer([0]))
    assert committing.call == CALLS.audit_commit(1, 0, worthless)


def test_an_evaluator_of_a_contest_waits_for_entries_that_are_not_served_yet() -> None:
    contest = terms(Policy.CONTEST, slots=2, segments=0, audits=1, min_audits=1)
    found = task(TaskState.AUDITING, workers=(PEER, OTHER), terms=contest)
    drawn = seated(found, ME, SeatState.DRAWN)
    scores = scores_answer([7, 0])
    about = asked([CLAIM, CLAIM], 2)
    half = Answer(scores, (7, 0), "of entry 1: it is not served", about)
    known = Progress(answers={(2**32 - 1, 0, 0): half})

    assert keys(situation(drawn, known)) == []
    assert len(doing(situation(drawn, known))) == 1
    [late] = decide(situation(drawn, known, now=drawn.deadline - 1))
    assert isinstance(late, Send)
    assert late.call == CALLS.audit_commit(1, 0, committed(scores))


def test_shares_that_nobody_agrees_on_are_a_reason() -> None:
    offer = replace(task(TaskState.OPEN, workers=()), joined=0, terms=terms(shares_agreed=True))
    assert not any("join" in key for key in keys(situation(offer)))
