"""A compiled model and whatever data Keras takes, as one manifest."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.names import ContentPath
from trainyard.engine.state import State
from trainyard.sdk.composing import SEGMENTS, Shape, compose, round_length, stopping_of
from trainyard.sdk.errors import RefusedError

RECORDS = 60
X = np.random.default_rng(1).normal(size=(RECORDS, 3)).astype(np.float32)
Y = (X.sum(axis=1) > 0).astype(np.int64)
SHAPE = Shape(epochs=2, batch_size=10)


@pytest.fixture
def content(tmp_path: Path) -> Iterator[Content]:
    opened = Content(EmbeddedStore(tmp_path / "store"))
    yield opened
    opened.close()


def model() -> Any:
    found = keras.Sequential([keras.Input((3,), name="point"), keras.layers.Dense(2, name="out")])
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    found.compile("adam", loss, metrics=["accuracy"])
    return found


def test_the_manifest_begins_with_the_weights_that_the_model_has(
    content: Content, tmp_path: Path
) -> None:
    given = model()

    manifest = compose(content, given, X, Y, SHAPE, validation_data=(X[:7], Y[:7]))

    assert manifest.initial_state is not None
    content.get(ContentPath.parse(manifest.initial_state), tmp_path / "state")
    kernel = State.load(tmp_path / "state").tensors["weights/out/kernel"]
    np.testing.assert_array_equal(kernel, given.get_layer("out").kernel)
    assert (manifest.plan.steps, manifest.data.train.records) == (12, RECORDS)
    validation = manifest.training.validation
    assert validation is not None
    assert validation.source is not None
    assert validation.source.records == 7
    assert manifest.training.watched == ("loss", "accuracy", "val_loss", "val_accuracy")


class Batches(keras.utils.PyDataset):  # type: ignore[misc]
    def __len__(self) -> int:
        return RECORDS // 10

    def __getitem__(self, number: int) -> Any:
        part = slice(number * 10, number * 10 + 10)
        return X[part], Y[part]


def datasets() -> list[Any]:
    rows = tf.data.Dataset.from_tensor_slices((X, Y))
    return [rows, rows.batch(16), Batches()]


@pytest.mark.parametrize("number", range(3), ids=["rows", "batches", "generator"])
def test_data_sets_and_generators_have_all_their_records(content: Content, number: int) -> None:
    manifest = compose(content, model(), datasets()[number], None, SHAPE)

    train = manifest.data.train
    assert (train.kind, train.records, train.inputs) == ("tfrecord", RECORDS, ("point",))


def test_a_data_set_without_an_end_is_refused(content: Content) -> None:
    endless = tf.data.Dataset.from_tensor_slices((X, Y)).repeat()

    with pytest.raises(RefusedError, match=r"no end.*take\(count\)"):
        compose(content, model(), endless, None, SHAPE)


def test_an_optimizer_that_has_taken_steps_is_not_forgotten_silently(content: Content) -> None:
    given = model()
    given.train_on_batch(X[:10], Y[:10])

    with pytest.raises(RefusedError, match=r"has taken 1 steps.*fresh_optimizer=True"):
        compose(content, given, X, Y, SHAPE)
    assert compose(content, given, X, Y, SHAPE, fresh_optimizer=True).plan.steps == 12


@pytest.mark.parametrize(("patience", "said"), [(0, 0), (1, 0), (3, 2)])
def test_early_stopping_is_what_workers_do(content: Content, patience: int, said: int) -> None:
    """Keras stops when it has waited for so many epochs, a manifest when for one more."""
    stopping = keras.callbacks.EarlyStopping("val_accuracy", patience=patience, min_delta=0.01)

    manifest = compose(content, model(), X, Y, SHAPE, validation_data=(X, Y), callbacks=[stopping])

    rule = manifest.training.early_stopping
    assert rule is not None
    assert (rule.monitor, rule.patience, rule.mode) == ("val_accuracy", said, "max")
    assert rule.min_delta == pytest.approx(0.01)


class OwnRate(keras.callbacks.LearningRateScheduler):  # type: ignore[misc]
    """Somebody's own, derived from what has no effect on the market."""


class OwnStop(keras.callbacks.EarlyStopping):  # type: ignore[misc]
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.model.stop_training = True


@pytest.mark.parametrize(
    ("callback", "why"),
    [
        (OwnRate(lambda epoch: 0.1), "OwnRate works on a model that trains here.*a schedule"),
        (OwnStop("loss"), "OwnStop stops in a way of its own.*keras.callbacks.EarlyStopping"),
        (keras.callbacks.EarlyStopping(restore_best_weights=True), "restore_best_weights=True"),
        (keras.callbacks.LearningRateScheduler(lambda epoch: 0.1), "optimizer a schedule"),
        (keras.callbacks.ModelCheckpoint("x.keras"), "save the model after fit"),
    ],
)
def test_callbacks_that_change_training_are_refused(callback: Any, why: str) -> None:
    with pytest.raises(RefusedError, match=why):
        stopping_of([callback])


def test_more_workers_train_in_sync_or_in_rounds(content: Content) -> None:
    both = compose(content, model(), X, Y, Shape(epochs=2, batch_size=10, workers=2))
    rounds = Shape(epochs=2, batch_size=10, workers=2, mode="rounds", steps_per_segment=3)

    assert both.training.mode == "sync"
    assert compose(content, model(), X, Y, rounds).training.rounds is not None


def test_rounds_are_as_somebody_wishes_them(content: Content) -> None:
    shape = Shape(
        epochs=2,
        batch_size=10,
        workers=2,
        mode="rounds",
        rounds={"local_steps": 3, "compression": "int8", "quorum": 2, "outer": {"momentum": 0.5}},
    )

    found = compose(content, model(), X, Y, shape).training.rounds

    assert found is not None
    assert (found.local_steps, found.compression, found.quorum) == (3, "int8", 2)
    assert (found.outer.momentum, found.outer.learning_rate) == (0.5, 0.7)
    fewer = replace(shape, rounds={"compression": "float16"})
    half = compose(content, model(), X, Y, fewer).training.rounds
    assert half is not None
    # An epoch, since there are less than fifty steps in it.
    assert (half.compression, half.local_steps) == ("float16", RECORDS // 10)


@pytest.mark.parametrize(
    ("steps", "epoch", "length"),
    [
        # An epoch of fewer steps than a round should have.
        (12, 6, 6),
        (600, 40, 40),
        # At least fifty of them, and such that epochs end with rounds where they can.
        (600, 300, 50),
        (600, 120, 60),
        (600, 211, 50),
        # Of a long task as many as a segment has.
        (36_000, 600, 600),
        (36_000, 1_200, 400),
        # Less than a batch of records.
        (5, 0, 1),
    ],
)
def test_rounds_are_long_enough_for_a_fresh_optimizer(steps: int, epoch: int, length: int) -> None:
    assert round_length(steps, epoch, parameters=1_000) == length


def test_records_that_are_held_out_are_in_no_epoch_of_a_round(content: Content) -> None:
    shape = Shape(epochs=9, batch_size=10, workers=2, mode="rounds", validation_split=0.5)

    found = compose(content, model(), X, Y, shape).training.rounds

    assert found is not None
    assert found.local_steps == RECORDS // 2 // 10


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"mode": "sync"}, "rounds: mode 'sync' has none.*leave compression out"),
        ({"rounds": {"compression": "zip"}}, "compression"),
        ({"rounds": {"local_step": 3}}, "local_step"),
        ({"rounds": {"local_steps": 3}, "steps_per_segment": 4}, "local_steps are 3.*give one"),
    ],
)
def test_rounds_that_cannot_be_are_refused(
    content: Content, changes: dict[str, Any], why: str
) -> None:
    shape = Shape(workers=2, mode="rounds", batch_size=10, rounds={"compression": "int8"})

    with pytest.raises(ValueError, match=why):
        compose(content, model(), X, Y, replace(shape, **changes))


def test_a_long_task_has_a_hundred_segments_unless_its_states_are_large(
    content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    def segments(steps: int) -> int:
        return compose(content, model(), X, Y, Shape(batch_size=10, steps=steps)).plan.segments

    assert (segments(1200), segments(900)) == (SEGMENTS, 50)
    monkeypatch.setattr("trainyard.sdk.composing._MOST_STATES_BYTES", 1000)
    assert segments(1200) == 50


def test_epochs_end_with_segments_where_they_can(content: Content) -> None:
    """240 steps would be segments of five; an epoch has six."""
    manifest = compose(content, model(), X, Y, Shape(epochs=40, batch_size=10))
    odd = compose(content, model(), X, Y, Shape(epochs=40, batch_size=11))

    assert manifest.training.steps_per_segment == 6
    assert odd.training.steps_per_segment == 5
