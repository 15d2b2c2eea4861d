"""How the market's three parts are put together, and that only the whole is of use."""

from dataclasses import replace

import brownie
import pytest
from brownie import MarketDisputes, MarketSettlement, OddToken, TrainingMarket, accounts, interface

from tests.contracts.yard import ETHER, PARAMS, digest, event, field, reverts
from trainyard.protocol.market import NATIVE_CURRENCY, DisputeState, Policy, TaskState

CLAIM = (digest("result"), digest("root"), bytes(32))
NOBODY = "0x" + "00" * 20


@pytest.fixture(scope="module")
def disputes(module_isolation):
    return MarketDisputes.deploy({"from": accounts[0]})


@pytest.fixture(scope="module")
def settlement(disputes):
    return MarketSettlement.deploy(disputes, {"from": accounts[0]})


@pytest.fixture
def owner(settlement, fn_isolation):
    return accounts[0]


def deploy(owner, settlement, currency=NATIVE_CURRENCY, named=None, **changes):
    params = replace(PARAMS, **changes).as_tuple()
    return TrainingMarket.deploy(currency, named or owner, settlement, params, {"from": owner})


def test_market_starts_with_what_it_was_given(owner, settlement):
    """Rules O2, V1: currency, owner and parameters; no task, and nothing owed."""
    market = deploy(owner, settlement, named=accounts[5])
    whole = interface.ITrainingMarket(market.address)

    assert event(market.tx, "ParamsSet") == {"paramsId": 0, "params": PARAMS.as_tuple()}
    assert (market.owner(), market.currency()) == (accounts[5], NATIVE_CURRENCY)
    assert (whole.paramsCount(), whole.params(0)) == (1, PARAMS.as_tuple())
    assert (whole.taskCount(), whole.solvency()) == (0, (0, 0))


def test_owner_is_needed(owner, settlement):
    """Rule O2: a market is not born without one."""
    with reverts("OwnableInvalidOwner", NOBODY):
        deploy(owner, settlement, named=NOBODY)


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("seatBond", {"seat_bond": 0}),
        ("unbondFor", {"unbond_for": 30 * 86_400 + 1}),
        ("faultBps", {"fault_bps": 5_001}),
        ("finderBps", {"finder_bps": 9_000, "requester_bps": 1}),
        ("referees", {"referees": 1}),
        ("escalation", {"escalation": 3}),
        ("drawDelay", {"draw_delay": 0}),
        ("minWindow", {"min_window": 0}),
    ],
)
def test_first_parameters_are_bounded_like_later_ones(owner, settlement, name, changes):
    """Rule O2: construction is no way around the bounds."""
    with reverts("MarketInvalidParams", field(name)):
        deploy(owner, settlement, **changes)


def test_parts_must_have_code(owner):
    """Rule V1: a call handed on to nobody would succeed and do nothing."""
    nobody = accounts[9]
    with reverts("MarketNoCode", nobody):
        MarketSettlement.deploy(nobody, {"from": owner})
    with reverts("MarketNoCode", nobody):
        deploy(owner, nobody)


def test_token_must_have_code(owner, settlement):
    """Rule V3: an account is no currency."""
    with reverts("MarketNoCode", accounts[9]):
        deploy(owner, settlement, currency=accounts[9])


def test_token_is_the_currency_for_good(owner, settlement):
    """Rule V7: the market is of the currency that it was built with."""
    token = OddToken.deploy({"from": owner})

    assert deploy(owner, settlement, currency=token).currency() == token


def test_one_address_answers_for_all_parts(yard):
    """Rule C2: the vault, the settlement and the disputes run on the same storage."""
    task = yard.window()
    yard.challenge(task, 3)

    assert yard.market.task(task)["state"] == TaskState.DISPUTED
    assert yard.market.dispute(task, 3)["state"] == DisputeState.CALLED
    assert yard.market.solvency()[0] == yard.market.balance()


SETTLEMENT_ACTS = {
    "cancel": ([1], "MarketUnexpectedState", [1, TaskState.NONE]),
    "settle": ([1], "MarketUnexpectedState", [1, TaskState.NONE]),
    "settleShares": ([1, CLAIM, []], "MarketWrongShares", [1]),
    "expire": ([1], "MarketUnexpectedState", [1, TaskState.NONE]),
    "leave": ([1, 0], "MarketUnexpectedState", [1, TaskState.NONE]),
    "ping": ([1, 0], "MarketUnexpectedState", [1, TaskState.NONE]),
    "pong": ([1, 0], "MarketUnexpectedState", [1, TaskState.NONE]),
    "evict": ([1, 0], "MarketUnexpectedState", [1, TaskState.NONE]),
}
DISPUTES_ACTS = {
    "draw": ([1], "MarketUnexpectedState", [1, TaskState.NONE]),
    "auditCommit": ([1, 0, digest("x")], "MarketUnexpectedState", [1, TaskState.NONE]),
    "open": ([1, CLAIM, [], []], "MarketUnexpectedState", [1, TaskState.NONE]),
    "auditReveal": ([1, 0, digest("x"), digest("y")], "MarketWrongPolicy", [1, Policy.REPLICATE]),
    "scoreReveal": ([1, 0, digest("x"), [1]], "MarketUnexpectedState", [1, TaskState.NONE]),
    "challenge": ([1, 0, CLAIM, digest("x"), []], "MarketWrongPolicy", [1, Policy.REPLICATE]),
    "challengeUnserved": ([1, 0], "MarketWrongPolicy", [1, Policy.REPLICATE]),
    "serve": ([1, 0, CLAIM, digest("x"), []], "MarketUnexpectedState", [1, TaskState.NONE]),
    "drawReferees": ([1, 0], "MarketUnexpectedState", [1, TaskState.NONE]),
    "refereeCommit": ([1, 0, 0, digest("x")], "MarketUnexpectedState", [1, TaskState.NONE]),
    "refereeReveal": (
        [1, 0, 0, digest("x"), digest("y")],
        "MarketUnexpectedState",
        [1, TaskState.NONE],
    ),
    "resolve": ([1, 0], "MarketUnexpectedDispute", [1, 0, DisputeState.NONE]),
}
MARKET_ACTS = {
    "deposit": [1],
    "depositWithPermit": [1, 1, 27, digest("r"), digest("s")],
    "withdraw": [NOBODY, 0],
    "burn": [],
    "register": [digest("p"), digest("c"), 0],
    "setProfile": [digest("p")],
    "addBond": [1],
    "setDuty": [1, 1, 1],
    "retire": [],
    "unbond": [],
    "post": [(bytes(32),) * 3 + (0,) * 5 + (False,) + (0,) * 12],
    "join": [1, digest("card"), []],
    "commit": [1, 0, digest("x")],
    "commitBySig": [1, 0, digest("x"), 2**40, b""],
    "reveal": [1, 0, digest("x"), digest("y"), digest("z")],
    "submit": [1, 0, digest("x"), digest("y"), []],
    "submitBySig": [1, 0, digest("x"), digest("y"), [], 2**40, b""],
    "setPaused": [True],
    "setParams": [PARAMS.as_tuple()],
}


def test_table_of_acts_is_complete():
    """Rule C2: no act of the market is left out below."""
    acts = {
        entry["name"]
        for entry in interface.ITrainingMarket.abi
        if entry["type"] == "function" and entry["stateMutability"] in ("nonpayable", "payable")
    }

    assert {*SETTLEMENT_ACTS, *DISPUTES_ACTS, *MARKET_ACTS} == acts


@pytest.mark.parametrize("act", [*SETTLEMENT_ACTS, *DISPUTES_ACTS])
def test_second_part_alone_has_no_task_to_act_on(owner, settlement, act):
    """Rule V1: called past the market, its storage is empty; what it does not know it hands on."""
    arguments, error, values = (SETTLEMENT_ACTS | DISPUTES_ACTS)[act]
    alone = interface.ITrainingMarket(settlement.address)
    with reverts(error, *values):
        getattr(alone, act)(*arguments, {"from": owner})


@pytest.mark.parametrize("act", DISPUTES_ACTS)
def test_third_part_alone_has_no_task_to_act_on(owner, disputes, act):
    """Rule V1: called past the market, its storage is empty."""
    arguments, error, values = DISPUTES_ACTS[act]
    with reverts(error, *values):
        getattr(disputes, act)(*arguments, {"from": owner})


@pytest.mark.parametrize("part", [0, 1], ids=["second", "third"])
def test_parts_alone_neither_take_money_nor_have_an_owner(owner, settlement, disputes, part):
    """Rules O1, V1: no door for money, workers, tasks or parameters is there."""
    alone = interface.ITrainingMarket((settlement, disputes)[part].address)
    for act, arguments in MARKET_ACTS.items():
        # Nobody is there to give a reason.
        with brownie.reverts():
            getattr(alone, act)(*arguments, {"from": owner})


@pytest.mark.parametrize("part", [0, 1], ids=["second", "third"])
@pytest.mark.parametrize("data", ["0x", "0x12345678"])
def test_parts_alone_refuse_value(owner, settlement, disputes, part, data):
    """Rule V1: nothing can be lost in them."""
    alone = (settlement, disputes)[part]
    with brownie.reverts():
        owner.transfer(alone, ETHER, data=data)

    assert alone.balance() == 0
