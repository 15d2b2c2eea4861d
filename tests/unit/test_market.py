"""The market's nouns in Python."""

from dataclasses import fields

import pytest

from trainyard.protocol.market import (
    OWN_PANEL,
    Params,
    Policy,
    Terms,
    solidity_fields,
    solidity_name,
)

PARAMS = Params(
    seat_bond=900,
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
    manifest=b"\x01" * 32, env_class=b"\x02" * 32, policy=Policy.AUDIT, reward=70, stake=50
)


@pytest.mark.parametrize(
    ("python", "solidity"),
    [("stake", "stake"), ("min_audits", "minAudits"), ("min_audit_for", "minAuditFor")],
)
def test_names_are_spelled_as_in_solidity(python: str, solidity: str) -> None:
    assert solidity_name(python) == solidity


@pytest.mark.parametrize("struct", [TERMS, PARAMS], ids=["Terms", "Params"])
def test_tuple_has_the_order_of_the_struct(struct: Terms | Params) -> None:
    names = [field.name for field in fields(struct)]

    assert struct.as_tuple() == tuple(getattr(struct, name) for name in names)
    assert solidity_fields(type(struct)) == [solidity_name(name) for name in names]


@pytest.mark.parametrize(
    ("slots", "audits", "fee", "escrow"),
    [(1, 0, 0, 70), (3, 0, 9, 210), (1, 2, 9, 88), (3, 2, 9, 228)],
)
def test_escrow_is_all_rewards_and_all_fees(slots: int, audits: int, fee: int, escrow: int) -> None:
    """Rule T1: posting locks the rewards of all slots and the fees of all audits."""
    terms = Terms(
        manifest=TERMS.manifest,
        env_class=TERMS.env_class,
        policy=Policy.AUDIT,
        reward=70,
        stake=50,
        slots=slots,
        audits=audits,
        audit_fee=fee,
    )

    assert terms.escrow == escrow


def test_referees_of_both_committees_are_paid() -> None:
    """Rule W5: the seat bond covers the fees of two committees."""
    assert PARAMS.referee_cost(100) == 8 * 100 <= PARAMS.seat_bond


def test_own_panel_is_no_segment() -> None:
    """The last number that a segment could have is refused as a length of a trace."""
    assert OWN_PANEL == 2**32 - 1
