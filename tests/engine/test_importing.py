"""Keras models as sections of a manifest, and back."""

import json
from typing import Any

import keras
import numpy as np
import pytest

from tests.engine.manifests import LAYERS, Document, classifier, model_with
from trainyard.engine.importing import model_of, training_of
from trainyard.engine.program import build_model
from trainyard.engine.reading_keras import ModelImportError
from trainyard.protocol.manifest import Manifest, ManifestError, Model

CLASSES = 4


@pytest.mark.parametrize(
    ("shapes", "layer"), [case[1:] for case in LAYERS], ids=[case[0] for case in LAYERS]
)
def test_a_layer_comes_back_as_it_was(shapes: list[tuple[int, ...]], layer: Document) -> None:
    model = Model.model_validate_json(json.dumps(model_with(shapes, layer)))

    back = model_of(build_model(model, seed=1))

    assert back.layers[-1].model_dump() == model.layers[-1].model_dump()
    assert back.inputs == model.inputs


def sequential() -> Any:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            keras.layers.Conv2D(4, 3, activation="relu", kernel_initializer="he_normal"),
            keras.layers.BatchNormalization(),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(CLASSES, kernel_regularizer="l2"),
        ]
    )


def functional() -> Any:
    given = keras.Input((6, 4), name="steps")
    seen = keras.layers.MultiHeadAttention(2, 3)(given, given, use_causal_mask=True)
    summed = keras.layers.Add()([given, seen])
    inner = keras.Sequential(
        [keras.Input((6, 4)), keras.layers.Dense(5), keras.layers.LSTM(3)], name="tail"
    )
    return keras.Model(given, keras.layers.Dense(CLASSES)(inner(summed)))


@pytest.mark.parametrize("make", [sequential, functional])
def test_with_its_weights_copied_the_program_computes_what_the_model_did(make: Any) -> None:
    theirs = make()

    ours = build_model(model_of(theirs), seed=1)
    ours.set_weights(theirs.get_weights())

    given = np.random.default_rng(3).normal(size=(5, *theirs.input_shape[1:])).astype("float32")
    np.testing.assert_array_equal(ours(given), theirs(given))
    assert ours.count_params() == theirs.count_params()


def test_a_compiled_model_becomes_a_manifest() -> None:
    model = sequential()
    schedule = keras.optimizers.schedules.CosineDecay(0.1, 1000)
    model.compile(
        keras.optimizers.SGD(schedule, momentum=0.9, nesterov=True, global_clipnorm=1.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(k=2, name="top2")],
    )
    document = classifier(**training_of(model))
    document["model"] = model_of(model).model_dump(mode="json", by_alias=True, exclude_none=True)
    document["data"]["train"]["features"]["image"]["dtype"] = "float32"

    training = Manifest.of(document).training

    assert training.optimizer is not None
    assert training.loss is not None
    assert training.optimizer.model_dump(exclude_none=True, exclude={"learning_rate"}) == {
        "type": "SGD",
        "momentum": 0.9,
        "nesterov": True,
        "global_clipnorm": 1.0,
    }
    assert training.watched == ("loss", "accuracy", "top2")
    assert training.loss.model_dump() == {
        "type": "SparseCategoricalCrossentropy",
        "from_logits": True,
    }


@pytest.mark.parametrize(
    ("optimizer", "loss", "metrics"),
    [
        (keras.optimizers.Adam(0.003), "sparse_categorical_crossentropy", ["accuracy"]),
        ("rmsprop", "mse", ["mae", "mean_squared_error"]),
        ("adamw", keras.losses.Huber(delta=2.0), []),
        ("adam", keras.losses.BinaryCrossentropy(label_smoothing=0.1), ["binary_accuracy"]),
        ("sgd", "kl_divergence", [keras.metrics.CategoricalAccuracy()]),
    ],
)
def test_names_that_keras_knows_are_understood(optimizer: Any, loss: Any, metrics: Any) -> None:
    model = sequential()
    model.compile(optimizer, loss, metrics=metrics)

    found = training_of(model)

    assert found["optimizer"]["type"] == type(model.optimizer).__name__
    rate = float(model.optimizer.learning_rate)
    assert np.float32(found["optimizer"]["learning_rate"]) == np.float32(rate)
    assert len(str(found["optimizer"]["learning_rate"])) < 8
    assert len(found["metrics"]) == len(metrics)


class Doubling(keras.layers.Layer):  # type: ignore[misc]
    def call(self, given: Any) -> Any:
        return given * 2


def ending(layer: Any) -> Any:
    return keras.Sequential([keras.Input((6, 4)), layer])


def shared() -> Any:
    given = keras.Input((4,))
    layer = keras.layers.Dense(4, name="twice")
    return keras.Model(given, layer(layer(given)))


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: ending(Doubling()), r"class of its own, Doubling"),
        (lambda: ending(keras.layers.Lambda(lambda x: x)), r"no Lambda is supported; it runs code"),
        (lambda: ending(keras.layers.GroupNormalization(2)), r"use LayerNormalization"),
        (lambda: ending(keras.layers.Conv1D(4, 3, groups=2)), r"groups=2.*leave it at 1"),
        (lambda: ending(keras.layers.LSTM(3, stateful=False, unroll=True)), r"unroll=True"),
        (lambda: ending(keras.layers.Dense(3, activity_regularizer="l2")), "activity_regularizer"),
        (lambda: ending(keras.layers.Dense(3, activation=lambda x: x)), r"activation is code"),
        (lambda: ending(keras.layers.Dense(3, dtype="mixed_float16")), r"use float32"),
        (lambda: ending(keras.layers.BatchNormalization(axis=1)), r"axis=1.*Permute"),
        (shared, r"'twice' is used 2 times"),
        (lambda: keras.Sequential([keras.layers.Dense(3)]), r"no shapes yet"),
        (lambda: keras.Sequential([keras.Input((None, 4)), keras.layers.LSTM(3)]), r"open length"),
    ],
)
def test_what_no_manifest_can_say_is_refused_by_name(make: Any, reason: str) -> None:
    with pytest.raises((ModelImportError, ManifestError), match=reason):
        model_of(make())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"optimizer": "nadam", "loss": "mse"}, r"no optimizer Nadam is supported; use Adam"),
        ({"optimizer": "adam", "loss": "hinge"}, r"no hinge is supported"),
        ({"optimizer": "adam", "loss": "mse", "metrics": [keras.metrics.AUC()]}, r"no mean over"),
        ({"optimizer": "adam", "loss": lambda y, p: y - p}, r"no "),
        ({"optimizer": keras.optimizers.Adam(use_ema=True), "loss": "mse"}, r"use_ema=True"),
    ],
)
def test_training_that_no_manifest_can_say_is_refused(settings: Any, reason: str) -> None:
    model = sequential()
    model.compile(**settings)

    with pytest.raises(ModelImportError, match=reason):
        training_of(model)


def test_a_model_that_is_not_compiled_is_told_so() -> None:
    with pytest.raises(ModelImportError, match="not compiled"):
        training_of(sequential())
