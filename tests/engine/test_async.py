"""Mode async in one process: what a part is, and what the leader makes of parts that come late."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from tests.engine.nets import manifest_of, write_data
from tests.engine.test_training import run_all
from trainyard.engine.asynchronous import AsyncTraining
from trainyard.engine.counting import Counters, Stop
from trainyard.engine.data import open_folder
from trainyard.engine.figures import Sums
from trainyard.engine.parameter_server import Farm, Flock
from trainyard.engine.program import build
from trainyard.engine.scoring import score_of
from trainyard.engine.state import State, differing
from trainyard.engine.training import Material, Training
from trainyard.protocol.manifest import Manifest


class Here(Farm):
    """Computes here what workers would, each step when it is sent, and gives the last one first.

    So with `most` steps under way, all but one of them are of weights that are no longer.
    """

    def __init__(self, most: int = 1) -> None:
        self._most = most
        self.sent: list[tuple[Any, Sequence[Any]]] = []
        self.kept: list[Any] = []

    def keep(self, values: Sequence[Any]) -> list[Any]:
        self.kept = [tf.Variable(value) for value in values]
        return self.kept

    def flock(self) -> Flock:
        return _Here(self.sent, self._most)


class _Here(Flock):
    def __init__(self, sent: list[tuple[Any, Sequence[Any]]], most: int) -> None:
        super().__init__(None, most)
        self._sent = sent
        self._done: list[Any] = []

    @property
    def is_full(self) -> bool:
        return len(self._done) >= self._most

    @property
    def is_empty(self) -> bool:
        return not self._done

    def send(self, function: Any, arguments: Sequence[Any]) -> None:
        self._sent.append((function, arguments))
        self._done.append(function(*arguments))

    def receive(self) -> Any:
        return self._done.pop()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data")).train


def manifest_for(net: str = "mlp", **training: Any) -> Manifest:
    given = {"mode": "async", "validation": {"split": 0.25}, "until": {"steps": 18}}
    return manifest_of(net, **{**given, **training})


def open_here(manifest: Manifest, folder: Path, farm: Farm) -> AsyncTraining:
    material = Material(open_folder(manifest.data.train, folder))
    return AsyncTraining(manifest, build(manifest), material, farm)


def iterations(state: State) -> int:
    [found] = [value for name, value in state.tensors.items() if name.endswith(".iteration")]
    return int(found)


@pytest.mark.parametrize("net", ["batch_norm", "lstm"])
def test_worker_that_is_waited_for_does_what_one_alone_does(net: str, folder: Path) -> None:
    """Losses, regularisers, random layers and the optimiser are those of every other mode."""
    manifest = manifest_for(net)
    data = Material(open_folder(manifest.data.train, folder))
    single = manifest_for(net, mode="single")

    found = run_all(open_here(manifest, folder, Here()))[-1].state

    alone = run_all(Training(single, build(single), data))[-1].state
    # Those are added to, and so rounded once more.
    assert all("/moving_" in name for name in differing(found, alone))


def test_part_has_no_variable_but_the_weights_that_are_kept(folder: Path) -> None:
    """Else workers would reach into the leader, and their random layers into each other's."""
    farm = Here()
    training = open_here(manifest_for("batch_norm", until={"steps": 1}), folder, farm)
    training.run(0, training.start())

    [(function, arguments)] = farm.sent
    graph = function.get_concrete_function(*arguments).graph

    assert {one.ref() for one in graph.variables} == {one.ref() for one in farm.kept}


def test_every_step_is_merged_once_and_has_records_of_its_own(folder: Path) -> None:
    farm = Here(most=4)
    training = open_here(manifest_for("batch_norm", steps_per_segment=9), folder, farm)
    told: list[int] = []

    def on_step(step: int, sums: Sums) -> None:
        told.append(step)

    first = training.run(0, training.start(), on_step)
    last = training.run(1, first.state, on_step)

    assert told == list(range(18))
    assert iterations(last.state) == Counters.of(last.state).step == 18
    # Three steps an epoch, of the 72 records that are not held out.
    steps = [inputs for _, (_, [inputs], _, _) in farm.sent]
    images = [np.concatenate(steps[at : at + 3]) for at in (0, 3, 15)]
    orders = [[image.tobytes() for image in epoch] for epoch in images]
    assert [len(set(order)) for order in orders] == [72, 72, 72]
    assert sorted(orders[0]) == sorted(orders[2]) != orders[0]
    assert [one.step for one in (*first.evaluations, *last.evaluations)] == [2, 5, 8, 11, 14, 17]


def test_late_parts_of_moving_statistics_add_up(folder: Path) -> None:
    """Without a step of the optimiser, each part moves them by as much as it would alone."""
    still = {"type": "SGD", "learning_rate": 1e-30}
    settings = {"optimizer": still, "until": {"steps": 3}, "steps_per_segment": 3}
    manifest = manifest_for("batch_norm", **settings)
    name = "weights/norm/moving_mean"

    late = open_here(manifest, folder, Here(most=3))
    start = late.start()
    shift = late.run(0, start).state.tensors[name] - start.tensors[name]

    prompt = open_here(manifest, folder, Here())
    alone = prompt.run(0, start).state.tensors[name] - start.tensors[name]
    # Prompt ones take 1 % of what those before them brought away again.
    assert np.abs(shift).max() > np.abs(alone).max()
    np.testing.assert_allclose(shift, alone, rtol=0.03, atol=1e-4)


def test_step_without_a_loss_ends_the_run_and_is_left_out(folder: Path) -> None:
    diverging = {"type": "SGD", "learning_rate": 1e30}
    training = open_here(manifest_for("batch_norm", optimizer=diverging), folder, Here(most=3))

    outcomes = run_all(training)

    last = outcomes[-1].state
    assert outcomes[-1].stop is Stop.DIVERGED
    assert iterations(last) == Counters.of(last).step < 18
    assert all(np.isfinite(one).all() for name, one in last.tensors.items() if "run/" not in name)


def test_run_is_stopped_early(folder: Path) -> None:
    manifest = manifest_for(
        until={"epochs": 10},
        optimizer={"type": "SGD", "learning_rate": 1e-30},
        early_stopping={"monitor": "val_accuracy", "patience": 2, "mode": "max"},
    )

    outcomes = run_all(open_here(manifest, folder, Here(most=2)))

    assert outcomes[-1].stop is Stop.EARLY
    assert Counters.of(outcomes[-1].state).step == 12


def test_score_is_found_again_from_the_last_state(folder: Path) -> None:
    manifest = manifest_for("batch_norm")
    training = open_here(manifest, folder, Here(most=2))
    state = run_all(training)[-1].state

    claimed = score_of(manifest, training, state, None)

    stranger = Training(
        manifest, build(manifest), Material(open_folder(manifest.data.train, folder))
    )
    assert score_of(manifest, stranger, state, None).text == claimed.text
    assert (claimed.records, claimed.figures.examples) == ("validation", 24)
