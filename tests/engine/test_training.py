"""Segments: each is a function of the state before it, bit for bit."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import MORE_NETS, NETS, manifest_of, write_data
from trainyard.engine.counting import Counters, Stop
from trainyard.engine.data import open_folder
from trainyard.engine.errors import StateError
from trainyard.engine.figures import Figures
from trainyard.engine.program import build
from trainyard.engine.state import State, differing
from trainyard.engine.training import Material, Outcome, Training
from trainyard.protocol.manifest import Manifest

Open = Callable[[Manifest], Training]


@pytest.fixture(scope="module")
def open_training(tmp_path_factory: pytest.TempPathFactory) -> Open:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)

    def open_it(manifest: Manifest) -> Training:
        data = open_folder(manifest.data.train, folder)
        return Training(manifest, build(manifest), Material(data))

    return open_it


def run_all(training: Training) -> list[Outcome]:
    """All segments, one after the other."""
    outcomes = []
    state = training.start()
    for segment in range(training.manifest.plan.segments):
        outcomes.append(training.run(segment, state))
        state = outcomes[-1].state
    return outcomes


def states_of(training: Training, outcomes: list[Outcome]) -> list[State]:
    return [training.start(), *(outcome.state for outcome in outcomes)]


# Each with other variables beside the weights, and with a rate that changes within a segment.
OPTIMIZERS = {
    "nesterov": {
        "type": "SGD",
        "momentum": 0.9,
        "nesterov": True,
        "global_clipnorm": 0.5,
        "learning_rate": {
            "type": "CosineDecay",
            "initial_learning_rate": 0.01,
            "decay_steps": 8,
            "warmup_target": 0.1,
            "warmup_steps": 4,
        },
    },
    "adamw": {
        "type": "AdamW",
        "weight_decay": 0.01,
        "clipnorm": 0.1,
        "learning_rate": {
            "type": "ExponentialDecay",
            "initial_learning_rate": 0.01,
            "decay_steps": 5,
            "decay_rate": 0.5,
        },
    },
    "rmsprop": {
        "type": "RMSprop",
        "momentum": 0.5,
        "centered": True,
        "clipvalue": 0.01,
        "learning_rate": {
            "type": "PiecewiseConstantDecay",
            "boundaries": [4],
            "values": [0.01, 0.001],
        },
    },
}


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("net", [*NETS, *MORE_NETS])
def test_each_segment_is_found_again_by_a_stranger(
    open_training: Open, net: str, workers: int
) -> None:
    assert_found_again(open_training, manifest_of(net, workers=workers))


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_each_segment_is_found_again_with_any_optimiser(
    open_training: Open, optimizer: str, workers: int
) -> None:
    """From the state alone, with where its schedule and its means are."""
    manifest = manifest_of("mlp", workers=workers, optimizer=OPTIMIZERS[optimizer])

    assert_found_again(open_training, manifest)


def assert_found_again(open_training: Open, manifest: Manifest) -> None:
    training = open_training(manifest)
    states = states_of(training, run_all(training))
    stranger = open_training(manifest)

    # In no order, so that nothing is carried over from one segment to the next.
    for segment in (2, 0, 3, 1):
        read = State.decode(b"".join(states[segment].parts()), "sent")
        found = stranger.run(segment, read).state
        assert differing(found, states[segment + 1]) == []

    assert len({state.hash for state in states}) == 5


def test_states_hold_all_that_a_run_depends_on(open_training: Open) -> None:
    training = open_training(manifest_of("batch_norm"))

    tensors = training.start().tensors

    assert [name for name in tensors if name.startswith("weights/")] == [
        "weights/c1/kernel",
        "weights/drop/seed_0",
        "weights/norm/beta",
        "weights/norm/gamma",
        "weights/norm/moving_mean",
        "weights/norm/moving_variance",
        "weights/out/bias",
        "weights/out/kernel",
    ]
    assert {name.split(".")[-1] for name in tensors if name.startswith("optimizer/")} >= {
        "iteration",
        "learning_rate",
    }
    assert [name for name in tensors if name.startswith("run/")] == [
        "run/best",
        "run/step",
        "run/stop",
        "run/waited",
    ]


def test_training_learns(open_training: Open) -> None:
    outcomes = run_all(open_training(manifest_of("lenet", until={"epochs": 40})))

    first, last = outcomes[0].figures, outcomes[-1].figures
    assert first is not None
    assert last is not None
    assert last.loss < first.loss / 2
    assert last.metrics["accuracy"] > 0.6
    assert last.examples == 24


def test_state_of_another_segment_is_refused(open_training: Open) -> None:
    training = open_training(manifest_of())

    with pytest.raises(StateError, match=r"segment 2 begins with step 6, .* before step 0"):
        training.run(2, training.start())


def test_state_of_another_model_is_refused(open_training: Open) -> None:
    other = open_training(manifest_of("lenet")).start()

    with pytest.raises(StateError, match="the state has no weights/lstm"):
        open_training(manifest_of("lstm")).run(0, open_training(manifest_of("mlp")).start())
    with pytest.raises(StateError, match=r"weights/d1/kernel of the state is float32 \[\d+, 16\]"):
        open_training(manifest_of("mlp")).run(0, other)


def test_weights_of_another_run_can_be_taken_up(open_training: Open) -> None:
    training = open_training(manifest_of())
    trained = run_all(training)[-1].state

    state = training.start(trained)

    assert Counters.of(state) != Counters.of(trained)
    assert np.array_equal(state.tensors["weights/d1/kernel"], trained.tensors["weights/d1/kernel"])


class TestEnds:
    """Runs that are over before their last step: their trace goes on, and changes nothing."""

    def test_diverged(self, open_training: Open) -> None:
        """The last state is the one before the step that went wrong."""
        diverging = manifest_of("batch_norm", optimizer={"type": "SGD", "learning_rate": 1e30})
        training = open_training(diverging)

        outcomes = run_all(training)

        ends = [outcome.stop for outcome in outcomes]
        assert Stop.DIVERGED in ends
        where = ends.index(Stop.DIVERGED)
        assert set(ends[where:]) == {Stop.DIVERGED}
        assert len({outcome.state.hash for outcome in outcomes[where:]}) == 1
        last = outcomes[-1].state
        assert all(
            np.isfinite(tensor).all() for name, tensor in last.tensors.items() if "run/" not in name
        )
        stranger = open_training(diverging)
        before = states_of(training, outcomes)[where]
        assert stranger.run(where, before).state == last

    def test_weights_that_are_no_numbers_after_a_loss_that_is(self, open_training: Open) -> None:
        """The one step of each segment gives a loss, and then goes too far."""
        document = json.loads(manifest_of("mlp").canonical)
        document["model"]["layers"][0]["scale"] = 1e10
        document["training"] |= {
            "optimizer": {"type": "SGD", "learning_rate": 1e30},
            "steps_per_segment": 1,
        }
        training = open_training(Manifest.of(document))
        start = training.start()

        ended = training.run(0, start)

        assert (ended.stop, ended.figures) == (Stop.DIVERGED, None)
        assert differing(ended.state, start) == ["run/stop"]
        assert training.run(1, ended.state).state == ended.state

    def test_early(self, open_training: Open) -> None:
        """Weights no longer change with a rate of almost nothing, so nothing gets better."""
        manifest = manifest_of(
            until={"epochs": 10},
            optimizer={"type": "SGD", "learning_rate": 1e-30},
            validation={"split": 0.25},
            early_stopping={"monitor": "val_accuracy", "patience": 2, "mode": "max"},
        )
        training = open_training(manifest)

        outcomes = run_all(training)

        validated = [one for outcome in outcomes for one in outcome.evaluations]
        # One to compare with, and two more than patience allows.
        assert [one.epoch for one in validated] == [0, 1, 2, 3]
        assert all(one.figures.examples == 24 for one in validated)
        assert outcomes[-1].stop is Stop.EARLY
        assert Counters.of(outcomes[-1].state).step == validated[-1].step + 1 < manifest.plan.steps

    def test_not_at_all(self, open_training: Open) -> None:
        assert [outcome.stop for outcome in run_all(open_training(manifest_of()))] == [Stop.NO] * 4


def test_smaller_batches_evaluate_every_record_once(
    open_training: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest = manifest_of("mlp", validation={"split": 0.25})
    whole = open_training(manifest)
    monkeypatch.setattr(Manifest, "evaluation_batch", 7)
    cut = open_training(manifest)

    for held_out in (True, False):
        one, other = (figures_of(training, held_out) for training in (whole, cut))
        assert one.examples == other.examples == (24 if held_out else 96)
        assert other.loss == pytest.approx(one.loss)
        assert other.metrics == pytest.approx(one.metrics)


def figures_of(training: Training, held_out: bool) -> Figures:
    if held_out:
        return training._validate()
    source = training.manifest.data.train
    return training.evaluate(training.start(), source, training._material.train)


def test_targets_of_another_shape_are_tried_too(open_training: Open, tmp_path: Path) -> None:
    """A test may have its labels as a column where training has them as numbers."""
    training = open_training(manifest_of("mlp", validation={"split": 0.25}))
    write_data(tmp_path)
    data = training.manifest.data.train
    plain = training.evaluate(training.start(), data, open_folder(data, tmp_path))
    np.save(tmp_path / "label.npy", np.load(tmp_path / "label.npy")[:, None])
    label = data.features["label"].model_copy(update={"shape": (1,)})
    column = data.model_copy(update={"features": {**data.features, "label": label}})

    assert training.evaluate(training.start(), column, open_folder(column, tmp_path)) == plain


def other(**changes: Any) -> Manifest:
    return manifest_of("batch_norm", **changes)


CHEATS = {
    "another order": other(seed=12),
    "a smaller batch": other(batch=12),
    "a weight on a class": other(class_weight={"3": 1.01}),
    "two workers": other(workers=2),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_cheats_change_the_state(open_training: Open, cheat: str) -> None:
    """What is computed by another manifest is not what this one asks for."""
    honest = open_training(manifest_of("batch_norm"))
    start = honest.start()

    cheated = open_training(CHEATS[cheat]).run(0, start).state

    assert cheated.hash != honest.run(0, start).state.hash


def test_no_clipping_changes_the_state(open_training: Open) -> None:
    optimizer = {"type": "Adam", "learning_rate": 0.01}
    honest = open_training(other(optimizer={**optimizer, "clipnorm": 1e-3}))
    start = honest.start()

    cheated = open_training(other(optimizer=optimizer)).run(0, start).state

    assert cheated.hash != honest.run(0, start).state.hash


def test_skipped_steps_change_the_state(open_training: Open) -> None:
    """Even if the counter says that they were taken."""
    honest = open_training(manifest_of("mlp"))
    lazy = open_training(manifest_of("mlp", until={"steps": 2}, steps_per_segment=2))
    start = honest.start()

    skipped = lazy.run(0, start).state
    skipped = State({**skipped.tensors, "run/step": np.asarray(3, np.int64)})

    assert honest.run(0, start).state != skipped


def test_a_state_with_another_rate_is_none_of_the_run(open_training: Open) -> None:
    """Or whoever began with it would be right ever after."""
    training = open_training(manifest_of("mlp"))
    start = training.start()
    [rate] = [name for name in start.tensors if name.endswith(".learning_rate")]
    faster = State({**start.tensors, rate: start.tensors[rate] * np.float32(1.001)})

    with pytest.raises(StateError, match="and the manifest says"):
        training.run(0, faster)


def test_fewer_records_change_the_state(open_training: Open, tmp_path: Path) -> None:
    honest = open_training(manifest_of("mlp"))
    start = honest.start()
    fewer = manifest_of("mlp", records=48)
    write_data(tmp_path, 48)
    lazy = Training(fewer, build(fewer), Material(open_folder(fewer.data.train, tmp_path)))

    assert lazy.run(0, start).state != honest.run(0, start).state


@pytest.mark.parametrize(
    ("best", "value", "lower", "better"),
    [
        (math.nan, 1.0, True, True),
        (1.0, 0.8, True, True),
        (1.0, 0.95, True, False),
        (1.0, 1.2, False, True),
        (1.0, 1.05, False, False),
    ],
)
def test_better_is_by_more_than_a_little(
    best: float, value: float, lower: bool, better: bool
) -> None:
    assert Counters(best=best).is_better(value, 0.1, lower=lower) is better


def test_counters_of_strange_states_are_refused() -> None:
    tensors = Counters(step=3).tensors()
    assert Counters.of(State(tensors)).step == 3

    with pytest.raises(StateError, match="no run/step"):
        Counters.of(State({**tensors, "run/step": np.zeros(2, np.int64)}))
    with pytest.raises(StateError, match="stopped for reason 9"):
        Counters.of(State({**tensors, "run/stop": np.asarray(9, np.int64)}))
    assert replace(Counters(), step=1) != Counters()
