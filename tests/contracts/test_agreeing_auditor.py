"""An auditor that agreed with the workers, on a segment that somebody says is not served."""

from tests.contracts.lives import WRONG, idle_segment
from tests.contracts.yard import FEE, digest
from trainyard.protocol.market import DisputeState, TaskState


def test_agreeing_auditor_is_paid_where_nothing_was_decided(yard):
    """Rule A8: its answer was not contested, whatever the claim about the data is worth."""
    task = yard.audited()
    auditors = yard.seats(task)
    before = [yard.credit(seat.member) for seat in auditors]
    yard.market.challengeUnserved(task, auditors[0].segment, {"from": yard.challenger})
    segment = idle_segment(yard, task)
    yard.challenge(task, segment)
    yard.rule(task, segment, [WRONG, None, None])

    yard.rule(task, segment, [WRONG, WRONG, digest("x"), digest("y"), None])

    assert yard.market.dispute(task, auditors[0].segment)["state"] == DisputeState.UNSERVED
    assert yard.state(task) == TaskState.FAILED
    assert [yard.credit(seat.member) for seat in auditors] == [fee + FEE for fee in before]
