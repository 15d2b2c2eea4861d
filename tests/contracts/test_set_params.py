"""The owner sets the parameters of future tasks: `setParams`."""

from dataclasses import replace

import pytest

from tests.contracts.yard import BOND, FEE, PARAMS, event, field, reverts
from trainyard.protocol.market import Params, Policy

DAY = 86_400
# The cap of the seat bond is fixed at construction.
MOST_BOND = PARAMS.seat_bond * 100


def set_params(yard, **changes):
    return yard.market.setParams(replace(PARAMS, **changes).as_tuple(), {"from": yard.owner})


def test_parameters_are_a_new_version(yard):
    """Rules O2, V6: old versions stay, and the event has all of the new one."""
    changed = Params(
        seat_bond=1,
        unbond_for=2,
        fault_bps=3,
        finder_bps=4,
        requester_bps=5,
        referees=7,
        escalation=9,
        draw_delay=6,
        min_window=8,
    )
    tx = yard.market.setParams(changed.as_tuple(), {"from": yard.owner})

    assert event(tx, "ParamsSet") == {"paramsId": 1, "params": changed.as_tuple()}
    assert yard.market.paramsCount() == 2
    assert yard.market.params(0) == PARAMS.as_tuple()
    assert yard.market.params(1) == changed.as_tuple()


@pytest.mark.parametrize(
    "changes",
    [
        {"seat_bond": 1},
        {"seat_bond": MOST_BOND},
        {"unbond_for": 0},
        {"unbond_for": 30 * DAY},
        {"fault_bps": 0},
        {"fault_bps": 5_000},
        {"finder_bps": 9_000, "requester_bps": 0},
        {"finder_bps": 0, "requester_bps": 9_000},
        {"referees": 3, "escalation": 15},
        {"referees": 13, "escalation": 15},
        {"draw_delay": 1},
        {"draw_delay": 64},
        {"min_window": 1},
        {"min_window": DAY},
    ],
    ids=str,
)
def test_bounds_themselves_are_allowed(yard, changes):
    """Rule O2: each parameter at its least and at its most."""
    set_params(yard, **changes)

    assert yard.market.params(1) == replace(PARAMS, **changes).as_tuple()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("seatBond", {"seat_bond": 0}),
        ("seatBond", {"seat_bond": MOST_BOND + 1}),
        ("unbondFor", {"unbond_for": 30 * DAY + 1}),
        ("faultBps", {"fault_bps": 5_001}),
        ("finderBps", {"finder_bps": 9_001, "requester_bps": 0}),
        ("finderBps", {"finder_bps": 0, "requester_bps": 9_001}),
        ("finderBps", {"finder_bps": 4_501, "requester_bps": 4_500}),
        ("finderBps", {"finder_bps": 2**16 - 1, "requester_bps": 2**16 - 1}),
        ("referees", {"referees": 1}),
        ("referees", {"referees": 2}),
        ("referees", {"referees": 4}),
        ("escalation", {"referees": 3, "escalation": 3}),
        ("escalation", {"referees": 5, "escalation": 3}),
        ("escalation", {"referees": 3, "escalation": 6}),
        ("escalation", {"referees": 3, "escalation": 17}),
        ("drawDelay", {"draw_delay": 0}),
        ("drawDelay", {"draw_delay": 65}),
        ("minWindow", {"min_window": 0}),
        ("minWindow", {"min_window": DAY + 1}),
    ],
    ids=str,
)
def test_beyond_the_bounds_the_field_is_named(yard, name, changes):
    """Rule O2: the owner can neither price people out nor make slashing free."""
    with reverts("MarketInvalidParams", field(name)):
        set_params(yard, **changes)

    assert yard.market.paramsCount() == 1


def test_cap_of_the_seat_bond_does_not_move_with_the_seat_bond(yard):
    """Rule O2: raising it step by step ends at the same bound."""
    set_params(yard, seat_bond=MOST_BOND)
    with reverts("MarketInvalidParams", field("seatBond")):
        set_params(yard, seat_bond=MOST_BOND + 1)


def test_only_the_owner_sets_parameters(yard):
    """Rule O2: nobody else does."""
    with reverts("OwnableUnauthorizedAccount", yard.stranger):
        yard.market.setParams(PARAMS.as_tuple(), {"from": yard.stranger})


def test_posted_tasks_keep_their_parameters(yard):
    """Rules C3, W5: a task's bond is that of the day of its post, whatever comes later."""
    old = yard.post()
    set_params(yard, seat_bond=2 * BOND)
    new = yard.post()

    assert (yard.market.task(old)["paramsId"], yard.market.bondOf(old)) == (0, BOND)
    assert (yard.market.task(new)["paramsId"], yard.market.bondOf(new)) == (1, 2 * BOND)


def test_seat_bond_is_one_for_all_fees(yard):
    """Rule W5: a dear task's seat costs no more than a cheap one's."""
    cheap, dear = yard.post(audit_fee=FEE // 10), yard.post(audit_fee=FEE)

    assert yard.market.bondOf(cheap) == yard.market.bondOf(dear) == BOND


@pytest.mark.parametrize("fault_bps", [0, 5_000])
def test_penalty_of_a_running_task_cannot_be_changed(yard, fault_bps):
    """Rules C3, P2: who was absent pays what was agreed when the task was posted."""
    task = yard.running(Policy.REPLICATE)
    before = yard.credit(yard.workers[0])
    set_params(yard, fault_bps=fault_bps)
    yard.pass_deadline(task)
    yard.market.expire(task, {"from": yard.stranger})

    stake = yard.market.task(task)["stake"]
    assert yard.credit(yard.workers[0]) == before + stake - stake * PARAMS.fault_bps // 10_000


@pytest.mark.parametrize("index", [1, 2**256 - 1])
def test_versions_that_are_not_there_cannot_be_read(yard, index):
    """Rule C3: there is no version but those that were set."""
    with pytest.raises(Exception, match="Index out of range"):
        yard.market.params(index)
