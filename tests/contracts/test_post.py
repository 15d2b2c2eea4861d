"""post: what is locked, what is stored, and which terms are refused."""

from dataclasses import astuple, replace

import brownie
import pytest

from tests.contracts.money import credits_of_all, gains
from tests.contracts.yard import (
    CREDIT,
    ETHER,
    FEE,
    PARAMS,
    REWARD,
    SEGMENTS,
    digest,
    event,
    field,
    reverts,
)
from trainyard.protocol.market import MAX_SEATS, MAX_SLOTS, Policy, TaskState, solidity_fields

DAY = 86_400
YEAR = 365 * DAY
UINT32_MAX = 2**32 - 1
UINT96_MAX = 2**96 - 1
EACH_POLICY = pytest.mark.parametrize("policy", list(Policy))


@pytest.mark.parametrize("slots", [1, 3, 4, MAX_SLOTS])
@EACH_POLICY
def test_locks_rewards_and_audit_fees(yard, policy, slots):
    """Rule T1: the escrow leaves the requester's credit for the task's lock."""
    terms = yard.terms(policy, slots=slots)
    before = credits_of_all(yard)

    task = yard.post_terms(terms)

    escrow = REWARD * slots + terms.audit_fee * terms.audits
    assert gains(yard, before) == {yard.requester: -escrow}
    assert yard.market.task(task)["locked"] == escrow


@EACH_POLICY
def test_event_carries_all_terms(yard, policy):
    """Rule V6: who reads the event knows the whole task."""
    terms = yard.terms(policy, allow_list=digest("list"), min_settled=7, tolerance=5)

    tx = yard.market.post(terms.as_tuple(), {"from": yard.requester})

    posted = event(tx, "TaskPosted")
    assert posted["id"] == yard.market.taskCount() == 1
    assert posted["requester"] == yard.requester
    assert posted["paramsId"] == 0
    assert posted["joinBy"] == tx.timestamp + terms.join_for
    assert [plain(value) for value in posted["terms"]] == list(astuple(terms))


@EACH_POLICY
def test_storage_holds_the_terms(yard, policy):
    """Rule C3: what was posted is what the task runs under."""
    terms = yard.terms(policy, allow_list=digest("list"), min_settled=7, tolerance=5)

    tx = yard.market.post(terms.as_tuple(), {"from": yard.requester})

    stored = yard.market.task(1)
    for name, value in zip(solidity_fields(type(terms)), astuple(terms), strict=True):
        if name != "joinFor":
            assert plain(stored[name]) == value, name
    assert stored["deadline"] == tx.timestamp + terms.join_for
    assert stored["state"] == TaskState.OPEN
    assert stored["requester"] == yard.requester
    assert stored["paramsId"] == 0
    assert stored["listed"]


def test_task_without_an_allow_list_says_so(yard):
    """Rule T3: it is open to all."""
    assert not yard.market.task(yard.post())["listed"]


def test_later_parameters_leave_a_posted_task_alone(yard):
    """Rule C3: a task keeps the parameters that it was posted under."""
    old = yard.post()
    doubled = replace(PARAMS, seat_bond=2 * PARAMS.seat_bond)

    yard.market.setParams(doubled.as_tuple(), {"from": yard.owner})

    new = yard.post()
    assert [yard.market.task(task)["paramsId"] for task in (old, new)] == [0, 1]
    assert yard.market.bondOf(old) == PARAMS.seat_bond
    assert yard.market.bondOf(new) == doubled.seat_bond


def test_tasks_are_counted_from_one(yard):
    """Rule V6: ids follow each other."""
    assert [yard.post(), yard.post(), yard.post()] == [1, 2, 3]


def test_value_is_credited_first_and_the_rest_stays(yard):
    """Rule V7: a deposit rides along with the post."""
    terms = yard.terms()
    before = credits_of_all(yard)

    tx = yard.market.post(terms.as_tuple(), {"from": yard.stranger, "value": terms.escrow + 9})

    assert gains(yard, before) == {yard.stranger: 9}
    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": terms.escrow + 9}


def test_last_wei_of_credit_is_enough(yard):
    """Rules T1, V2: exactly the escrow is needed."""
    yard.post(Policy.REPLICATE, reward=CREDIT)

    assert yard.credit(yard.requester) == 0


def test_one_wei_short_is_refused(yard):
    """Rules T1, V2: nobody locks what it does not have."""
    with reverts("MarketInsufficientCredit", yard.requester, CREDIT, CREDIT + 1):
        yard.post(Policy.REPLICATE, reward=CREDIT + 1)


REFUSED = [
    ("manifest", Policy.AUDIT, {"manifest": bytes(32)}),
    ("envClass", Policy.AUDIT, {"env_class": bytes(32)}),
    ("slots", Policy.AUDIT, {"slots": 0}),
    ("slots", Policy.AUDIT, {"slots": MAX_SLOTS + 1}),
    ("quorum", Policy.AUDIT, {"quorum": 0}),
    ("quorum", Policy.AUDIT, {"slots": 3, "quorum": 4}),
    ("quorum", Policy.AUDIT, {"slots": 2, "quorum": 2}),
    ("quorum", Policy.SCORE, {"slots": 4, "quorum": 3}),
    ("quorum", Policy.REPLICATE, {"slots": 3, "quorum": 1}),
    ("quorum", Policy.REPLICATE, {"slots": 4, "quorum": 2}),
    ("audits", Policy.AUDIT, {"audits": MAX_SEATS + 1}),
    ("audits", Policy.REPLICATE, {"audits": 1}),
    ("audits", Policy.SCORE, {"audits": 0}),
    ("audits", Policy.SCORE, {"audits": 2}),
    ("audits", Policy.CONTEST, {"audits": 4}),
    ("audits", Policy.CONTEST, {"audits": MAX_SEATS + 2}),
    ("segments", Policy.AUDIT, {"segments": 0}),
    ("segments", Policy.AUDIT, {"segments": UINT32_MAX}),
    ("segments", Policy.REPLICATE, {"segments": 1}),
    ("segments", Policy.SCORE, {"segments": 1}),
    ("segments", Policy.CONTEST, {"segments": 1}),
    ("minAudits", Policy.AUDIT, {"audits": 2, "min_audits": 3}),
    ("minAudits", Policy.AUDIT, {"segments": SEGMENTS, "audits": 5, "min_audits": 5}),
    ("minAudits", Policy.AUDIT, {"segments": 1, "audits": 2, "min_audits": 2}),
    ("minAudits", Policy.REPLICATE, {"min_audits": 1}),
    ("minAudits", Policy.SCORE, {"min_audits": 0}),
    ("minAudits", Policy.CONTEST, {"min_audits": 0}),
    ("minAudits", Policy.CONTEST, {"audits": 3, "min_audits": 4}),
    ("sharesAgreed", Policy.REPLICATE, {"shares_agreed": True}),
    ("sharesAgreed", Policy.CONTEST, {"shares_agreed": True}),
    ("joinFor", Policy.AUDIT, {"join_for": 0}),
    ("joinFor", Policy.AUDIT, {"join_for": YEAR + 1}),
    ("trainFor", Policy.AUDIT, {"train_for": PARAMS.min_window - 1}),
    ("trainFor", Policy.AUDIT, {"train_for": YEAR + 1}),
    ("auditFor", Policy.AUDIT, {"audit_for": PARAMS.min_window - 1}),
    ("auditFor", Policy.AUDIT, {"audit_for": 30 * DAY + 1}),
    ("answerFor", Policy.AUDIT, {"answer_for": PARAMS.min_window - 1}),
    ("answerFor", Policy.AUDIT, {"answer_for": 7 * DAY + 1}),
    ("challengeFor", Policy.AUDIT, {"challenge_for": 30 * DAY + 1}),
    ("reward", Policy.REPLICATE, {"reward": 1, "stake": UINT96_MAX}),
    ("reward", Policy.CONTEST, {"slots": 2, "reward": 0, "stake": UINT96_MAX // 2}),
    ("auditFee", Policy.AUDIT, {"audit_fee": PARAMS.seat_bond // 100 - 1}),
    ("auditFee", Policy.SCORE, {"audit_fee": PARAMS.seat_bond // 100 - 1}),
    ("auditFee", Policy.CONTEST, {"audit_fee": 0}),
    ("auditFee", Policy.AUDIT, {"audit_fee": PARAMS.seat_bond // 8 + 1}),
    ("stake", Policy.AUDIT, {"stake": PARAMS.referee_cost(FEE) - 1}),
    ("stake", Policy.AUDIT, {"slots": 4, "quorum": 2, "stake": PARAMS.referee_cost(FEE) // 2 - 1}),
]


@pytest.mark.parametrize(("name", "policy", "changes"), REFUSED)
def test_terms_that_cannot_work_are_refused_by_name(yard, name, policy, changes):
    """Rule T1: the error names the field."""
    with reverts("MarketInvalidTerms", field(name)):
        yard.post(policy, **changes)


ACCEPTED = [
    (Policy.REPLICATE, {"slots": MAX_SLOTS, "quorum": 17}),
    (Policy.REPLICATE, {"slots": 3, "quorum": 2}),
    (Policy.REPLICATE, {"slots": 4, "quorum": 4}),
    (Policy.AUDIT, {"slots": MAX_SLOTS, "quorum": 1}),
    (Policy.AUDIT, {"audits": 0}),
    (Policy.AUDIT, {"segments": 30, "audits": MAX_SEATS, "min_audits": 12}),
    (Policy.AUDIT, {"segments": SEGMENTS, "audits": 5, "min_audits": 4}),
    (Policy.AUDIT, {"segments": 1, "audits": 2, "min_audits": 1}),
    (Policy.AUDIT, {"segments": UINT32_MAX - 1}),
    (Policy.AUDIT, {"join_for": YEAR, "train_for": YEAR}),
    (Policy.AUDIT, {"audit_for": 30 * DAY, "answer_for": 7 * DAY, "challenge_for": 30 * DAY}),
    (Policy.AUDIT, {"join_for": 1}),
    (Policy.AUDIT, dict.fromkeys(("train_for", "audit_for", "answer_for"), PARAMS.min_window)),
    (Policy.AUDIT, {"challenge_for": 0}),
    (Policy.AUDIT, {"audit_fee": PARAMS.seat_bond // 100}),
    (Policy.AUDIT, {"audit_fee": PARAMS.seat_bond // 8}),
    (Policy.SCORE, {"slots": 3, "quorum": 2}),
    (Policy.CONTEST, {"slots": 4, "quorum": 4}),
    (Policy.AUDIT, {"stake": PARAMS.referee_cost(FEE)}),
    (Policy.AUDIT, {"slots": 4, "quorum": 2, "stake": PARAMS.referee_cost(FEE) // 2}),
    (Policy.AUDIT, {"shares_agreed": True}),
    (Policy.SCORE, {"shares_agreed": True}),
    (Policy.SCORE, {"audits": 1}),
    (Policy.CONTEST, {"audits": MAX_SEATS, "min_audits": 12}),
    (Policy.REPLICATE, {"reward": 1, "stake": UINT96_MAX - 1}),
    (Policy.REPLICATE, {"reward": 0, "stake": 0}),
]


@pytest.mark.parametrize(("policy", "changes"), ACCEPTED)
def test_terms_at_their_bounds_are_taken(yard, policy, changes):
    """Rule T1: nothing that can work is refused."""
    task = yard.post(policy, **changes)

    assert yard.state(task) == TaskState.OPEN


@pytest.mark.parametrize("policy", [Policy.AUDIT, Policy.SCORE, Policy.CONTEST])
def test_demand_for_more_auditors_than_there_are_is_refused(yard, policy):
    """Rule A5: the pool has twelve members, and a requester may not demand thirteen."""
    changes = {"segments": 30} if policy is Policy.AUDIT else {}

    with reverts("MarketTooFewAuditors", 12, 13):
        yard.post(policy, audits=13, min_audits=13, **changes)


def test_retired_auditors_cannot_be_demanded(yard):
    """Rules A5, W3: they left the pool at once."""
    yard.market.retire({"from": yard.auditors[4]})

    with reverts("MarketTooFewAuditors", 11, 12):
        yard.post(segments=30, audits=12, min_audits=12)


def test_paused_market_takes_no_posts(yard):
    """Rule O1: pausing stops new posts."""
    yard.market.setPaused(True, {"from": yard.owner})

    with brownie.reverts("EnforcedPause: "):
        yard.post()


def test_unpaused_market_takes_posts_again(yard):
    """Rule O1: pausing ends."""
    yard.market.setPaused(True, {"from": yard.owner})
    yard.market.setPaused(False, {"from": yard.owner})

    assert yard.state(yard.post()) == TaskState.OPEN


def test_paused_market_goes_on_with_what_was_posted(yard):
    """Rule O1: a task lives its whole life while the market is paused."""
    task = yard.post(Policy.REPLICATE, reward=3 * ETHER)
    yard.market.setPaused(True, {"from": yard.owner})
    before = credits_of_all(yard)

    yard.join(task, yard.workers[0])
    yard.commit(task, yard.workers[0])
    yard.reveal(task, yard.workers[0])
    yard.market.settle(task, {"from": yard.stranger})

    assert gains(yard, before) == {yard.workers[0]: 3 * ETHER}


def plain(value):
    """A value of an event or a struct, with brownie's hex strings as bytes."""
    return bytes(value) if isinstance(value, bytes) else value
