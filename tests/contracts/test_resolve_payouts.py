"""`resolve`: who gains and who loses by a verdict, to the wei."""

import pytest

from tests.contracts.money import add_up, fault_part, is_drained
from tests.contracts.wealth import Wealth, judged, split
from tests.contracts.yard import BOND, FEE, REWARD, STAKE, digest
from trainyard.protocol.commitments import Claim
from trainyard.protocol.market import BURN_ADDRESS, TaskState

SEGMENT = 4
FOUND = digest("what referees found")
OTHER = digest("what others found")


@pytest.fixture(scope="module")
def task(staffed_yard):
    """The auditors have confirmed their segments, not ours among them; the window is open."""
    return staffed_yard.audited(sparing=SEGMENT)


def rule(yard, task, votes, truth):
    """Referees answer the truth (T), something else (W), or nothing (.)."""
    answers = {"T": truth, "W": OTHER, ".": None}
    return yard.rule(task, SEGMENT, [answers[vote] for vote in votes])


def audit_fees(yard, task):
    """What both auditors earn, and the requester gives."""
    members = [seat.member for seat in yard.seats(task)]
    return [(yard.requester, -2 * FEE), *((member, FEE) for member in members)]


@pytest.mark.parametrize("votes", ["TTT", "TTW", "WTT", "TT."])
def test_wrong_segment_costs_the_stakes(yard, task, votes):
    """rules D4, P3, P4, A8, V5"""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)

    rule(yard, task, votes, FOUND)

    rest = STAKE - votes.count("T") * FEE
    assert wealth.gains() == add_up(
        *judged(yard.seats(task, SEGMENT, 1), votes),
        *split(rest, yard.challenger, yard.requester),
        (yard.requester, REWARD + 2 * FEE),
        *audit_fees(yard, task),
    )
    assert is_drained(yard, task)


@pytest.mark.parametrize("votes", ["TTT", "TTW", "TWT", ".TT"])
def test_wrong_challenge_costs_the_bond(yard, task, votes):
    """rules D4, P3, P4"""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)

    rule(yard, task, votes, yard.trace.after(SEGMENT))

    rest = BOND - votes.count("T") * FEE
    assert wealth.gains() == add_up(
        (yard.challenger, -BOND),
        *judged(yard.seats(task, SEGMENT, 1), votes),
        *split(rest, yard.workers[0], yard.requester),
    )
    assert yard.state(task) == TaskState.WINDOW


def test_escalation_moves_no_money(yard, task):
    """rule D5"""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)

    rule(yard, task, "TW.", FOUND)

    assert wealth.gains() == add_up((yard.challenger, -BOND))


def test_second_committee_judges_the_first_when_it_finds_a_wrong(yard, task):
    """rules D4, D5, P3, P4, V5: the stakes pay the right of both."""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)
    rule(yard, task, "TW.", FOUND)

    rule(yard, task, "WTT.T", FOUND)

    assert wealth.gains() == add_up(
        *judged(yard.seats(task, SEGMENT, 1), "TW."),
        *judged(yard.seats(task, SEGMENT, 2), "WTT.T"),
        *split(STAKE - 4 * FEE, yard.challenger, yard.requester),
        (yard.requester, REWARD + 2 * FEE),
        *audit_fees(yard, task),
    )
    assert is_drained(yard, task)


def test_second_committee_judges_the_first_when_it_finds_none(yard, task):
    """rules D4, D5, P3, P4: the bond pays the right of both."""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)
    rule(yard, task, ".WT", yard.trace.after(SEGMENT))

    rule(yard, task, "TTTTT", yard.trace.after(SEGMENT))

    assert wealth.gains() == add_up(
        (yard.challenger, -BOND),
        *judged(yard.seats(task, SEGMENT, 1), ".WT"),
        *judged(yard.seats(task, SEGMENT, 2), "TTTTT"),
        *split(BOND - 6 * FEE, yard.workers[0], yard.requester),
    )


def test_no_majority_refunds_everyone(yard, task):
    """rules D5, P4, A8, V5: but silence is a fault still."""
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)
    rule(yard, task, "TW.", FOUND)

    rule(yard, task, "TTWW.", FOUND)

    silent = [yard.seats(task, SEGMENT, 1)[2], yard.seats(task, SEGMENT, 2)[4]]
    penalty = fault_part(BOND)
    assert wealth.gains() == add_up(
        *((seat.member, -penalty) for seat in silent),
        (BURN_ADDRESS, 2 * penalty),
        (yard.workers[0], STAKE),
        (yard.requester, REWARD + 2 * FEE),
        *audit_fees(yard, task),
    )
    assert is_drained(yard, task)


def test_unserved_leaf_costs_the_stakes(yard, task):
    """rules D3, P3, A8, V5: no referee has to be paid."""
    wealth = Wealth(yard)
    yard.market.challengeUnserved(task, SEGMENT, {"from": yard.challenger})
    yard.pass_dispute_deadline(task, SEGMENT)

    yard.market.resolve(task, SEGMENT, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        *split(STAKE, yard.challenger, yard.requester),
        (yard.requester, REWARD + 2 * FEE),
        *audit_fees(yard, task),
    )
    assert is_drained(yard, task)


def test_auditor_that_finds_a_wrong_gets_the_finders_part(yard):
    """rules D1, D4, P3, A8"""
    task = yard.window({0: FOUND})
    accuser, other = yard.seats(task)
    wealth = Wealth(yard)
    yard.audit_reveal(task, other)
    yard.audit_reveal(task, accuser, FOUND)

    yard.rule(task, accuser.segment, [FOUND] * 3)

    assert wealth.gains() == add_up(
        *judged(yard.seats(task, accuser.segment, 1), "TTT"),
        *split(STAKE - 3 * FEE, accuser.member, yard.requester),
        (accuser.member, FEE),
        (other.member, FEE),
        (yard.requester, REWARD),
    )
    assert is_drained(yard, task)


def test_auditor_that_accuses_wrongly_loses_its_bond(yard):
    """rules D1, D4, P3, A8: and is not paid when the task settles."""
    task = yard.window({1: FOUND})
    other, accuser = yard.seats(task)
    wealth = Wealth(yard)
    yard.audit_reveal(task, other)
    yard.audit_reveal(task, accuser, FOUND)
    yard.rule(task, accuser.segment, [yard.trace.after(accuser.segment)] * 3)
    yard.pass_window(task)

    yard.market.settle(task, {"from": yard.stranger})

    assert wealth.gains() == add_up(
        (accuser.member, -BOND),
        *judged(yard.seats(task, accuser.segment, 1), "TTT"),
        *split(BOND - 3 * FEE, yard.workers[0], yard.requester),
        (yard.workers[0], STAKE + REWARD),
        (other.member, FEE),
        (yard.requester, FEE),
    )
    assert is_drained(yard, task)


def test_all_who_signed_pay_and_who_dissented_does_not(yard):
    """rules T8, P3, V5: one stake is shared out, and the other burns."""
    task = yard.running(slots=3, quorum=2, audits=0)
    yard.submit(task, yard.workers[0], yard.workers[1])
    yard.submit(task, yard.workers[2], claim=Claim.of(digest("mine"), digest("my root")))
    yard.draw(task)
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT, by=yard.workers[2])

    rule(yard, task, "TTT", FOUND)

    assert wealth.gains() == add_up(
        *judged(yard.seats(task, SEGMENT, 1), "TTT"),
        *split(STAKE, yard.workers[2], yard.requester),
        (BURN_ADDRESS, STAKE - 3 * FEE),
        (yard.workers[2], STAKE),
        (yard.requester, 3 * REWARD),
    )
    assert is_drained(yard, task)


def test_rounding_is_burned(yard):
    """rules P3, V5"""
    stake = STAKE + 3
    task = yard.submitted(stake=stake, audits=0)
    yard.draw(task)
    wealth = Wealth(yard)
    yard.challenge(task, SEGMENT)

    rule(yard, task, "TTT", FOUND)

    # Of 0.97 ether and 3 wei half is 1.5 wei more, 3 tenths are 0.9 wei more, and 2 are left.
    assert wealth.gains() == add_up(
        *judged(yard.seats(task, SEGMENT, 1), "TTT"),
        (yard.challenger, 485 * 10**15 + 1),
        (yard.requester, REWARD + 291 * 10**15),
        (BURN_ADDRESS, 194 * 10**15 + 2),
    )
    assert is_drained(yard, task)


@pytest.mark.parametrize(
    ("upheld", "worker", "referees"),
    [(True, (0, 1), [(1, 0), (1, 0), (0, 1)]), (False, (0, 0), [(1, 0), (1, 0), (0, 1)])],
)
def test_verdict_is_put_on_record(yard, task, upheld, worker, referees):
    """rule W4"""
    yard.challenge(task, SEGMENT)

    rule(yard, task, "TTW", FOUND if upheld else yard.trace.after(SEGMENT))

    account = yard.market.account(yard.workers[0])
    assert (account["settled"], account["failed"]) == worker
    records = [yard.market.account(seat.member) for seat in yard.seats(task, SEGMENT, 1)]
    assert [(each["auditsRight"], each["auditsWrong"]) for each in records] == referees


def test_absent_slot_is_excused_where_the_others_cheated(yard):
    """Rule P2: it may be absent because it would not sign what the others made up."""
    before = [yard.credit(worker) for worker in yard.workers[:3]]
    task = yard.running(slots=3, quorum=2)
    yard.submit(task, *yard.workers[:2])
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})
    yard.draw(task)
    for seat in yard.seats(task):
        yard.audit_commit(task, seat)
    yard.open(task)
    yard.challenge(task, SEGMENT)

    rule(yard, task, "TTT", FOUND)

    assert yard.state(task) == TaskState.FAILED
    after = [yard.credit(worker) for worker in yard.workers[:3]]
    assert [now - then for now, then in zip(after, before, strict=True)] == [-STAKE, -STAKE, 0]
