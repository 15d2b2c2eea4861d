"""A run in rounds as two have it: one that decides, and one that takes the decisions over."""

from pathlib import Path

import numpy as np
import pytest

from tests.engine.nets import manifest_of
from trainyard.engine.counting import Counters
from trainyard.engine.deltas import make_delta
from trainyard.engine.errors import StateError
from trainyard.engine.exchange import Decision, Exchange, Offer
from trainyard.engine.journal import Journal, Measured
from trainyard.engine.leaves import Absence, kept
from trainyard.engine.offers import OFFERS, signed
from trainyard.engine.round_log import RoundLog, _mean
from trainyard.engine.signing import address_of
from trainyard.engine.state import State
from trainyard.protocol.manifest import Local

MANIFEST = manifest_of(
    "mlp", mode="rounds", workers=2, until={"steps": 9}, rounds={"local_steps": 3}
)
KEYS = [b"\x01" * 32, b"\x02" * 32]
SIGNERS = tuple(map(address_of, KEYS))
START = State(
    {
        "weights/a": np.zeros(4, np.float32),
        "outer/a": np.zeros(4, np.float32),
        **Counters().tensors(),
    }
)


class Yard:
    def __init__(self, folder: Path) -> None:
        self.exchange = Exchange(folder / "exchange")
        self.journal = Journal.open(folder, MANIFEST.canonical)
        self.log = RoundLog(MANIFEST, self.journal, self.exchange, SIGNERS)
        if not self.log.has_begun:
            self.log.begin(self.exchange.put(START))

    def offer(self, slot: int, moved: float = 1.0, key: bytes | None = None) -> Offer:
        """The part of a worker whose weight moved by so much, signed and put where it belongs."""
        log = self.log
        globe = self.exchange.get(log.globe)
        delta = make_delta(globe, {"weights/a": globe.tensors["weights/a"] + moved}, "none")
        _, last = log.plan.bounds(log.plan.segment(Local(log.round, slot)))
        offer = Offer(
            round=log.round,
            slot=slot,
            globe=log.globe,
            leaf=self.exchange.put(kept({}, Counters(step=last), delta)),
            delta=self.exchange.put(delta),
        )
        offer = signed(offer, MANIFEST, key or KEYS[slot])
        self.exchange.post(offer)
        return offer

    def lead_round(self, *there: int, moved: float = 1.0) -> Decision:
        number = self.log.round
        for slot in there:
            self.offer(slot, moved + slot)
            self.log.take(slot)
        self.log.settle({slot: Absence.AWAY for slot in (0, 1) if slot not in there})
        self.log.finish(())
        decision = self.exchange.decision(number)
        assert decision is not None
        return decision

    def take_states(self, other: "Yard", decision: Decision) -> None:
        for offer in decision.offers:
            if offer is not None:
                self.exchange.put(other.exchange.get(offer.leaf))
                self.exchange.put(other.exchange.get(offer.delta or ""))

    def follow_round(self, other: "Yard", decision: Decision) -> None:
        self.take_states(other, decision)
        self.log.agree(decision)
        self.log.check(decision)
        self.log.enter(decision)
        self.log.finish(())


@pytest.fixture
def leader(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "leader")


@pytest.fixture
def follower(tmp_path: Path) -> Yard:
    return Yard(tmp_path / "follower")


def offers_of(yard: Yard) -> dict[str, bytes]:
    folder = yard.journal.folder / OFFERS
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_who_takes_decisions_over_has_the_same_run(leader: Yard, follower: Yard) -> None:
    for there in ((0, 1), (0,), (1, 0)):
        follower.follow_round(leader, leader.lead_round(*there))

    assert follower.journal.trace.root == leader.journal.trace.root
    assert follower.log.is_complete
    assert offers_of(follower) == offers_of(leader)


@pytest.mark.parametrize("kept", range(11))
def test_run_goes_on_from_every_segment(tmp_path: Path, kept: int) -> None:
    """In the midst of a round from its beginning, with the offers that it was decided by."""
    whole = Yard(tmp_path)
    for _ in range(3):
        whole.lead_round(0, 1)
    root = whole.log.root
    whole.journal.rewind(kept)
    with (tmp_path / "journal.jsonl").open("ab") as file:
        file.write(b'{"number":')

    again = Yard(tmp_path)
    assert len(again.journal.entries) == 1 + max(kept - 1, 0) // 3 * 3
    while not again.log.is_complete:
        again.lead_round(0, 1)

    assert again.log.root == root


@pytest.mark.parametrize("there", [(0, 1), (0,)])
def test_the_next_round_is_called_before_this_one_is_in_the_trace(
    leader: Yard, follower: Yard, there: tuple[int, ...]
) -> None:
    decision = leader.lead_round(*there)
    follower.take_states(leader, decision)
    follower.log.agree(decision)

    assert follower.log.round == 0
    assert follower.log.call_after(decision) == leader.log.call()


def test_after_the_last_round_there_is_no_call(leader: Yard, follower: Yard) -> None:
    for _ in range(2):
        follower.follow_round(leader, leader.lead_round(0, 1))
    decision = leader.lead_round(0, 1)
    follower.take_states(leader, decision)
    follower.log.agree(decision)

    assert follower.log.call_after(decision) is None


def test_who_goes_back_keeps_nothing_of_what_was_decided_otherwise(
    leader: Yard, follower: Yard
) -> None:
    follower.lead_round(0, 1, moved=5.0)
    follower.log.go_back(0)
    assert follower.exchange.decision(0) is None
    assert follower.log.globe_before(1) is None

    follower.follow_round(leader, leader.lead_round(0))

    assert follower.log.globe == leader.log.globe
    assert offers_of(follower) == offers_of(leader)


def test_decision_by_an_offer_that_its_worker_has_not_signed_is_refused(
    leader: Yard, follower: Yard
) -> None:
    mine, forged = leader.offer(0), leader.offer(1, key=KEYS[0])
    decision = Decision(round=0, offers=(mine, forged), absences=(None, None))
    follower.take_states(leader, decision)

    with pytest.raises(StateError, match="is signed by"):
        follower.log.agree(decision)

    assert follower.exchange.decision(0) is None


def test_decision_by_a_leaf_that_names_another_delta_is_refused(
    leader: Yard, follower: Yard
) -> None:
    first, other = leader.offer(1, 1.0), leader.offer(1, 2.0)
    mixed = signed(first.model_copy(update={"leaf": other.leaf}), MANIFEST, KEYS[1])
    decision = Decision(round=0, offers=(leader.offer(0), mixed), absences=(None, None))
    follower.take_states(leader, decision)
    follower.log.agree(decision)

    with pytest.raises(StateError, match="another delta"):
        follower.log.check(decision)


def test_mean_is_there_for_whatever_figures() -> None:
    usual = Measured(loss=1.0, metrics={"accuracy": 0.5}, examples=3)
    more = Measured(loss=5.0, metrics={"accuracy": 1.0}, examples=1)

    assert _mean([]) is None
    assert _mean([usual, None, more]) == Measured(loss=2.0, metrics={"accuracy": 0.625}, examples=4)
    assert _mean([usual, more.model_copy(update={"metrics": {}})]) == Measured(loss=2.0, examples=4)
    assert _mean([usual.model_copy(update={"examples": 0})]) is None
