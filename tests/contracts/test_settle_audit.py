"""settle under Audit: the lead claim is paid once its audits and the window are over."""

from collections.abc import Sequence

import pytest

from tests.contracts.crew import full_crew, lose, running_with, submit_each
from tests.contracts.lot import opt_out
from tests.contracts.money import PENALTY, add_up, credits_of_all, fault_part, gains, is_drained
from tests.contracts.panels import members, open_audits, pass_audits
from tests.contracts.wealth import Wealth
from tests.contracts.yard import BOND, FEE, REWARD, SEGMENTS, STAKE, digest, event, reverts
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, OWN_PANEL, Failure, Policy, TaskState

OTHER = Claim.of(digest("other result"), digest("other root"))


def submitted(yard, crew: Sequence, names: str, **changes) -> int:
    """A submitted task, by what each slot does.

    `a` submits the claim that is then audited, `b` another one, `.` is absent, and `x` is evicted
    when the others have answered.
    """
    task = running_with(yard, crew, Policy.AUDIT, **changes)
    submit_each(yard, task, crew, [{"a": yard.claim, "b": OTHER}.get(name) for name in names])
    for slot, name in enumerate(names):
        if name == "x":
            lose(yard, task, slot)
    if "." in names:
        yard.pass_deadline(task)
    if "." in names or "x" in names:
        yard.market.expire(task, {"from": yard.stranger})
    return task


# What the slots do, the ones that are paid, and the ones at fault.
PAID = [
    ("a", [0], []),
    ("aaa", [0, 1, 2], []),
    ("aba", [0, 2], [1]),
    ("aa.", [0, 1], [2]),
    ("ab.", [0], [1, 2]),
    ("aax", [0, 1], [2]),
    ("aaaa", [0, 1, 2, 3], []),
    ("baa.", [1, 2], [0, 3]),
    ("abaa", [0, 2, 3], [1]),
    ("abax", [0, 2], [1, 3]),
    # A slot that works with others is excused where one of them was lost.
    ("ax.", [0], [1]),
    ("aax.", [0, 1], [2]),
]


@pytest.mark.parametrize(("names", "signers", "faulty"), PAID)
def test_signers_and_auditors_are_paid_and_faults_are_burned(yard, names, signers, faulty):
    """Rules T8, P1, P2, P4, A8: the rest of the escrow goes back to the requester."""
    crew = yard.workers[: len(names)]
    before = credits_of_all(yard)
    task = submitted(yard, crew, names)
    seats = pass_audits(yard, task)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == add_up(
        *((crew[slot], REWARD) for slot in signers),
        *((crew[slot], -PENALTY) for slot in faulty),
        *((auditor, FEE) for auditor in members(seats)),
        (yard.requester, -REWARD * len(signers) - 2 * FEE),
        (BURN_ADDRESS, PENALTY * len(faulty)),
    )
    assert yard.state(task) == TaskState.SETTLED
    assert is_drained(yard, task)


def test_two_and_thirty_slots_are_paid(yard):
    """Rules T8, P1, P2: in one transaction, whatever each did."""
    crew = full_crew(yard)
    names = "b" * 5 + "a" * 20 + "." * 7
    before = credits_of_all(yard)
    task = submitted(yard, crew, names)
    seats = pass_audits(yard, task)
    yard.pass_window(task)

    tx = yard.market.settle(task, {"from": yard.stranger})

    paid = [(worker, REWARD) for worker, name in zip(crew, names, strict=True) if name == "a"]
    faulty = [(worker, -PENALTY) for worker, name in zip(crew, names, strict=True) if name != "a"]
    assert gains(yard, before) == add_up(
        *paid,
        *faulty,
        *((auditor, FEE) for auditor in members(seats)),
        (yard.requester, -20 * REWARD - 2 * FEE),
        (BURN_ADDRESS, 12 * PENALTY),
    )
    assert event(tx, "TaskSettled")["lead"] == 5
    assert is_drained(yard, task)


def test_event_adds_up_to_the_lock(yard):
    """Rules V5, V6: what left for the slots, and what went back; fees are the rest."""
    task = submitted(yard, yard.workers[:3], "aba")
    pass_audits(yard, task)
    yard.pass_window(task)
    locked = yard.market.task(task)["locked"]

    tx = yard.market.settle(task, {"from": yard.stranger})

    assert event(tx, "TaskSettled") == {
        "id": task,
        "lead": 0,
        "paid": 2 * REWARD + 3 * STAKE,
        "refunded": REWARD,
    }
    assert locked == 3 * REWARD + 3 * STAKE + 2 * FEE


def test_outcome_goes_on_record(yard):
    """Rule W4: of workers and auditors."""
    task = submitted(yard, yard.workers[:3], "ab.")
    auditors = members(pass_audits(yard, task))
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    workers = [yard.market.account(worker) for worker in yard.workers[:3]]
    assert [record["settled"] for record in workers] == [1, 0, 0]
    assert [record["failed"] for record in workers] == [0, 1, 1]
    assert [yard.market.account(auditor)["auditsRight"] for auditor in auditors] == [1, 1]


@pytest.mark.parametrize(("committed", "lost"), [(False, fault_part(BOND)), (True, BOND)])
def test_silent_auditor_loses_of_its_bond(yard, committed, lost):
    """Rules A8, P4: all of it if it had committed; the fee goes back to the requester."""
    wealth = Wealth(yard)
    task = submitted(yard, yard.workers[:1], "a")
    seats = open_audits(yard, task, silent=() if committed else {1})
    yard.audit_reveal(task, seats[0])
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (yard.workers[0], REWARD),
        (seats[0].member, FEE),
        (seats[1].member, -lost),
        (yard.requester, -REWARD - FEE),
        (BURN_ADDRESS, lost),
    )
    assert yard.market.account(seats[1].member)["auditsWrong"] == 1
    assert yard.market.worker(seats[1].member)["bondLocked"] == 0
    assert is_drained(yard, task)


def test_audits_that_nobody_makes_cost_nothing(yard):
    """Rule A5: the window protects, and the fees go back."""
    opt_out(yard)
    before = credits_of_all(yard)
    task = submitted(yard, yard.workers[:1], "a")
    tx = yard.draw(task)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert event(tx, "SeatsUnassigned")["missing"] == 2
    assert gains(yard, before) == {yard.workers[0]: REWARD, yard.requester: -REWARD}
    assert is_drained(yard, task)


def test_audits_that_the_trace_does_not_bear_cost_nothing(yard):
    """Rules A4, A5: nine segments bear four audits, and five were paid for."""
    before = credits_of_all(yard)
    task = submitted(yard, yard.workers[:1], "a", audits=5)
    seats = pass_audits(yard, task)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert len(seats) == SEGMENTS // 2 == 4
    assert gains(yard, before) == add_up(
        (yard.workers[0], REWARD),
        *((auditor, FEE) for auditor in members(seats)),
        (yard.requester, -REWARD - 4 * FEE),
    )


def test_task_without_audits_has_its_window(yard):
    """Rules D8, P1: the draw only opens it."""
    before = credits_of_all(yard)
    task = submitted(yard, yard.workers[:1], "a", audits=0)
    yard.market.draw(task, {"from": yard.stranger})
    assert yard.state(task) == TaskState.WINDOW
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == {yard.workers[0]: REWARD, yard.requester: -REWARD}


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_demanded_auditors_are_waited_for_until_draw_by(yard, offset):
    """Rules A5, C1: after that everyone is refunded."""
    opt_out(yard)
    before = credits_of_all(yard)
    task = submitted(yard, yard.workers[:3], "aab", min_audits=2)
    draw_by = yard.market.task(task)["deadline"]
    tx = yard.draw(task)
    assert event(tx, "SeatsAwaited")["found"] == 0
    yard.at(draw_by + offset)

    if offset < 0:
        with reverts("MarketTooFewAuditors", 0, 2):
            yard.market.draw(task, {"from": yard.stranger})
    else:
        tx = yard.market.draw(task, {"from": yard.stranger})
        assert event(tx, "TaskFailed") == {
            "id": task,
            "reason": Failure.UNAUDITED,
            "refunded": 3 * REWARD + 2 * FEE,
        }
        assert gains(yard, before) == {}
        assert is_drained(yard, task)


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_window_stays_open_to_its_end(yard, offset):
    """Rules C1, D8: refused before the deadline's second, also if all auditors agree."""
    task = submitted(yard, yard.workers[:1], "a")
    pass_audits(yard, task)
    challenge_by = yard.market.task(task)["deadline"]
    yard.at(challenge_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, challenge_by):
            yard.market.settle(task, {"from": yard.stranger})
    else:
        yard.market.settle(task, {"from": yard.stranger})
        assert yard.state(task) == TaskState.SETTLED


@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_auditors_have_their_time_to_reveal(yard, offset):
    """Rules C1, D8: also where the window is shorter."""
    task = submitted(yard, yard.workers[:1], "a", challenge_for=0)
    seats = open_audits(yard, task)
    yard.audit_reveal(task, seats[0])
    reveal_by = yard.market.panel(task, OWN_PANEL, 0)["revealBy"]
    yard.at(reveal_by + offset)

    if offset < 0:
        with reverts("MarketTooEarly", task, reveal_by):
            yard.market.settle(task, {"from": yard.stranger})
    else:
        yard.market.settle(task, {"from": yard.stranger})
        assert yard.state(task) == TaskState.SETTLED


def test_nobody_waits_for_auditors_that_have_revealed(yard):
    """Rule D8: without a window the last reveal may be followed by the settlement at once."""
    task = submitted(yard, yard.workers[:1], "a", challenge_for=0)
    pass_audits(yard, task)
    assert yard.now() < yard.market.panel(task, OWN_PANEL, 0)["revealBy"] - 1

    yard.market.settle(task, {"from": yard.stranger})

    assert yard.state(task) == TaskState.SETTLED


def test_disputed_task_is_not_settled(yard):
    """Rule D8: the referees have not spoken, and the window is long over."""
    task = yard.audited()
    yard.challenge(task, 3)
    yard.pass_window(task)

    with reverts("MarketUnexpectedState", task, TaskState.DISPUTED):
        yard.market.settle(task, {"from": yard.stranger})


@pytest.mark.parametrize(
    ("way", "state"),
    [
        ("running", TaskState.RUNNING),
        ("submitted", TaskState.SUBMITTED),
        ("auditing", TaskState.AUDITING),
        ("opening", TaskState.OPENING),
    ],
)
def test_task_is_not_settled_before_its_window(yard, way, state):
    """Rule D8: verification is not over, however late it is."""
    task = getattr(yard, way)()
    yard.pass_deadline(task)

    with reverts("MarketUnexpectedState", task, state):
        yard.market.settle(task, {"from": yard.stranger})


def test_settled_task_is_not_settled_again(yard):
    """Rule V5: nothing is paid twice."""
    task = yard.audited()
    yard.pass_window(task)
    yard.market.settle(task, {"from": yard.stranger})

    with reverts("MarketUnexpectedState", task, TaskState.SETTLED):
        yard.market.settle(task, {"from": yard.stranger})
