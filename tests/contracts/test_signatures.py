"""Anyone relays what a slot's holder signed: `commitBySig` and `submitBySig`."""

from dataclasses import dataclass, replace
from typing import Any

import pytest
from brownie import ContractWallet

from tests.contracts.signing import key_holder, sign
from tests.contracts.yard import ENV_CLASS, STAKE, digest, event, reverts, salt_of
from trainyard.protocol.commitments import Claim, Market
from trainyard.protocol.market import Policy, TaskState

KINDS = ["commitment", "submission"]
SHARES = [7_000, 3_000]
DIGEST = digest("a commitment")


@dataclass
class Relay:
    """A signed answer of slot 0, and whoever sends it in."""

    yard: Any
    task: int
    kind: str
    deadline: int

    def sign(self, signer: Any, market: Market | None = None, slot: int = 0) -> bytes:
        market = market or self.yard.protocol
        if self.kind == "commitment":
            message = market.commitment_message(self.task, slot, DIGEST, self.deadline)
        else:
            claim = Claim.of(self.yard.claim.result, self.yard.claim.root, SHARES)
            message = market.submission_message(self.task, slot, claim, self.deadline)
        return bytes(sign(signer, message).signature)

    def send(self, signature: bytes, slot: int = 0, **changes: Any) -> Any:
        """Relay by a stranger, who may tamper with what was signed."""
        by, deadline = {"from": self.yard.stranger}, changes.get("deadline", self.deadline)
        task = changes.get("task", self.task)
        if self.kind == "commitment":
            what = changes.get("commitment", DIGEST)
            return self.yard.market.commitBySig(task, slot, what, deadline, signature, by)
        claim = self.yard.claim
        result, root = changes.get("result", claim.result), changes.get("root", claim.root)
        shares = changes.get("shares", SHARES)
        return self.yard.market.submitBySig(
            task, slot, result, root, shares, deadline, signature, by
        )


def running(yard: Any, kind: str, *holders: Any) -> Relay:
    """A running task of two slots, the first of which is held by the first of `holders`."""
    if kind == "commitment":
        task = yard.post(Policy.REPLICATE, slots=2)
    else:
        task = yard.post(slots=2, shares_agreed=True)
    for holder in holders:
        yard.join(task, holder)
    return Relay(yard, task, kind, yard.now() + 60)


@pytest.fixture
def signer(yard):
    signer = key_holder("signer")
    yard.fund(signer, amount=2 * STAKE)
    yard.register(signer)
    return signer


@pytest.fixture(params=KINDS)
def relay(request, yard, signer):
    return running(yard, request.param, signer, yard.workers[1])


def test_stranger_relays_a_commitment(yard, signer):
    """Rules T6, T7: it counts as if the holder had sent it."""
    relay = running(yard, "commitment", signer, yard.workers[1])
    tx = relay.send(relay.sign(signer))

    assert event(tx, "ClaimCommitted") == {
        "id": relay.task,
        "slot": 0,
        "commitment": "0x" + DIGEST.hex(),
    }
    assert yard.market.task(relay.task)["answered"] == 0b01
    assert yard.market.slot(relay.task, 0)["digest"] == "0x" + DIGEST.hex()


def test_stranger_relays_a_submission(yard, signer):
    """Rules T7, T8: with the shares that the holder signed."""
    relay = running(yard, "submission", signer, yard.workers[1])
    tx = relay.send(relay.sign(signer))

    claim = Claim.of(yard.claim.result, yard.claim.root, SHARES)
    submitted = event(tx, "ClaimSubmitted")
    assert submitted["claim"] == tuple("0x" + part.hex() for part in claim.as_tuple())
    assert submitted["shares"] == SHARES
    assert yard.market.slot(relay.task, 0)["digest"] == "0x" + claim.digest.hex()


def test_relayed_commitment_is_revealed_by_a_stranger_too(yard, signer):
    """Rules T7, P1: a worker without coin for gas is paid all the same."""
    relay = running(yard, "commitment", signer, yard.workers[1])
    claim, salt = yard.claim, salt_of(signer)
    commitment = yard.protocol.claim_commitment(
        relay.task, signer.address, salt, claim.result, claim.root
    )
    message = yard.protocol.commitment_message(relay.task, 0, commitment, relay.deadline)
    relay.send(bytes(sign(signer, message).signature), commitment=commitment)
    yard.commit(relay.task, yard.workers[1])
    by = {"from": yard.stranger}
    yard.market.reveal(relay.task, 0, salt, claim.result, claim.root, by)
    yard.reveal(relay.task, yard.workers[1])
    before = yard.credit(signer)
    yard.market.settle(relay.task, by)

    assert yard.credit(signer) == before + STAKE + yard.market.task(relay.task)["reward"]


@pytest.mark.parametrize(("late", "valid"), [(-1, True), (0, False), (1, False)])
def test_signature_is_good_before_its_deadline(yard, relay, signer, late, valid):
    """Rules C1, T7: refused from the deadline's own second on."""
    signature = relay.sign(signer)
    yard.at(relay.deadline + late)
    if valid:
        relay.send(signature)
    else:
        with reverts("MarketSignatureExpired", relay.deadline):
            relay.send(signature)

    assert yard.now() == relay.deadline + late
    assert yard.market.task(relay.task)["answered"] == int(valid)


@pytest.mark.parametrize(("late", "valid"), [(-1, True), (0, False), (1, False)])
def test_signature_does_not_outlive_the_task(yard, relay, signer, late, valid):
    """Rules C1, T7: the task's own deadline holds for relayed answers."""
    train_by = yard.market.task(relay.task)["deadline"]
    relay.deadline = train_by + 60
    signature = relay.sign(signer)
    yard.at(train_by + late)
    if valid:
        relay.send(signature)
    else:
        with reverts("MarketTooLate", relay.task, train_by):
            relay.send(signature)

    assert yard.market.task(relay.task)["answered"] == int(valid)


def test_only_the_holder_signs(yard, relay, signer):
    """Rule T7: anybody else's signature is refused with the name of who should have signed."""
    with reverts("MarketWrongSignature", signer):
        relay.send(relay.sign(key_holder("somebody else")))


@pytest.mark.parametrize("signature", [b"", b"\x01" * 64, bytes(65), b"\xff" * 65])
def test_garbage_is_no_signature(yard, relay, signer, signature):
    """Rule T7: whatever its length."""
    with reverts("MarketWrongSignature", signer):
        relay.send(signature)


def test_signature_cannot_be_replayed(yard, relay, signer):
    """Rules T6, T7: a slot answers once."""
    signature = relay.sign(signer)
    relay.send(signature)
    with reverts("MarketAlreadyAnswered", relay.task, 0):
        relay.send(signature)


def test_signature_cannot_be_replayed_on_another_task(yard, signer):
    """Rule T7: it names its task."""
    first = running(yard, "commitment", signer, yard.workers[1])
    second = running(yard, "commitment", signer, yard.workers[1])
    with reverts("MarketWrongSignature", signer):
        second.send(first.sign(signer))


def test_signature_names_its_slot(yard, signer):
    """Rule T7: signed for slot 1, it does not answer for slot 0."""
    relay = running(yard, "commitment", signer, yard.workers[1])
    with reverts("MarketWrongSignature", signer):
        relay.send(relay.sign(signer, slot=1))
    with reverts("MarketWrongSignature", yard.workers[1]):
        relay.send(relay.sign(signer, slot=1), slot=1)


@pytest.mark.parametrize("slot", [2, 31])
def test_nobody_signs_for_a_slot_that_nobody_holds(yard, relay, signer, slot):
    """Rule T7: the zero address has no signature."""
    with reverts("MarketWrongSignature", "0x" + "00" * 20):
        relay.send(relay.sign(signer, slot=slot), slot=slot)


@pytest.mark.parametrize("slot", [32, 2**256 - 1])
def test_there_is_no_slot_beyond_the_last(yard, relay, signer, slot):
    """Rule T7: the refusal names the slot and the relayer."""
    with reverts("MarketNotSlotHolder", relay.task, slot, yard.stranger):
        relay.send(relay.sign(signer, slot=slot), slot=slot)


@pytest.mark.parametrize(
    "foreign",
    [{"chain_id": 1}, {"address": "0x" + "11" * 20}],
    ids=["another chain", "another market"],
)
def test_signature_is_bound_to_chain_and_market(yard, relay, signer, foreign):
    """Rules T6, T7: what was signed elsewhere says nothing here."""
    with reverts("MarketWrongSignature", signer):
        relay.send(relay.sign(signer, replace(yard.protocol, **foreign)))


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("commitment", {"commitment": digest("another")}),
        ("commitment", {"deadline": 2**40}),
        ("submission", {"result": digest("another")}),
        ("submission", {"root": digest("another")}),
        ("submission", {"shares": [3_000, 7_000]}),
        ("submission", {"deadline": 2**40}),
    ],
    ids=str,
)
def test_relayer_changes_nothing(yard, signer, kind, change):
    """Rule T7: every value is signed."""
    relay = running(yard, kind, signer, yard.workers[1])
    with reverts("MarketWrongSignature", signer):
        relay.send(relay.sign(signer), **change)


@pytest.mark.parametrize("kind", KINDS)
def test_signature_of_one_kind_is_none_of_the_other(yard, signer, kind):
    """Rule T7: a commitment's signature is not a submission's."""
    relay = running(yard, kind, signer, yard.workers[1])
    other = replace(relay, kind=KINDS[1 - KINDS.index(kind)])
    with reverts("MarketWrongSignature", signer):
        relay.send(other.sign(signer))


def test_evicted_worker_signs_for_nobody(yard, relay, signer):
    """Rules T5, T7: its slot is no longer its own, signature or not."""
    relay.deadline = yard.market.task(relay.task)["deadline"]
    yard.market.ping(relay.task, 0, {"from": yard.requester})
    yard.warp(yard.market.slot(relay.task, 0)["pongBy"])
    yard.market.evict(relay.task, 0, {"from": yard.stranger})
    with reverts("MarketNotSlotHolder", relay.task, 0, signer):
        relay.send(relay.sign(signer))


def test_signature_waits_until_the_task_runs(yard, signer):
    """Rule T7: signed in advance, it is refused until all slots are filled."""
    relay = running(yard, "commitment", signer)
    signature = relay.sign(signer)
    with reverts("MarketUnexpectedState", relay.task, TaskState.OPEN):
        relay.send(signature)
    yard.join(relay.task, yard.workers[1])
    relay.send(signature)

    assert yard.market.task(relay.task)["answered"] == 0b01


def test_relayed_answer_fits_the_policy(yard, signer):
    """Rules T6, T7: a commitment is no answer where claims are open."""
    relay = replace(running(yard, "submission", signer, yard.workers[1]), kind="commitment")
    with reverts("MarketWrongPolicy", relay.task, Policy.AUDIT):
        relay.send(relay.sign(signer))


@pytest.mark.parametrize("kind", KINDS)
def test_contract_wallet_signs_by_its_keeper(yard, signer, kind):
    """Rule T7: ERC-1271, so that a worker may be a contract."""
    wallet = ContractWallet.deploy(signer, {"from": signer})
    market = yard.market
    yard.stranger.transfer(wallet, STAKE)
    wallet.act(market, STAKE, b"", {"from": signer})
    register = market.register.encode_input(digest("profile"), ENV_CLASS, 0)
    wallet.act(market, 0, register, {"from": signer})
    relay = running(yard, kind)
    join = market.join.encode_input(relay.task, digest("card"), [])
    wallet.act(market, 0, join, {"from": signer})
    yard.join(relay.task, yard.workers[1])
    with reverts("MarketWrongSignature", wallet):
        relay.send(relay.sign(key_holder("somebody else")))
    relay.send(relay.sign(signer))

    assert market.slot(relay.task, 0)["worker"] == wallet
    assert market.task(relay.task)["answered"] == 0b01
