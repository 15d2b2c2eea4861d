"""A worker changes its profile: `setProfile`."""

from tests.contracts.yard import ENV_CLASS, digest, event, reverts

PROFILE = digest("better profile")


def test_profile_is_replaced_and_nothing_else(yard):
    """Rule W1: class, bond and place in the pool stay."""
    auditor = yard.auditors[3]
    before = yard.market.worker(auditor).dict()
    tx = yard.market.setProfile(PROFILE, {"from": auditor})

    assert event(tx, "ProfileChanged") == {"worker": auditor, "profile": "0x" + PROFILE.hex()}
    assert yard.market.worker(auditor).dict() == before | {"profile": "0x" + PROFILE.hex()}


def test_profile_is_needed(yard):
    """Rule W1: zero is no profile."""
    with reverts("MarketZeroDigest"):
        yard.market.setProfile(bytes(32), {"from": yard.workers[0]})


def test_strangers_have_no_profile(yard):
    """Rule W1: only who is registered has one to change."""
    with reverts("MarketNotRegistered", yard.stranger):
        yard.market.setProfile(PROFILE, {"from": yard.stranger})


def test_retired_workers_have_no_profile(yard):
    """Rules W1, W3: retiring takes the worker out of the register."""
    worker = yard.workers[0]
    yard.market.retire({"from": worker})
    with reverts("MarketNotRegistered", worker):
        yard.market.setProfile(PROFILE, {"from": worker})

    assert yard.market.worker(worker)["envClass"] != "0x" + ENV_CLASS.hex()
