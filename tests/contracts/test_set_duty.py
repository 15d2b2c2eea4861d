"""A member names the terms under which it may be drawn: `setDuty`."""

import pytest
from brownie import chain

from tests.contracts.yard import AUDITOR_BOND, FEE, digest, event, reverts

THIN_CLASS = digest("a class of few")
AUDIT_FOR, ANSWER_FOR = 3_600, 600


@pytest.fixture
def member(yard):
    """The only one of its class's pool."""
    yard.fund(yard.stranger)
    yard.register(yard.stranger, env_class=THIN_CLASS)
    yard.register(yard.challenger, env_class=THIN_CLASS, bond=AUDITOR_BOND)
    return yard.challenger


def call_panel(yard) -> int:
    """A task for one auditor, submitted."""
    task = yard.post(
        env_class=THIN_CLASS, audits=1, audit_for=AUDIT_FOR, answer_for=ANSWER_FOR, audit_fee=FEE
    )
    yard.join(task, yard.stranger)
    yard.submit(task, yard.stranger)
    return task


def test_terms_are_on_record(yard):
    """Rules V6, W2: the event and the register say the same."""
    auditor = yard.auditors[0]
    before = yard.market.worker(auditor).dict()
    tx = yard.market.setDuty(5, 6, 7, {"from": auditor})

    duty = {"minFee": 5, "minAuditFor": 6, "minAnswerFor": 7, "since": tx.timestamp}
    assert event(tx, "DutySet") == {"worker": auditor, **duty}
    assert yard.market.worker(auditor).dict() == before | duty


@pytest.mark.parametrize("duty", [(0, 0, 0), (FEE, AUDIT_FOR, ANSWER_FOR)])
def test_member_is_drawn_for_exactly_its_terms(yard, member, duty):
    """Rule W2: at first all terms will do; later those that are no worse than named."""
    yard.market.setDuty(*duty, {"from": member})
    tx = yard.draw(call_panel(yard))

    assert event(tx, "SeatDrawn")["member"] == member


@pytest.mark.parametrize(
    "duty",
    [(FEE + 1, 0, 0), (0, AUDIT_FOR + 1, 0), (0, 0, ANSWER_FOR + 1)],
    ids=["fee", "time to recompute", "time to reveal"],
)
def test_member_is_drawn_for_no_less(yard, member, duty):
    """Rules A5, W2: a unit or a second short, and the seat stays empty."""
    yard.market.setDuty(*duty, {"from": member})
    tx = yard.draw(call_panel(yard))

    assert "SeatDrawn" not in tx.events
    assert event(tx, "SeatsUnassigned")["missing"] == 1


def test_duty_that_is_eased_after_the_call_is_passed_over(yard, member):
    """Rule A2: a member cannot become eligible when it knows whom the draw will hit."""
    yard.market.setDuty(FEE + 1, 0, 0, {"from": member})
    task = call_panel(yard)
    chain.mine(2)
    yard.market.setDuty(0, 0, 0, {"from": member})
    tx = yard.market.draw(task, {"from": yard.owner})

    assert "SeatDrawn" not in tx.events
    assert event(tx, "SeatsUnassigned")["missing"] == 1


def test_seat_that_is_drawn_stays_a_duty(yard, member):
    """Rules A8, W2: terms count at the draw; later ones free from nothing."""
    task = call_panel(yard)
    yard.draw(task)
    yard.market.setDuty(2**96 - 1, 2**32 - 1, 2**32 - 1, {"from": member})
    [seat] = yard.seats(task)
    yard.audit_commit(task, seat)

    assert seat.member == member
    assert yard.market.panel(task, 2**32 - 1, 0)["committed"] == 1


@pytest.mark.parametrize("retired", [False, True])
def test_only_the_registered_have_duties(yard, retired):
    """Rules W1, W3: neither strangers nor who has retired."""
    account = yard.auditors[0] if retired else yard.stranger
    if retired:
        yard.market.retire({"from": account})
    with reverts("MarketNotRegistered", account):
        yard.market.setDuty(1, 1, 1, {"from": account})
