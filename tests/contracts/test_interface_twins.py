"""Python and Solidity say the same: enums, structs, constants, digests and commitments."""

import json
from dataclasses import fields, is_dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import pytest
from brownie import TrainingMarket
from brownie.test import given
from hypothesis import strategies as st

from tests.contracts.yard import ENV_CLASS, ETHER, FEE, digest, event
from trainyard.protocol import commitments, market
from trainyard.protocol.commitments import Claim, scores_answer
from trainyard.protocol.market import (
    OWN_PANEL,
    Params,
    Policy,
    Terms,
    solidity_fields,
    solidity_name,
)

BUILD = Path(__file__).resolve().parents[2] / "build/contracts"
SHARES = [[], [10_000], [0, 1], [3_000, 0, 7_000], [2_500, 2_500, 2_500, 2_500]]

words = st.binary(min_size=32, max_size=32)
numbers = st.integers(0, 2**256 - 1)
segments = st.integers(0, 2**32 - 1)
addresses = st.binary(min_size=20, max_size=20).map(lambda raw: "0x" + raw.hex())


def definitions(contract: str, kind: str) -> dict[str, dict[str, Any]]:
    """What a contract itself defines of a kind, as the compiler read it."""
    tree = json.loads((BUILD / f"{contract}.json").read_text())["ast"]
    body = next(node for node in tree["nodes"] if node.get("name") == contract)
    return {node["name"]: node for node in body["nodes"] if node["nodeType"] == kind}


def members(node: dict[str, Any]) -> list[str]:
    return [member["name"] for member in node["members"]]


def constant(node: dict[str, Any]) -> Any:
    """The value of a constant, as Python would have it."""
    kind, value = node["typeDescriptions"]["typeString"], node["value"]
    if value["nodeType"] == "MemberAccess" and value["memberName"] == "max":
        return 2 ** int(kind.removeprefix("uint")) - 1
    number = int(value["value"].replace("_", ""), 0)
    if kind == "bytes32":
        return number.to_bytes(32, "big")
    return value["value"] if kind == "address" else number


def enums() -> dict[str, type[IntEnum]]:
    found = [value for value in vars(market).values() if isinstance(value, type)]
    return {
        kind.__name__: kind for kind in found if issubclass(kind, IntEnum) and kind is not IntEnum
    }


def structs() -> dict[str, type]:
    found = [value for value in vars(market).values() if isinstance(value, type)]
    return {kind.__name__: kind for kind in found if is_dataclass(kind)}


def test_every_enum_has_its_twin():
    """Rule V6: whoever reads events reads the same states."""
    solidity = {
        name: members(node) for name, node in definitions("IMarketTypes", "EnumDefinition").items()
    }
    python = {
        name: [solidity_name(f"_{member.name.lower()}") for member in kind]
        for name, kind in enums().items()
    }

    assert python == solidity
    assert all([*kind] == [*range(len(kind))] for kind in enums().values())


def test_every_struct_has_its_twin():
    """Rule T1: terms and parameters are encoded in the order in which the contract reads them."""
    solidity = definitions("IMarketTypes", "StructDefinition")

    assert set(structs()) == {"Terms", "Params"}
    for name, kind in structs().items():
        assert solidity_fields(kind) == members(solidity[name])


def test_claim_has_its_twin():
    """Rule T6: the digest of a claim is that of its three words in this order."""
    claim = definitions("IMarketTypes", "StructDefinition")["Claim"]

    assert [field.name for field in fields(commitments.Claim)] == members(claim)


@pytest.mark.parametrize(
    ("python", "solidity"),
    [
        ("BPS", "BPS"),
        ("MAX_SLOTS", "MAX_SLOTS"),
        ("MAX_SEATS", "MAX_SEATS"),
        ("OWN_PANEL", "OWN_PANEL"),
        ("UNSERVED", "UNSERVED"),
        ("BURN_ADDRESS", "BURN"),
    ],
)
def test_every_constant_has_its_twin(python, solidity):
    """Rules A10, P3: the same bounds, and the same names for what has none."""
    node = definitions("MarketStorage", "VariableDeclaration")[solidity]

    assert getattr(market, python) == constant(node)


def test_native_currency_is_what_the_market_calls_it(yard):
    """Rule V7: zero stands for the chain's coin."""
    assert yard.market.currency() == market.NATIVE_CURRENCY


def test_terms_arrive_field_by_field(yard):
    """Rules T1, V6: no two fields are exchanged on the way in or out."""
    terms = Terms(
        manifest=digest("a"),
        env_class=ENV_CLASS,
        allow_list=digest("b"),
        policy=Policy.AUDIT,
        slots=4,
        quorum=2,
        audits=6,
        min_audits=5,
        shares_agreed=True,
        min_settled=7,
        reward=ETHER + 101,
        stake=ETHER + 102,
        audit_fee=FEE + 103,
        segments=104,
        target=105,
        tolerance=106,
        join_for=107,
        train_for=108,
        audit_for=109,
        answer_for=110,
        challenge_for=111,
    )
    tx = yard.market.post(terms.as_tuple(), {"from": yard.requester})
    posted = event(tx, "TaskPosted")
    task = yard.market.task(posted["id"]).dict()
    expected = dict(zip(solidity_fields(Terms), terms.as_tuple(), strict=True))

    assert posted["terms"] == tuple(spelled(value) for value in expected.values())
    assert posted["joinBy"] == task["deadline"] == tx.timestamp + 107
    kept = {name: value for name, value in expected.items() if name != "joinFor"}
    assert {name: task[name] for name in kept} == {
        name: spelled(value) for name, value in kept.items()
    }


def test_parameters_arrive_field_by_field(yard):
    """Rules O2, V6: no two fields are exchanged on the way in or out."""
    params = Params(
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
    yard.market.setParams(params.as_tuple(), {"from": yard.owner})
    expected = dict(zip(solidity_fields(Params), params.as_tuple(), strict=True))

    assert yard.market.params(1).dict() == expected


@given(task=numbers, worker=addresses, salt=words, result=words, root=words)
def test_commitments_to_claims_agree(staffed_yard, task, worker, salt, result, root):
    """Rule T6: bound to chain, market, task and worker."""
    ours = staffed_yard.protocol.claim_commitment(task, worker, salt, result, root)

    assert staffed_yard.market.commitmentOf(task, worker, salt, result, root) == "0x" + ours.hex()


@given(
    task=numbers,
    segment=segments | st.just(OWN_PANEL),
    seat=numbers,
    member=addresses,
    salt=words,
    answer=words,
)
def test_commitments_to_answers_agree(staffed_yard, task, segment, seat, member, salt, answer):
    """Rules A6, D4: bound to chain, market, task, segment, seat and member."""
    ours = staffed_yard.protocol.answer_commitment(
        task, seat, member, salt, answer, segment=segment
    )
    theirs = staffed_yard.market.answerCommitment(task, segment, seat, member, salt, answer)

    assert theirs == "0x" + ours.hex()


@pytest.mark.parametrize("shares", SHARES, ids=str)
def test_digests_of_claims_agree(yard, shares):
    """Rules P1, T8: with and without shares."""
    slots = len(shares) or 1
    task = yard.running(slots=slots, shares_agreed=bool(shares))
    claim = Claim.of(yard.claim.result, yard.claim.root, shares)
    tx = yard.market.submit(task, 0, claim.result, claim.root, shares, {"from": yard.workers[0]})

    assert event(tx, "ClaimSubmitted")["claim"] == tuple(spelled(w) for w in claim.as_tuple())
    assert yard.market.slot(task, 0)["digest"] == spelled(claim.digest)


@pytest.mark.parametrize("scores", [[0], [2**32 - 1], [1, 2], [3, 2, 1]], ids=str)
def test_digests_of_scores_agree(yard, scores):
    """Rule A6: the market takes the reveal only if both sides hash alike."""
    if len(scores) == 1:
        task = yard.scoring(Policy.SCORE, [scores] * 3)
    else:
        task = yard.scoring(Policy.CONTEST, [scores] * 3, slots=len(scores))
    seat = yard.seats(task)[0]
    yard.score_reveal(task, seat, scores)

    answer = yard.market.seat(task, OWN_PANEL, 0, 0)["answer"]
    assert answer == spelled(scores_answer(scores))
    assert yard.market.scores(task, 0) == scores


def test_domain_of_signatures_agrees(yard):
    """Rule T7: name, version, chain and address of the market."""
    contract = TrainingMarket.at(yard.market.address)
    _, name, version, chain_id, address, _, _ = contract.eip712Domain()
    message = yard.protocol.commitment_message(1, 0, digest("x"), 0)

    assert message["domain"] == {
        "name": name,
        "version": version,
        "chainId": chain_id,
        "verifyingContract": address,
    }


def spelled(value: Any) -> Any:
    """A value as brownie returns it."""
    return "0x" + value.hex() if isinstance(value, bytes) else value
