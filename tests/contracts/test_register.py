"""Workers come: `register`."""

import pytest

from tests.contracts.yard import CREDIT, ENV_CLASS, ETHER, PARAMS, digest, event, reverts

PROFILE = digest("my profile")
NEW_CLASS = digest("new class")


def test_worker_names_its_profile_and_class(yard):
    """Rule W1: both are on record, and without a bond there is no duty."""
    tx = yard.market.register(PROFILE, NEW_CLASS, 0, {"from": yard.stranger})

    assert event(tx, "WorkerRegistered") == {
        "worker": yard.stranger,
        "envClass": "0x" + NEW_CLASS.hex(),
        "profile": "0x" + PROFILE.hex(),
    }
    assert "BondAdded" not in tx.events
    worker = yard.market.worker(yard.stranger)
    assert worker["envClass"] == "0x" + NEW_CLASS.hex()
    assert worker["profile"] == "0x" + PROFILE.hex()
    assert (worker["bond"], worker["poolIndex"], worker["unbondsAt"]) == (0, 0, 0)
    assert yard.market.poolSize(NEW_CLASS) == 0


def test_bond_puts_the_worker_into_the_pool_of_its_class(yard):
    """Rules V2, W2: the bond leaves the credit, and the pool has a member."""
    credit = yard.credit(yard.challenger)
    tx = yard.market.register(PROFILE, NEW_CLASS, ETHER, {"from": yard.challenger})

    assert event(tx, "BondAdded") == {
        "worker": yard.challenger,
        "amount": ETHER,
        "poolIndex": 1,
        "since": tx.timestamp,
    }
    worker = yard.market.worker(yard.challenger)
    assert (worker["bond"], worker["bondLocked"], worker["poolIndex"]) == (ETHER, 0, 1)
    assert worker["since"] == tx.timestamp
    assert yard.credit(yard.challenger) == credit - ETHER
    assert yard.market.poolSize(NEW_CLASS) == 1
    assert yard.market.poolMember(NEW_CLASS, 0) == yard.challenger


def test_value_rides_along(yard):
    """Rule V7: value is credited first, so one transaction deposits and bonds; the rest stays."""
    tx = yard.market.register(
        PROFILE, ENV_CLASS, ETHER, {"from": yard.stranger, "value": ETHER + 7}
    )

    assert event(tx, "Deposited") == {"account": yard.stranger, "amount": ETHER + 7}
    assert yard.credit(yard.stranger) == 7
    assert yard.market.worker(yard.stranger)["bond"] == ETHER


def test_token_market_takes_no_value(token_yard):
    """Rule V7: coin in a token market would be nobody's."""
    with reverts("MarketWrongValue", 7, 0):
        token_yard.market.register(PROFILE, ENV_CLASS, 0, {"from": token_yard.stranger, "value": 7})


def test_registering_twice_is_refused(yard):
    """Rule W1: a worker has one profile and one class."""
    with reverts("MarketAlreadyRegistered", yard.workers[0]):
        yard.market.register(PROFILE, NEW_CLASS, 0, {"from": yard.workers[0]})

    assert yard.market.worker(yard.workers[0])["envClass"] == "0x" + ENV_CLASS.hex()


def test_retired_worker_waits_for_its_bond_before_it_comes_back(yard):
    """Rule W3: the old bond is still answerable."""
    auditor = yard.auditors[0]
    unbonds_at = event(yard.market.retire({"from": auditor}), "WorkerRetired")["unbondsAt"]
    with reverts("MarketUnbonding", auditor, unbonds_at):
        yard.market.register(PROFILE, NEW_CLASS, 0, {"from": auditor})


@pytest.mark.parametrize(
    ("profile", "env_class"), [(bytes(32), NEW_CLASS), (PROFILE, bytes(32)), (bytes(32), bytes(32))]
)
def test_profile_and_class_are_needed(yard, profile, env_class):
    """Rule W1: zero is neither."""
    with reverts("MarketZeroDigest"):
        yard.market.register(profile, env_class, 0, {"from": yard.stranger})


@pytest.mark.parametrize("bond", [1, PARAMS.seat_bond - 1])
def test_bond_below_the_seat_bond_is_refused(yard, bond):
    """Rule W2: a bond is enough for a seat, or it is none."""
    with reverts("MarketBondTooLow", bond, PARAMS.seat_bond):
        yard.market.register(PROFILE, NEW_CLASS, bond, {"from": yard.challenger})

    assert yard.market.worker(yard.challenger)["envClass"] == "0x" + "00" * 32


def test_seat_bond_is_enough(yard):
    """Rule W2: exactly the seat bond is a bond."""
    yard.market.register(PROFILE, NEW_CLASS, PARAMS.seat_bond, {"from": yard.challenger})

    assert yard.market.poolSize(NEW_CLASS) == 1


def test_bond_needs_credit(yard):
    """Rule V2: what is not credited cannot be put down."""
    with reverts("MarketInsufficientCredit", yard.challenger, CREDIT, CREDIT + 1):
        yard.market.register(PROFILE, NEW_CLASS, CREDIT + 1, {"from": yard.challenger})


def test_bond_needs_credit_beyond_the_value(yard):
    """Rule V7: value one short of the bond is not enough."""
    with reverts("MarketInsufficientCredit", yard.stranger, ETHER - 1, ETHER):
        yard.market.register(PROFILE, NEW_CLASS, ETHER, {"from": yard.stranger, "value": ETHER - 1})

    assert yard.credit(yard.stranger) == 0


def test_workers_come_while_paused(yard):
    """Rule O1: a pause stops new posts alone."""
    yard.market.setPaused(True, {"from": yard.owner})
    yard.register(yard.stranger)

    assert yard.market.worker(yard.stranger)["envClass"] == "0x" + ENV_CLASS.hex()
