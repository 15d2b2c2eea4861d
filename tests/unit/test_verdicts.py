"""What the answers of a task mean for the money of its slots and seats."""

from dataclasses import replace
from typing import Any

import pytest

from trainyard.protocol import verdicts
from trainyard.protocol.ledger.book import Dispute, Panel, Seat, Slot, Task
from trainyard.protocol.market import (
    OWN_PANEL,
    UNSERVED,
    DisputeState,
    Params,
    Policy,
    SeatState,
    TaskState,
    Terms,
)
from trainyard.protocol.money import Duty, Part
from trainyard.protocol.verdicts import Outcome

A, B = b"a" * 32, b"b" * 32
PARAMS = Params(
    seat_bond=999,
    unbond_for=60,
    fault_bps=2_000,
    finder_bps=5_000,
    requester_bps=3_000,
    referees=3,
    escalation=5,
    draw_delay=1,
    min_window=60,
)
SEGMENT, REVEAL_BY = 4, 100


def task(
    policy: Policy, claims: list[bytes | None], *, joined: int = 0b111, **changes: Any
) -> Task:
    terms = Terms(
        manifest=A, env_class=A, policy=policy, slots=3, quorum=2, reward=1, stake=1, target=900
    )
    answered = sum(1 << slot for slot, claim in enumerate(claims) if claim is not None)
    slots = [
        Slot(f"worker {slot}", digest=claim or bytes(32), shares=(5_000, 3_000, 2_000))
        for slot, claim in enumerate(claims)
    ]
    built = Task("requester", 0, terms, deadline=0, slots=slots)
    built.joined, built.answered, built.revealed = joined, answered, answered
    built.state = TaskState.WINDOW
    built.own_panel.reveal_by = REVEAL_BY
    return replace(built, **changes)


def audited(seat: Seat, dispute: Dispute | None = None) -> Task:
    built = task(Policy.AUDIT, [A, A, A])
    built.own_panel.seats.append(seat)
    if dispute is not None:
        built.disputes[SEGMENT] = dispute
    return built


def seat(state: SeatState, answer: bytes = A, member: str = "member") -> Seat:
    return Seat(member, SEGMENT, state, answer, opened=A)


def evaluated(policy: Policy, rows: list[tuple[int, ...]], **changes: Any) -> Task:
    built = task(policy, [A, A, B], **changes)
    for index, row in enumerate(rows):
        built.own_panel.seats.append(Seat(f"member {index}", 0, SeatState.REVEALED, A, scores=row))
    return built


PAID, UNPAID, FRAUD = Outcome.PAID, Outcome.UNPAID, Outcome.FRAUD
PARTS = {
    "lead and dissent": (Policy.AUDIT, [A, B, A], 0b111, PAID, "SIGNED DISSENTED SIGNED"),
    "absence": (Policy.AUDIT, [A, None, A], 0b111, PAID, "SIGNED ABSENT SIGNED"),
    "lost slot excuses": (Policy.AUDIT, [A, None, None], 0b011, PAID, "SIGNED EXCUSED"),
    "answers in vain": (Policy.SCORE, [A, None, None], 0b111, UNPAID, "SIGNED EXCUSED EXCUSED"),
    "fraud of others": (Policy.AUDIT, [A, A, None], 0b111, FRAUD, "SIGNED SIGNED EXCUSED"),
    "no answer, no excuse": (Policy.SCORE, [None] * 3, 0b111, UNPAID, "ABSENT ABSENT ABSENT"),
    "alone, no excuse": (Policy.REPLICATE, [A, None, A], 0b011, UNPAID, "SIGNED ABSENT"),
    "contest": (Policy.CONTEST, [A, A, None], 0b111, PAID, "DISSENTED SIGNED ABSENT"),
}


@pytest.mark.parametrize(
    ("policy", "claims", "joined", "outcome", "expected"), PARTS.values(), ids=PARTS
)
def test_part_of_each_slot(
    policy: Policy, claims: list[bytes | None], joined: int, outcome: Outcome, expected: str
) -> None:
    """Rules T8, T9, P2, P5: who signed, dissented, was absent, or has an excuse."""
    built = task(policy, claims, joined=joined)
    winner = 1 if policy is Policy.CONTEST else None

    parts = verdicts.parts(built, outcome, winner)
    assert list(parts.values()) == [Part[name] for name in expected.split()]


@pytest.mark.parametrize(
    ("policy", "state", "claims", "agreed"),
    [
        (Policy.REPLICATE, TaskState.RUNNING, [A, B, None], True),
        (Policy.REPLICATE, TaskState.REVEALING, [A, B, None], False),
        (Policy.REPLICATE, TaskState.REVEALING, [B, B, A], True),
        (Policy.AUDIT, TaskState.RUNNING, [A, B, None], False),
        (Policy.SCORE, TaskState.RUNNING, [A, None, A], True),
    ],
)
def test_quorum_counts_equal_claims_once_they_are_shown(
    policy: Policy, state: TaskState, claims: list[bytes | None], agreed: bool
) -> None:
    """Rules T6, T8, T9: hidden claims only count as answers."""
    assert verdicts.agreed(task(policy, claims, state=state)) is agreed


@pytest.mark.parametrize(
    ("claims", "shares"),
    [
        ([A, A, A], {"worker 0": 5_000, "worker 1": 3_000, "worker 2": 2_000}),
        ([A, None, A], {"worker 0": 5_000, "worker 1": 3_000, "worker 2": 2_000}),
        ([A, B, A], None),
    ],
)
def test_shares_need_the_word_of_all_that_answered(
    claims: list[bytes | None], shares: dict[str, int] | None
) -> None:
    """Rule P1: a majority cannot vote the others' parts to itself."""
    built = task(Policy.AUDIT, claims)
    built.terms = replace(built.terms, shares_agreed=True)

    assert verdicts.shares(built) == shares


@pytest.mark.parametrize(
    ("policy", "rows", "winner"),
    [
        (Policy.SCORE, [(950,), (899,), (900,)], 0),
        (Policy.SCORE, [(950,), (899,), (800,)], None),
        (Policy.SCORE, [], None),
        (Policy.CONTEST, [(900, 950, 999)], 2),
        (Policy.CONTEST, [(800, 850, 899)], None),
    ],
)
def test_winner_reaches_the_target(
    policy: Policy, rows: list[tuple[int, ...]], winner: int | None
) -> None:
    """Rules P5, P6: by the median of the revealed scores."""
    assert verdicts.winner(evaluated(policy, rows)) == winner


def test_hidden_entry_does_not_win() -> None:
    """Rule P5: whatever evaluators gave to it."""
    built = evaluated(Policy.CONTEST, [(900, 950, 999)], revealed=0b011)

    assert verdicts.winner(built) == 1


def test_outlier_is_wrong() -> None:
    """Rule A9: and those around the median are right."""
    built = evaluated(Policy.SCORE, [(950,), (950,), (10,)])

    assert list(verdicts.duties(built, 0, Outcome.PAID).values()) == [
        Duty.RIGHT,
        Duty.RIGHT,
        Duty.WRONG,
    ]


@pytest.mark.parametrize(
    ("state", "outcome", "now", "duty"),
    [
        (SeatState.DRAWN, Outcome.PAID, 0, Duty.SILENT),
        (SeatState.DRAWN, Outcome.FRAUD, 0, Duty.SILENT),
        (SeatState.COMMITTED, Outcome.PAID, REVEAL_BY, Duty.WRONG),
        (SeatState.COMMITTED, Outcome.UNPAID, REVEAL_BY, Duty.WRONG),
        (SeatState.COMMITTED, Outcome.UNPAID, REVEAL_BY - 1, Duty.RIGHT),
        (SeatState.REVEALED, Outcome.PAID, REVEAL_BY, Duty.RIGHT),
    ],
)
def test_commitment_is_enough_until_it_should_have_been_revealed(
    state: SeatState, outcome: Outcome, now: int, duty: Duty
) -> None:
    """Rule A8: a task that fails early leaves no time to reveal."""
    assert verdicts.duties(audited(seat(state)), now, outcome) == {"member": duty}


def test_closed_seat_is_judged_no_more() -> None:
    assert verdicts.duties(audited(seat(SeatState.CLOSED)), 0, Outcome.PAID) == {}


JUDGED = {
    "rejected, agreed": (A, DisputeState.REJECTED, bytes(32), Outcome.PAID, Duty.RIGHT),
    "rejected, differed": (B, DisputeState.REJECTED, bytes(32), Outcome.PAID, Duty.WRONG),
    "rejected, starved": (UNSERVED, DisputeState.REJECTED, bytes(32), Outcome.PAID, Duty.SILENT),
    "upheld, knew": (B, DisputeState.UPHELD, B, Outcome.FRAUD, Duty.RIGHT),
    "upheld, covered": (A, DisputeState.UPHELD, B, Outcome.FRAUD, Duty.WRONG),
    "upheld, starved": (UNSERVED, DisputeState.UPHELD, B, Outcome.FRAUD, Duty.RIGHT),
    "not served to anyone": (A, DisputeState.UPHELD, UNSERVED, Outcome.FRAUD, Duty.RIGHT),
    "dismissed": (B, DisputeState.DISMISSED, bytes(32), Outcome.PAID, Duty.RELEASED),
    "undecided": (B, DisputeState.INCONCLUSIVE, bytes(32), Outcome.UNPAID, Duty.RELEASED),
    "pending at a fraud": (B, DisputeState.CALLED, bytes(32), Outcome.FRAUD, Duty.RIGHT),
    "agreed, pending": (A, DisputeState.UNSERVED, bytes(32), Outcome.UNPAID, Duty.RIGHT),
}


@pytest.mark.parametrize(
    ("answer", "state", "truth", "outcome", "duty"), JUDGED.values(), ids=JUDGED
)
def test_auditor_is_judged_by_the_verdict_on_its_segment(
    answer: bytes, state: DisputeState, truth: bytes, outcome: Outcome, duty: Duty
) -> None:
    """Rule A8: what was contested and never judged earns nothing and costs nothing."""
    claimed = bytes(32) if state is DisputeState.UNSERVED else A
    dispute = Dispute("challenger", state=state, claimed=claimed, truth=truth)
    built = audited(seat(SeatState.REVEALED, answer), dispute)

    assert verdicts.duties(built, REVEAL_BY, outcome) == {"member": duty}


def disputed(answers: list[bytes | None], *, escalated: bool = False) -> Task:
    """A dispute before a committee; None committed and did not reveal."""
    built = task(Policy.AUDIT, [A, A, A])
    round_ = 2 if escalated else 1
    built.disputes[SEGMENT] = Dispute(
        "challenger", state=DisputeState.RULING, round=round_, escalated=escalated, claimed=A
    )
    built.panels[SEGMENT, 1] = Panel(seats=[Seat("member of the first", SEGMENT)])
    built.panels[SEGMENT, round_] = Panel(
        seats=[
            Seat(f"member {index}", SEGMENT, SeatState.COMMITTED, B)
            if answer is None
            else seat(SeatState.REVEALED, answer, f"member {index}")
            for index, answer in enumerate(answers)
        ]
    )
    return built


@pytest.mark.parametrize(
    ("answers", "escalated", "truth"),
    [([A, A, B], False, A), ([A, B, None], False, None), ([A, A, B], True, None)],
)
def test_truth_is_what_most_of_the_sitting_committee_said(
    answers: list[bytes | None], escalated: bool, truth: bytes | None
) -> None:
    """Rules D4, D5: of its full size."""
    built = disputed(answers, escalated=escalated)

    assert verdicts.truth_of(built, SEGMENT, PARAMS) == truth


def test_both_committees_are_judged() -> None:
    """Rules D4, A8: zero costs no more than silence, an unrevealed commitment the bond."""
    built = disputed([A, B, UNSERVED, None], escalated=True)

    assert verdicts.referee_duties(built, SEGMENT, A) == {
        "member of the first": Duty.SILENT,
        "member 0": Duty.RIGHT,
        "member 1": Duty.WRONG,
        "member 2": Duty.SILENT,
        "member 3": Duty.WRONG,
    }


@pytest.mark.parametrize(
    ("due", "duties"),
    [
        (True, [Duty.SILENT, Duty.RELEASED, Duty.WRONG]),
        (False, [Duty.RELEASED, Duty.RELEASED, Duty.RELEASED]),
    ],
)
def test_undecided_committee_pays_for_answers_that_were_due(due: bool, duties: list[Duty]) -> None:
    """Rules D5, D6, D7: a void dispute asks nobody for an answer."""
    built = disputed([A, None], escalated=True)

    assert list(verdicts.undecided_duties(built, SEGMENT, due=due).values()) == duties


@pytest.mark.parametrize(
    ("answer", "audit_seat", "truth", "finder"),
    [
        (B, 0, B, "member"),
        (A, 0, B, "challenger"),
        (A, 0, UNSERVED, "challenger"),
        (B, 1, B, "member"),
        (b"c" * 32, 1, B, None),
        (UNSERVED, 1, UNSERVED, "member"),
    ],
)
def test_finder_knew_the_truth(
    answer: bytes, audit_seat: int, truth: bytes, finder: str | None
) -> None:
    """Rule P3: the auditor that answered blind comes first, and guessing does not pay."""
    accuser = "member" if audit_seat else "challenger"
    dispute = Dispute(accuser, audit_seat=audit_seat, claimed=A)
    built = audited(seat(SeatState.REVEALED, answer), dispute)

    assert verdicts.finder_of(built, SEGMENT, truth) == finder


@pytest.mark.parametrize(
    ("answer", "audit_seat", "unserved", "starved"),
    [
        (B, 1, False, False),
        (UNSERVED, 1, False, True),
        (UNSERVED, 0, False, False),
        (A, 0, True, True),
    ],
)
def test_starved_accuser_said_so(
    answer: bytes, audit_seat: int, unserved: bool, starved: bool
) -> None:
    """Rule D4: by its answer as an auditor, or by how it challenged."""
    dispute = Dispute("x", audit_seat=audit_seat, unserved=unserved, claimed=A)
    built = audited(seat(SeatState.REVEALED, answer), dispute)

    assert verdicts.starved(built, SEGMENT) is starved


@pytest.mark.parametrize(
    ("state", "answer", "contested"),
    [
        (SeatState.REVEALED, B, True),
        (SeatState.REVEALED, A, False),
        (SeatState.COMMITTED, B, False),
    ],
)
def test_auditor_contests_by_what_it_revealed(
    state: SeatState, answer: bytes, contested: bool
) -> None:
    """Rule D6: what a drawn auditor contests is not paid for unjudged."""
    assert verdicts.contested(audited(seat(state, answer)), SEGMENT) is contested


def test_own_panel_is_apart_from_committees() -> None:
    """Rule A3: auditors are not judged as referees."""
    built = audited(seat(SeatState.REVEALED))

    assert verdicts.referee_duties(built, SEGMENT, A) == {}
    assert (OWN_PANEL, 0) in built.panels
