"""What the market keeps of an account's past: settled, failed, audits right and wrong."""

import pytest

from tests.contracts.yard import AUDITOR_BOND, ENV_CLASS, digest, event
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import OWN_PANEL, Policy, Record, TaskState

COUNTERS = ["settled", "failed", "auditsRight", "auditsWrong"]
OTHER = Claim.of(digest("other result"), digest("other root"))


def record(yard, who) -> tuple[int, ...]:
    account = yard.market.account(who)
    return tuple(account[counter] for counter in COUNTERS)


def entries(tx) -> dict[str, int]:
    """Who got which entry in a transaction."""
    return {entry["worker"]: entry["entry"] for entry in tx.events["Recorded"]}


def settle_audited(yard, task):
    yard.pass_window(task)
    return yard.market.settle(task, {"from": yard.stranger})


def expire(yard, task):
    yard.pass_deadline(task)
    return yard.market.expire(task, {"from": yard.stranger})


def test_everyone_starts_without_a_past(yard):
    """Rule W4: registering is no merit."""
    assert record(yard, yard.workers[0]) == (0, 0, 0, 0)


def test_settled_task_counts_for_workers_and_auditors(yard):
    """Rules V6, W4: each gets one entry, told by an event."""
    task = yard.audited()
    seats = yard.seats(task)
    tx = settle_audited(yard, task)

    assert entries(tx) == {
        yard.workers[0]: Record.SETTLED,
        seats[0].member: Record.AUDIT_RIGHT,
        seats[1].member: Record.AUDIT_RIGHT,
    }
    assert record(yard, yard.workers[0]) == (1, 0, 0, 0)
    assert record(yard, seats[0].member) == record(yard, seats[1].member) == (0, 0, 1, 0)


def test_entries_add_up(yard):
    """Rule W4: a second task is a second entry."""
    for _ in range(2):
        settle_audited(yard, yard.auditing(audits=0))

    assert record(yard, yard.workers[0]) == (2, 0, 0, 0)


def test_outvoted_worker_failed(yard):
    """Rules P2, T9, W4: the others settled."""
    claims = [yard.claim, OTHER, yard.claim]
    task = yard.revealing(claims)
    for worker, claim in zip(yard.workers, claims, strict=False):
        yard.reveal(task, worker, claim)
    tx = yard.market.settle(task, {"from": yard.stranger})

    first, second, third, _ = yard.workers
    assert entries(tx) == {
        first: Record.SETTLED,
        second: Record.FAILED,
        third: Record.SETTLED,
    }
    assert record(yard, second) == (0, 1, 0, 0)


def test_absent_worker_failed(yard):
    """Rules P2, W4: nobody answered, nobody settled."""
    tx = expire(yard, yard.running(Policy.REPLICATE))

    assert entries(tx) == {yard.workers[0]: Record.FAILED}
    assert record(yard, yard.workers[0]) == (0, 1, 0, 0)


def test_worker_that_does_not_reveal_failed(yard):
    """Rules P2, W4: a commitment alone is no answer."""
    task = yard.revealing([yard.claim] * 3)
    yard.reveal(task, yard.workers[0])
    yard.reveal(task, yard.workers[1])
    tx = expire(yard, task)

    assert yard.state(task) == TaskState.SETTLED
    assert entries(tx)[yard.workers[2]] == Record.FAILED
    assert record(yard, yard.workers[2]) == (0, 1, 0, 0)


def test_evicted_worker_failed(yard):
    """Rules T4, W4: its replacement starts afresh."""
    task = yard.running()
    yard.market.ping(task, 0, {"from": yard.requester})
    yard.warp(yard.market.slot(task, 0)["pongBy"])
    tx = yard.market.evict(task, 0, {"from": yard.stranger})
    yard.join(task, yard.workers[1])

    assert entries(tx) == {yard.workers[0]: Record.FAILED}
    assert record(yard, yard.workers[0]) == (0, 1, 0, 0)
    assert record(yard, yard.workers[1]) == (0, 0, 0, 0)


def test_silent_auditor_was_wrong(yard):
    """Rules A8, W4: who was drawn owes an answer."""
    task = yard.auditing()
    silent, seat = yard.seats(task)
    yard.audit_commit(task, seat)
    yard.pass_deadline(task)
    yard.open(task)
    yard.audit_reveal(task, seat)
    settle_audited(yard, task)

    assert record(yard, silent.member) == (0, 0, 0, 1)
    assert record(yard, seat.member) == (0, 0, 1, 0)


def test_fraud_is_failure_and_finding_it_is_right(yard):
    """Rules D4, W4: auditors who found the truth and referees who confirmed it were right."""
    truth = digest("truth")
    task = yard.window({0: truth})
    finder = yard.seats(task)[0]
    yard.audit_reveal(task, finder, truth)
    yard.rule(task, finder.segment, [truth, truth, digest("nonsense")])

    referees = [seat.member for seat in yard.referees(task, finder.segment)]
    assert yard.state(task) == TaskState.FAILED
    assert record(yard, yard.workers[0]) == (0, 1, 0, 0)
    assert record(yard, finder.member) == (0, 0, 1, 0)
    assert [record(yard, referee) for referee in referees] == [
        (0, 0, 1, 0),
        (0, 0, 1, 0),
        (0, 0, 0, 1),
    ]


def test_wrong_accusation_is_a_wrong_audit(yard):
    """Rules D4, W4: the accused is not recorded until the task ends."""
    task = yard.window({0: digest("nonsense")})
    accuser = yard.seats(task)[0]
    yard.audit_reveal(task, accuser, digest("nonsense"))
    yard.rule(task, accuser.segment, [yard.trace.after(accuser.segment)] * 3)

    assert record(yard, accuser.member) == (0, 0, 0, 1)
    assert record(yard, yard.workers[0]) == (0, 0, 0, 0)


def test_challengers_have_no_record(yard):
    """Rule W4: a challenge is a bet, not a duty."""
    task = yard.window()
    segment = next(
        segment for segment in range(9) if segment not in [s.segment for s in yard.seats(task)]
    )
    yard.challenge(task, segment)
    yard.rule(task, segment, [yard.trace.after(segment)] * 3)

    assert record(yard, yard.challenger) == (0, 0, 0, 0)


@pytest.mark.parametrize("ending", ["cancel", "leave", "expire"])
def test_task_that_never_started_leaves_no_trace(yard, ending):
    """Rules T2, W4: neither good nor bad."""
    task = yard.post(slots=2)
    yard.join(task, yard.workers[0])
    match ending:
        case "cancel":
            tx = yard.market.cancel(task, {"from": yard.requester})
        case "leave":
            tx = yard.market.leave(task, 0, {"from": yard.workers[0]})
        case _:
            tx = expire(yard, task)

    assert "Recorded" not in tx.events
    assert record(yard, yard.workers[0]) == (0, 0, 0, 0)


def test_record_outlasts_retiring(yard):
    """Rules W3, W4: coming back as a newcomer does not wipe out the past."""
    task = yard.auditing(audits=1)
    [seat] = yard.seats(task)
    yard.pass_deadline(task)
    yard.open(task)
    settle_audited(yard, task)
    tx = yard.market.retire({"from": seat.member})
    yard.warp(event(tx, "WorkerRetired")["unbondsAt"])
    yard.market.unbond({"from": seat.member})
    yard.market.register(digest("new"), ENV_CLASS, AUDITOR_BOND, {"from": seat.member})

    assert record(yard, seat.member) == (0, 0, 0, 1)
    assert yard.market.panel(task, OWN_PANEL, 0)["committed"] == 0
