"""Offers of strangers: each thing that can be wrong with one is refused, with the worker's name."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of
from trainyard.engine.counting import Counters, Stop
from trainyard.engine.deltas import make_delta
from trainyard.engine.errors import StateError
from trainyard.engine.examining import Examiner
from trainyard.engine.exchange import Decision, Exchange, Offer
from trainyard.engine.journal import Measured
from trainyard.engine.leaves import Absence, absent, absent_in, kept
from trainyard.engine.offers import signed
from trainyard.engine.signing import address_of
from trainyard.engine.state import State
from trainyard.protocol.manifest import Local

KEYS = [bytes([number]) * 32 for number in (1, 2, 3)]
MANIFEST = manifest_of(
    "mlp",
    mode="rounds",
    workers=3,
    until={"steps": 9},
    rounds={"local_steps": 3},
)
WEIGHTS = np.arange(4, dtype=np.float32)
SEED = np.zeros(2, np.uint32)
GLOBE = State(
    {
        "weights/w": WEIGHTS,
        "weights/seed": SEED,
        "outer/w": WEIGHTS * 0,
        **Counters(step=3).tensors(),
    }
)


@dataclass
class World:
    """Round 1 of three workers, of whom slot 1 is looked at."""

    exchange: Exchange
    examiner: Examiner

    def offer(
        self,
        *,
        moved: Any = None,
        counters: Counters | None = None,
        keeps: Mapping[str, Any] = MappingProxyType({}),
        key: bytes = KEYS[1],
        **changes: Any,
    ) -> Offer:
        ended = {"weights/w": WEIGHTS + 1 if moved is None else moved}
        delta = make_delta(GLOBE, ended, "none")
        leaf = kept(keeps, counters or Counters(step=6), delta)
        said: dict[str, Any] = {
            "round": 1,
            "slot": 1,
            "globe": GLOBE.hash.hex(),
            "leaf": self.exchange.put(leaf),
            "delta": self.exchange.put(delta),
        }
        return signed(Offer(**{**said, **changes}), MANIFEST, key)

    def nothing(self, why: Absence, leaf: State) -> Offer:
        return self.offer(absence=why, delta=None, leaf=self.exchange.put(leaf))

    def check(self, offer: Offer | None) -> Offer:
        return self.examiner.check(offer, 1, 1, GLOBE)


@pytest.fixture
def world(tmp_path: Path) -> World:
    exchange = Exchange(tmp_path)
    exchange.prepare()
    return World(exchange, Examiner(MANIFEST, exchange, tuple(map(address_of, KEYS))))


def diverged() -> State:
    segment = MANIFEST.plan.segments // 3 + 1
    plan: Any = MANIFEST.plan
    assert plan.part(segment) == Local(1, 1)
    return absent_in(plan, segment, Absence.DIVERGED)


@pytest.mark.parametrize("keeps", [{}, {"weights/seed": SEED + 1}], ids=["nothing", "a seed"])
def test_offer_of_a_worker_is_taken(world: World, keeps: dict[str, Any]) -> None:
    offer = world.offer(keeps=keeps)

    assert world.check(offer) == offer


NAMES = [metric.title for metric in MANIFEST.training.metrics]
TRAINED = Measured(loss=0.5, metrics=dict.fromkeys(NAMES, 0.25), examples=8)


def test_figures_of_this_run_are_taken(world: World) -> None:
    offer = world.offer(trained=TRAINED)

    assert NAMES
    assert world.check(offer) == offer


@pytest.mark.parametrize(
    "change",
    [
        {"metrics": {}},
        {"metrics": {**TRAINED.metrics, "other": 1.0}},
        {"metrics": dict.fromkeys(NAMES, math.inf)},
        {"examples": 0},
        {"loss": math.nan},
        {"loss": 1e300},
    ],
)
def test_figures_that_are_none_are_refused_before_anything_is_decided(
    world: World, change: dict[str, Any]
) -> None:
    offer = world.offer(trained=TRAINED.model_copy(update=change))
    other = world.offer(slot=0, key=KEYS[0])

    with pytest.raises(StateError, match="the figures of worker 1 are none of this run's"):
        world.check(offer)
    with pytest.raises(StateError, match="the figures of worker 1 are none of this run's"):
        world.examiner.deltas(decision(other, offer, None), 1, GLOBE)


def test_worker_that_diverged_is_taken_at_its_word(world: World) -> None:
    offer = world.nothing(Absence.DIVERGED, diverged())

    assert world.check(offer) == offer


Make = Callable[[World], Offer | None]
BAD: dict[str, tuple[Make, str]] = {
    "none": (lambda world: None, "worker 1 has offered nothing for round 1"),
    "another start": (lambda world: world.offer(globe="a" * 64), "has offered nothing for round 1"),
    "another's key": (
        lambda world: world.offer(key=KEYS[0]),
        f"worker 1 in round 1 is signed by {address_of(KEYS[0])}, and not by {address_of(KEYS[1])}",
    ),
    "no signature": (
        lambda world: world.offer().model_copy(update={"signature": ""}),
        "worker 1 in round 1 is signed by nobody",
    ),
    "changed after it was signed": (
        lambda world: world.offer().model_copy(update={"delta": "b" * 64}),
        "is signed by 0x",
    ),
    "of another round": (lambda world: world.offer(round=0), "what worker 1 had in round 0"),
    "of another worker": (
        lambda world: world.offer(slot=0, key=KEYS[0]),
        "what worker 0 had in round 1",
    ),
    "a leaf that is not here": (lambda world: world.offer(leaf="c" * 64), "cannot read the state"),
    "a leaf of another delta": (
        lambda world: world.offer(delta=world.offer(moved=WEIGHTS + 2).delta),
        "worker 1 offers another delta",
    ),
    "a leaf of another step": (
        lambda world: world.offer(counters=Counters(step=5)),
        "worker 1 offers is not of the round's end",
    ),
    "a leaf with memories of an optimiser that begins anew": (
        lambda world: world.offer(keeps={"optimizer/00002.w_momentum": WEIGHTS}),
        "offers has optimizer/00002.w_momentum, which nobody keeps of a round",
    ),
    "a leaf with what was sent": (
        lambda world: world.offer(keeps={"weights/w": WEIGHTS}),
        "offers has weights/w, which nobody keeps",
    ),
    "a leaf with what no model has": (
        lambda world: world.offer(keeps={"run/more": np.zeros(1000)}),
        "offers has run/more, which nobody keeps",
    ),
    "a leaf with a large seed": (
        lambda world: world.offer(keeps={"weights/seed": np.zeros(1000, np.uint32)}),
        "offers has weights/seed, which nobody keeps",
    ),
    "no number": (
        lambda world: world.offer(moved=WEIGHTS * np.float32(np.nan)),
        "the delta of worker 1 has values that are no numbers",
    ),
    "another end": (
        lambda world: world.nothing(Absence.DIVERGED, GLOBE),
        "worker 1 offers something else",
    ),
    "an end that is none": (
        lambda world: world.nothing(Absence.OVER, absent(Counters(step=3), Absence.OVER)),
        "worker 1 offers something else",
    ),
}


@pytest.mark.parametrize(("make", "reason"), BAD.values(), ids=BAD)
def test_what_no_worker_can_have_is_refused(world: World, make: Make, reason: str) -> None:
    with pytest.raises(StateError, match=reason):
        world.check(make(world))


def test_delta_of_another_shape_is_refused(world: World) -> None:
    delta = State({"delta/w": WEIGHTS[:2]})
    leaf = kept({}, Counters(step=6), delta)
    offer = world.offer(leaf=world.exchange.put(leaf), delta=world.exchange.put(delta))

    with pytest.raises(StateError, match=r"delta/w of the delta is float32 \[2\]"):
        world.check(offer)


def decision(*offers: Offer | None) -> Decision:
    absences = tuple(Absence.AWAY if offer is None else None for offer in offers)
    return Decision(round=1, offers=offers, absences=absences)


def test_decision_is_checked_by_whoever_merges(world: World) -> None:
    mine, other = world.offer(), world.offer(slot=0, key=KEYS[0])

    found = world.examiner.deltas(decision(other, mine, None), 1, GLOBE)

    assert sorted(found) == [0, 1]
    with pytest.raises(StateError, match="1 workers were in this round, and 2 make one"):
        world.examiner.deltas(decision(None, mine, None), 1, GLOBE)
    forged = world.offer(slot=0, key=KEYS[1])
    with pytest.raises(StateError, match="worker 0 in round 1 is signed by"):
        world.examiner.deltas(decision(forged, mine, None), 1, GLOBE)


def test_end_that_is_made_up_makes_no_quorum(world: World) -> None:
    leaf = world.exchange.put(absent(Counters(step=3), Absence.OVER))
    other = world.offer(slot=0, key=KEYS[0], absence=Absence.OVER, delta=None, leaf=leaf)

    with pytest.raises(StateError, match="1 workers were in this round"):
        world.examiner.deltas(decision(other, world.offer(), None), 1, GLOBE)


def test_run_that_is_over_has_no_quorum(world: World) -> None:
    over = State({**GLOBE.tensors, **Counters(step=3, stop=Stop.DIVERGED).tensors()})

    assert world.examiner.deltas(decision(None, None, None), 1, over) == {}
