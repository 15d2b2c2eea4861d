"""The money model: what each act moves, and that nothing is lost on the way."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.protocol.market import BURN_ADDRESS, Params, Policy, Terms
from trainyard.protocol.money import Duty, Money, MoneyError, Part

PARAMS = Params(
    seat_bond=999,
    unbond_for=60,
    fault_bps=2_000,
    finder_bps=5_000,
    requester_bps=3_000,
    referees=3,
    escalation=5,
    draw_delay=1,
    min_window=60,
)
TERMS = Terms(
    manifest=b"\x01" * 32,
    env_class=b"\x02" * 32,
    policy=Policy.AUDIT,
    slots=3,
    quorum=2,
    audits=2,
    reward=1_001,
    stake=507,
    audit_fee=101,
)
FAULT = 101  # a fifth of the stake
SILENCE = 199  # a fifth of the bond
START = 10_000
TASK, SEGMENT = 1, 4
WORKERS = ["worker a", "worker b", "worker c"]
MEMBERS = ["member a", "member b", "member c", "member d", "member e"]
ALL_SIGNED = dict.fromkeys(WORKERS, Part.SIGNED)
NOBODY: dict[str, Duty] = {}


def market(**changes: object) -> Money:
    """A running task; everybody began with the same money."""
    money = Money()
    for who in ["requester", "challenger", *WORKERS, *MEMBERS]:
        money.deposit(who, START)
    for member in MEMBERS:
        money.bond(member, 2 * PARAMS.seat_bond)
    money.post(TASK, "requester", replace(TERMS, **changes), PARAMS)  # type: ignore[arg-type]
    for worker in WORKERS:
        money.join(TASK, worker)
    return money


def gains(money: Money) -> dict[str, int]:
    """What everybody has more or less than it began with, bonds included."""
    people = {*money.credits, *money.bonds}
    wealth = {who: money.credits[who] + money.bonds[who] for who in people}
    begun = {who: 0 if who == BURN_ADDRESS else START for who in people}
    return {who: wealth[who] - begun[who] for who in people if wealth[who] != begun[who]}


def sit(money: Money, *members: str) -> None:
    for member in members:
        money.pledge(TASK, member)


# The vault


def test_deposit_and_withdrawal_are_each_others_reverse() -> None:
    """Rule V2: money leaves as credit of its own account."""
    money = Money()
    money.deposit("a", 5)
    money.withdraw("a", 3)

    assert (money.credits["a"], money.owed) == (2, 2)


@pytest.mark.parametrize(
    "act",
    [
        lambda money: money.withdraw("a", 6),
        lambda money: money.bond("a", 6),
        lambda money: money.post(TASK, "a", TERMS, PARAMS),
        lambda money: money.join(TASK, "a"),
        lambda money: money.challenge(TASK, SEGMENT, "a"),
    ],
    ids=["withdraw", "bond", "post", "join", "challenge"],
)
def test_nobody_spends_more_than_its_credit(act: Callable[[Money], None]) -> None:
    """Rule V2: and a refused act changes nothing."""
    money = market()
    money.deposit("a", 5)

    with pytest.raises(MoneyError, match="a has a credit of 5 and needs"):
        act(money)
    assert (money.credits["a"], money.bonds["a"]) == (5, 0)


def test_bond_comes_back_when_no_seat_holds_it() -> None:
    """Rule W3: and not before."""
    money = market()
    sit(money, "member a")

    with pytest.raises(MoneyError, match="999 of the bond of member a"):
        money.unbond("member a")
    money.fail(TASK, ALL_SIGNED, {"member a": Duty.RELEASED})
    money.unbond("member a")
    assert (money.credits["member a"], money.bonds["member a"]) == (START, 0)


def test_burned_money_leaves_the_market() -> None:
    """Rule V5: what is burned is paid to nobody."""
    money = market()
    money.evict(TASK, "worker a")
    owed = money.owed

    assert money.burn() == FAULT
    assert money.owed == owed - FAULT


# Slots


def test_posting_and_joining_lock_escrow_and_stakes() -> None:
    """Rules T1, T3: the lock is what everybody put in."""
    money = market()

    assert money.tasks[TASK].locked == 3 * 1_001 + 2 * 101 + 3 * 507
    assert gains(money) == {"requester": -3_205} | dict.fromkeys(WORKERS, -507)


def test_leaving_and_cancelling_give_everything_back() -> None:
    """Rule T2: nobody loses by a task that never started."""
    money = market()
    money.leave(TASK, "worker a")
    money.cancel(TASK, ["worker b", "worker c"])

    assert gains(money) == {}
    assert money.tasks[TASK].locked == 0


def test_evicted_worker_pays_for_a_fault() -> None:
    """Rules T4, P2, P4: it is burned."""
    money = market()
    money.evict(TASK, "worker a")

    assert gains(money)["worker a"] == -FAULT
    assert gains(money)[BURN_ADDRESS] == FAULT


# Settling

SETTLED = {
    "all signed": (
        {},
        ALL_SIGNED,
        {"requester": -3_003, "worker a": 1_001, "worker b": 1_001, "worker c": 1_001},
    ),
    "dissent and absence": (
        {},
        {"worker a": Part.SIGNED, "worker b": Part.DISSENTED, "worker c": Part.ABSENT},
        {
            "requester": -1_001,
            "worker a": 1_001,
            "worker b": -FAULT,
            "worker c": -FAULT,
            BURN_ADDRESS: 2 * FAULT,
        },
    ),
    "excused": (
        {},
        {"worker a": Part.SIGNED, "worker b": Part.SIGNED, "worker c": Part.EXCUSED},
        {"requester": -2_002, "worker a": 1_001, "worker b": 1_001},
    ),
    "contest": (
        {"policy": Policy.CONTEST},
        {"worker a": Part.DISSENTED, "worker b": Part.SIGNED, "worker c": Part.ABSENT},
        {"requester": -3_003, "worker b": 3_003, "worker c": -FAULT, BURN_ADDRESS: FAULT},
    ),
}


@pytest.mark.parametrize(("changes", "parts", "gained"), SETTLED.values(), ids=SETTLED)
def test_settling_pays_those_who_signed(
    changes: dict[str, object], parts: dict[str, Part], gained: dict[str, int]
) -> None:
    """Rules P1, P2, P4, P5: what is not paid out goes back to the requester."""
    money = market(**changes)
    money.settle(TASK, parts, NOBODY)

    assert gains(money) == gained
    assert money.tasks[TASK].locked == 0


def test_shares_divide_the_whole_reward() -> None:
    """Rule P1: rounding, and what the shares leave, go back to the requester."""
    money = market()
    money.settle(TASK, ALL_SIGNED, NOBODY, dict(zip(WORKERS, [5_000, 3_333, 0], strict=True)))

    assert gains(money) == {"requester": -2_501, "worker a": 1_501, "worker b": 1_000}


# Seats

SERVED = {
    Duty.RIGHT: {"requester": -101, "member a": 101},
    Duty.SILENT: {"member a": -SILENCE, BURN_ADDRESS: SILENCE},
    Duty.WRONG: {"member a": -999, BURN_ADDRESS: 999},
    Duty.RELEASED: {},
}


@pytest.mark.parametrize(("duty", "gained"), SERVED.items(), ids=lambda value: str(value)[:12])
def test_seat_costs_and_earns_by_how_it_was_served(duty: Duty, gained: dict[str, int]) -> None:
    """Rules A8, P4: a right answer earns the fee; what others lose is burned."""
    money = market()
    sit(money, "member a")
    money.fail(TASK, ALL_SIGNED, {"member a": duty})

    assert gains(money) == gained
    assert money.pledged["member a"] == 0


# Failing


def test_failing_gives_back_all_but_the_faults() -> None:
    """Rules T10, P2: the requester is refunded."""
    money = market()
    money.fail(
        TASK,
        {"worker a": Part.SIGNED, "worker b": Part.DISSENTED, "worker c": Part.ABSENT},
        NOBODY,
    )

    assert gains(money) == {"worker c": -FAULT, BURN_ADDRESS: FAULT}


def test_withheld_claim_costs_the_stakes_behind_it() -> None:
    """Rules A7, P3: of one stake the requester gets its part, and all the rest burns."""
    money = market()
    money.convict(TASK, ALL_SIGNED, NOBODY)

    assert gains(money) == dict.fromkeys(WORKERS, -507) | {
        "requester": 152,
        BURN_ADDRESS: 3 * 507 - 152,
    }


def test_fraud_pays_referees_finder_and_requester() -> None:
    """Rules D4, P3: one stake is shared after the fees; who dissented keeps its own."""
    money = market()
    money.challenge(TASK, SEGMENT, "challenger")
    sit(money, *MEMBERS[:3])
    duties = dict(zip(MEMBERS, [Duty.RIGHT, Duty.RIGHT, Duty.SILENT], strict=False))
    parts = ALL_SIGNED | {"worker c": Part.DISSENTED}
    money.convict(TASK, parts, NOBODY, finder="challenger", referees=duties)
    money.return_accusation(TASK, SEGMENT, "challenger")

    assert gains(money) == {
        "worker a": -507,
        "worker b": -507,
        "challenger": 253,
        "requester": 152,
        "member a": 101,
        "member b": 101,
        "member c": -SILENCE,
        BURN_ADDRESS: 2 * 507 - 2 * 101 - 253 - 152 + SILENCE,
    }


def test_poisoning_a_joint_claim_never_pays() -> None:
    """Rule P3: requester, finder and one of the signers together lose by accusing it."""
    money = market()
    money.convict(TASK, ALL_SIGNED, NOBODY, finder="requester")

    assert gains(money)["requester"] + gains(money)["worker a"] < 0


# Disputes


def referees_rejecting(money: Money) -> dict[str, Duty]:
    sit(money, *MEMBERS[1:4])
    return dict.fromkeys(MEMBERS[1:4], Duty.RIGHT)


def test_wrong_challenge_pays_the_accused() -> None:
    """Rule D4: the bond pays the referees; the rest is split."""
    money = market()
    money.challenge(TASK, SEGMENT, "challenger")
    duties = referees_rejecting(money)
    money.reject(TASK, SEGMENT, "challenger", duties, accused="worker a")
    money.cancel(TASK, WORKERS)

    assert gains(money) == dict.fromkeys(MEMBERS[1:4], 101) | {
        "challenger": -999,
        "worker a": 348,
        "requester": 208,
        BURN_ADDRESS: 999 - 303 - 348 - 208,
    }


def test_wrong_auditor_pays_with_its_bond() -> None:
    """Rules D1, D4: the bond of the seat stands behind the accusation."""
    money = market()
    sit(money, "member a")
    duties = referees_rejecting(money)
    money.reject(TASK, SEGMENT, "member a", duties, accused="worker a")

    assert gains(money)["member a"] == -999
    assert money.bonds["member a"] == 999
    assert money.pledged["member a"] == 0


@pytest.mark.parametrize("accuser", ["challenger", "member a"])
def test_starved_accuser_pays_the_referees_and_for_a_fault(accuser: str) -> None:
    """Rule D4: and nobody gains by having starved it."""
    money = market()
    if accuser == "challenger":
        money.challenge(TASK, SEGMENT, accuser)
    else:
        sit(money, accuser)
    money.reject(TASK, SEGMENT, accuser, referees_rejecting(money), accused=None)
    money.cancel(TASK, WORKERS)

    assert gains(money) == dict.fromkeys(MEMBERS[1:4], 101) | {
        accuser: -303 - SILENCE,
        BURN_ADDRESS: SILENCE,
    }


def test_starved_accuser_never_loses_more_than_its_bond() -> None:
    """Rule D4: the referees are paid first."""
    money = market(audit_fee=320)
    money.challenge(TASK, SEGMENT, "challenger")
    money.reject(TASK, SEGMENT, "challenger", referees_rejecting(money), accused=None)

    assert gains(money)["challenger"] == -999
    assert gains(money)[BURN_ADDRESS] == 999 - 3 * 320


def test_undecided_dispute_returns_the_bond() -> None:
    """Rules D5, D6, D7: silent referees pay for their silence, and nobody earns."""
    money = market()
    money.challenge(TASK, SEGMENT, "challenger")
    sit(money, "member a", "member b")
    duties = {"member a": Duty.SILENT, "member b": Duty.RELEASED}
    money.release(TASK, SEGMENT, "challenger", duties)
    money.cancel(TASK, WORKERS)

    assert gains(money) == {"member a": -SILENCE, BURN_ADDRESS: SILENCE}


def test_undecided_dispute_pays_no_fee() -> None:
    money = market()
    money.challenge(TASK, SEGMENT, "challenger")
    sit(money, "member a")

    with pytest.raises(MoneyError, match="decided nothing"):
        money.release(TASK, SEGMENT, "challenger", {"member a": Duty.RIGHT})


# Conservation

amounts = st.integers(0, 10**6)
parts_of_all = st.fixed_dictionaries({worker: st.sampled_from(Part) for worker in WORKERS}).filter(
    lambda parts: Part.SIGNED in parts.values()
)
panels = st.dictionaries(st.sampled_from(MEMBERS[:2]), st.sampled_from(Duty))
committees = st.dictionaries(st.sampled_from(MEMBERS[2:]), st.sampled_from(Duty))
ENDS = ["settle", "fail", "convict", "reject", "starved"]


@given(
    policy=st.sampled_from(Policy),
    reward=amounts,
    stake=st.integers(303, 10**6),
    fault_bps=st.integers(0, 5_000),
    finder_bps=st.integers(0, 4_500),
    requester_bps=st.integers(0, 4_500),
    parts=parts_of_all,
    seats=panels,
    referees=committees,
    end=st.sampled_from(ENDS),
)
def test_no_end_creates_or_loses_money(
    policy: Policy,
    reward: int,
    stake: int,
    fault_bps: int,
    finder_bps: int,
    requester_bps: int,
    parts: dict[str, Part],
    seats: dict[str, Duty],
    referees: dict[str, Duty],
    end: str,
) -> None:
    """Rules V1, V5: what was put in is credited or burned to the last unit, and no lock is left."""
    params = replace(
        PARAMS, fault_bps=fault_bps, finder_bps=finder_bps, requester_bps=requester_bps
    )
    terms = replace(TERMS, policy=policy, reward=reward, stake=stake)
    money = Money()
    for who in ["requester", "challenger", *WORKERS, *MEMBERS]:
        money.deposit(who, 10**7)
    for member in MEMBERS:
        money.bond(member, 999)
    money.post(TASK, "requester", terms, params)
    for worker in WORKERS:
        money.join(TASK, worker)
    money.challenge(TASK, SEGMENT, "challenger")
    sit(money, *seats, *referees)
    before = money.owed

    match end:
        case "settle":
            winners = parts
            if policy is Policy.CONTEST:
                best = next(who for who in parts if parts[who] is Part.SIGNED)
                winners = dict.fromkeys(WORKERS, Part.DISSENTED) | {best: Part.SIGNED}
            money.release(TASK, SEGMENT, "challenger", dict.fromkeys(referees, Duty.SILENT))
            money.settle(TASK, winners, seats)
        case "fail":
            money.release(TASK, SEGMENT, "challenger", dict.fromkeys(referees, Duty.RELEASED))
            money.fail(TASK, parts, seats)
        case "convict":
            money.convict(TASK, parts, seats, finder="challenger", referees=referees)
            money.return_accusation(TASK, SEGMENT, "challenger")
        case _:
            accused = None if end == "starved" else WORKERS[0]
            money.reject(TASK, SEGMENT, "challenger", referees, accused=accused)
            money.fail(TASK, parts, seats)

    assert money.owed == before
    assert money.tasks[TASK].locked == 0
    assert not money.accusations
    assert min([*money.credits.values(), *money.bonds.values()]) >= 0
    assert set(money.pledged.values()) <= {0}
