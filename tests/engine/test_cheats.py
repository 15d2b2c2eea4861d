"""Runs with cheats in them: an audit finds each at its segment, and in rounds at its worker.

All cheats of a mode are in one run, each in a segment of its own, and the rest of it is honest work
on what the cheats left. So an audit must find those segments and no other.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import RECORDS, manifest_of, write_data
from trainyard.engine.auditing import audit
from trainyard.engine.auditor import Answer
from trainyard.engine.counting import Counters
from trainyard.engine.data import open_folder
from trainyard.engine.exchange import Exchange
from trainyard.engine.figures import Sums
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.launching import EXCHANGE
from trainyard.engine.leaves import kept
from trainyard.engine.material import Files
from trainyard.engine.merging import deltas_sent
from trainyard.engine.pieces import Piece
from trainyard.engine.program import build
from trainyard.engine.rounds import RoundsTraining
from trainyard.engine.state import State
from trainyard.engine.training import Material, Training
from trainyard.protocol.manifest import Local, Manifest, Merge

LENGTH = 3
FEWER = 48
# Segments of a run alone.
ALONE = {
    "skipped steps": 1,
    "reordered records": 3,
    "fewer records": 5,
    "another rate, put back": 7,
    # The last: nobody can go on from a state with another rate.
    "another rate": 9,
}
# Who cheats in a run in rounds, and in which round.
IN_ROUNDS: dict[str, Local | Merge] = {
    "skipped steps": Local(1, 1),
    "reordered records": Local(2, 0),
    "fewer records": Local(3, 1),
    "another rate, put back": Local(4, 0),
    "a tampered delta": Local(5, 1),
    "a tampered merge": Merge(6),
    "another rate": Local(7, 1),
}
ROUNDS = 8
# Segments of a cluster of two.
IN_SYNC = {
    "skipped steps": 1,
    "reordered records": 2,
    "fewer records": 4,
    "a copied part": 5,
    "a part left out": 6,
    "another rate, put back": 7,
    "a tampered merge": 8,
    "another rate": 9,
}
_RATE = ".learning_rate"


@dataclass(frozen=True)
class Found:
    """A run with cheats, and what an audit of all of it found."""

    manifest: Manifest
    claimed: list[str]
    answers: tuple[Answer, ...]

    @property
    def wrong(self) -> list[int]:
        return [one.segment for one in self.answers if one.state != self.claimed[one.segment + 1]]


def alone(segments: int, **changes: Any) -> Manifest:
    return manifest_of("mlp", **{"until": {"steps": segments * LENGTH}, **changes})


def in_rounds(rounds: int, *, inner: str, **changes: Any) -> Manifest:
    mode = {
        "mode": "rounds",
        "workers": 2,
        "rounds": {"local_steps": LENGTH, "inner": inner, "compression": "none"},
    }
    return alone(rounds, **{**mode, "steps_per_segment": LENGTH, **changes})


def cheating(cheat: str, make: Callable[..., Manifest], number: int) -> Manifest:
    """What a cheat computes by; `number` is that of the segment, or of the round."""
    return {
        "skipped steps": lambda: make(number + 1, until={"steps": (number + 1) * LENGTH - 1}),
        "reordered records": lambda: make(number + 1, seed=12),
        "fewer records": lambda: make(number + 1, records=FEWER),
        "another rate": lambda: make(
            number + 1, optimizer={"type": "Adam", "learning_rate": 0.011}
        ),
    }[cheat.removesuffix(", put back")]()


def rate_of(state: State, other: State) -> State:
    """`state` with the rate of another one."""
    rates = {name: one for name, one in other.tensors.items() if name.endswith(_RATE)}
    return State({**state.tensors, **rates})


def as_if_done(state: State, last: int) -> State:
    """The counters say that all steps were taken."""
    counters = {
        name: np.asarray(last, one.dtype)
        for name, one in state.tensors.items()
        if name == "run/step" or name.endswith(".iteration")
    }
    assert "run/step" in counters
    return State({**state.tensors, **counters})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Folders of records, by how many they have."""
    folders = {count: tmp_path_factory.mktemp("data") for count in (RECORDS, FEWER)}
    for count, folder in folders.items():
        write_data(folder, count)
    return folders


Open = Callable[[Manifest], Any]


@pytest.fixture(scope="module")
def open_training(data: dict[int, Path]) -> Open:
    def open_it(manifest: Manifest) -> Training:
        source = manifest.data.train
        material = Material(open_folder(source, data[source.records]))
        kind = RoundsTraining if manifest.training.rounds else Training
        return kind(manifest, build(manifest), material)

    return open_it


def audited(manifest: Manifest, states: list[State], folder: Path, data: dict[int, Path]) -> Found:
    journal = Journal.open(folder, manifest.canonical)
    for number, state in enumerate(states):
        step = Counters.of(state).step
        journal.append(Entry(number=number, state=state.hash.hex(), step=step), state)
    answers = audit(folder, Files(train=data[RECORDS]), range(manifest.plan.segments)).answers
    return Found(manifest, [state.hash.hex() for state in states], answers)


@pytest.fixture(scope="module")
def found_alone(
    open_training: Open, data: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Found:
    manifest = alone(10)
    honest = open_training(manifest)
    cheats = {segment: cheat for cheat, segment in ALONE.items()}
    states = [honest.start()]
    for segment in range(10):
        before, cheat = states[-1], cheats.get(segment)
        if cheat is None:
            states.append(honest.run(segment, before).state)
            continue
        states.append(cheated(open_training, cheat, alone, segment, before))
    return audited(manifest, states, tmp_path_factory.mktemp("alone"), data)


@pytest.fixture(scope="module", params=["fresh", "kept"])
def found_in_rounds(
    open_training: Open,
    data: dict[int, Path],
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Found:
    make = partial(in_rounds, inner=request.param)
    manifest, folder = make(ROUNDS), tmp_path_factory.mktemp("rounds")
    honest = open_training(manifest)
    cheats = {part: cheat for cheat, part in IN_ROUNDS.items()}
    exchange = Exchange(folder / EXCHANGE)
    exchange.prepare()
    states = [honest.start()]
    deltas: dict[bytes, State] = {}
    for segment in range(honest.plan.segments):
        part = honest.plan.part(segment)
        cheat = cheats.get(part)
        globe, *others = (states[number] for number in honest.plan.inputs_of(segment))
        if isinstance(part, Merge):
            merged = honest.merge(part.round, globe, deltas_sent(others, deltas))
            states.append(merged if cheat is None else nudged(merged, "weights/out/bias"))
            continue
        own = others[0] if others else None
        computing = honest
        if cheat not in (None, "a tampered delta"):
            assert (own is None) == (request.param == "fresh")
            computing = open_training(cheating(cheat, make, part.round))
            own = None if own is None else rate_of(own, State(computing._initial))
        done = computing.local(part, globe, own)
        leaf, delta = done.state, done.delta
        if cheat == "a tampered delta":
            delta = nudged(delta, next(iter(delta.tensors)))
            variables = {k: v for k, v in leaf.tensors.items() if not k.startswith("run/")}
            leaf = kept(variables, Counters.of(leaf), delta)
        if cheat == "skipped steps":
            leaf = as_if_done(leaf, (part.round + 1) * LENGTH)
        if own is not None and cheat not in (None, "another rate"):
            leaf = rate_of(leaf, State(honest._initial))
        deltas[delta.hash] = delta
        exchange.put(delta)
        states.append(leaf)
    return audited(manifest, states, folder, data)


class Copying(Training):
    """A second worker that sends what the first has found."""

    def _take(self, step: int, pieces: list[Piece]) -> Sums:
        return super()._take(step, [pieces[0]] * len(pieces))


class LeavingOut(Training):
    """A second worker that sends nothing, which the first makes up for by weighing twice."""

    def _take(self, step: int, pieces: list[Piece]) -> Sums:
        first, *others = pieces
        silent = [replace(one, weight=one.weight * 0) for one in others]
        twice = replace(first, weight=first.weight * 2)
        return super()._take(step, [twice, *silent])


@pytest.fixture(scope="module")
def found_in_sync(
    open_training: Open, data: dict[int, Path], tmp_path_factory: pytest.TempPathFactory
) -> Found:
    def in_sync(segments: int, **changes: Any) -> Manifest:
        return alone(segments, workers=2, **changes)

    manifest = in_sync(10)
    honest = open_training(manifest)
    cheats = {segment: cheat for cheat, segment in IN_SYNC.items()}
    kinds = {"a copied part": Copying, "a part left out": LeavingOut}
    states = [honest.start()]
    for segment in range(10):
        before, cheat = states[-1], cheats.get(segment)
        if cheat is None:
            states.append(honest.run(segment, before).state)
        elif cheat == "a tampered merge":
            states.append(nudged(honest.run(segment, before).state, "weights/out/bias"))
        elif cheat in kinds:
            material = Material(open_folder(manifest.data.train, data[RECORDS]))
            cheater = kinds[cheat](manifest, build(manifest), material)
            states.append(cheater.run(segment, before).state)
        else:
            states.append(cheated(open_training, cheat, in_sync, segment, before))
    return audited(manifest, states, tmp_path_factory.mktemp("sync"), data)


def cheated(
    open_training: Open, cheat: str, make: Callable[..., Manifest], segment: int, before: State
) -> State:
    """The end of a segment that was computed by another manifest, made to look right."""
    cheater = open_training(cheating(cheat, make, segment))
    after = cheater.run(segment, rate_of(before, cheater.start())).state
    if cheat == "skipped steps":
        after = as_if_done(after, (segment + 1) * LENGTH)
    return after if cheat == "another rate" else rate_of(after, before)


def nudged(state: State, name: str) -> State:
    return State({**state.tensors, name: state.tensors[name] + np.float32(1e-4)})


@pytest.mark.parametrize("cheat", ALONE)
def test_cheat_alone_is_found_at_its_segment(found_alone: Found, cheat: str) -> None:
    segment = ALONE[cheat]

    assert segment in found_alone.wrong
    assert found_alone.answers[segment].state is not None


def test_nothing_else_alone_is_found(found_alone: Found) -> None:
    assert found_alone.wrong == sorted(ALONE.values())


@pytest.mark.parametrize("cheat", IN_ROUNDS)
def test_cheat_in_rounds_is_found_at_its_worker(found_in_rounds: Found, cheat: str) -> None:
    part, plan = IN_ROUNDS[cheat], found_in_rounds.manifest.plan
    who = "merge of" if isinstance(part, Merge) else f"worker {part.slot} in"

    [title] = [
        title
        for title in map(plan.title, found_in_rounds.wrong)
        if title.endswith(f" round {part.round})")
    ]

    assert f"({who} round {part.round})" in title


def test_nobody_else_in_rounds_is_found(found_in_rounds: Found) -> None:
    assert len(found_in_rounds.wrong) == len(IN_ROUNDS)
    assert all(answer.state is not None for answer in found_in_rounds.answers)


@pytest.mark.parametrize("cheat", IN_SYNC)
def test_cheat_in_a_cluster_is_found_at_its_segment(found_in_sync: Found, cheat: str) -> None:
    segment = IN_SYNC[cheat]

    assert segment in found_in_sync.wrong
    assert found_in_sync.answers[segment].state is not None


def test_nothing_else_in_a_cluster_is_found(found_in_sync: Found) -> None:
    assert found_in_sync.wrong == sorted(IN_SYNC.values())


def test_no_worker_of_a_cluster_is_named() -> None:
    """All of them have every state, and answer for it together."""
    assert manifest_of("mlp", workers=2).plan.title(1) == "segment 1"
