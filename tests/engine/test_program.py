"""Programs: what a manifest says is what Keras has, and the same one each time."""

import json
import re
from typing import Any, get_args

import keras
import numpy as np
import pytest
import tensorflow as tf
from pydantic import TypeAdapter, ValidationError

from tests.engine.manifests import LAYERS, Document, classifier, manifest, model_with
from tests.engine.nets import manifest_of
from trainyard.engine.errors import RunError
from trainyard.engine.objectives import loss_of, metric_of
from trainyard.engine.program import Program, build, build_model, build_network
from trainyard.protocol.manifest import Manifest, Model
from trainyard.protocol.manifest.explaining import nearest
from trainyard.protocol.manifest.layers import AnyLayer
from trainyard.protocol.manifest.objectives import Loss, Metric
from trainyard.protocol.manifest.optimizers import Optimizer, Schedule
from trainyard.protocol.manifest.parts import (
    ActivationName,
    Constraint,
    Initializer,
    Regularizer,
)

EXAMPLES = 3


@pytest.fixture(autouse=True)
def _deterministic() -> None:
    tf.config.experimental.enable_op_determinism()


def model_of(document: Document) -> Model:
    return Model.model_validate_json(json.dumps(document))


def inputs_of(model: Model) -> list[Any]:
    chance = np.random.default_rng(5)
    return [
        chance.uniform(0, 9, (EXAMPLES, *given.shape)).astype(given.dtype) for given in model.inputs
    ]


def gradients_of(built: Any, given: list[Any]) -> list[Any]:
    with tf.GradientTape() as tape:
        output = built(given if len(given) > 1 else given[0], training=True)
        loss = tf.reduce_sum(output * output)
    found = tape.gradient(loss, [variable.value for variable in built.trainable_variables])
    return [output, *(tf.convert_to_tensor(gradient) for gradient in found if gradient is not None)]


def weights_of(program: Program) -> list[Any]:
    return [np.asarray(variable) for variable in program.variables.values()]


def test_a_manifest_has_one_program() -> None:
    once, again = build(manifest()), build(manifest())

    assert list(once.variables) == list(again.variables)
    assert len(once.variables) == len(once.model.variables)
    assert "drop/seed_0" in once.variables
    for left, right in zip(weights_of(once), weights_of(again), strict=True):
        np.testing.assert_array_equal(left, right)


def test_seeds_within_layers_have_names_that_no_other_model_changes() -> None:
    """Keras counts them: those of a layer's own layers stand below its name."""
    once, again = build(manifest_of("words")), build(manifest_of("words"))

    assert list(once.variables) == list(again.variables)
    assert {"gru/seed_0", "heads/seed_0"} <= once.variables.keys()


def test_another_seed_gives_other_weights_and_other_draws() -> None:
    once, other = build(manifest()), build(manifest(seed=43))

    for name in ("conv/kernel", "logits/kernel", "drop/seed_0"):
        assert not np.array_equal(once.variables[name], other.variables[name])


def test_twins_inside_a_layer_start_apart() -> None:
    attention = {"type": "MultiHeadAttention", "num_heads": 2, "key_dim": 4}
    both = {"type": "Bidirectional", "layer": {"type": "LSTM", "units": 3}}
    seeing = build_model(model_of(model_with([(5, 4), (5, 4)], attention)), seed=1)
    reading = build_model(model_of(model_with([(5, 4)], both)), seed=1)

    query, key, value = seeing.get_layer("it").trainable_weights[0:6:2]
    forward, backward = reading.get_layer("it").trainable_weights[0:6:3]

    assert not np.array_equal(query, key)
    assert not np.array_equal(key, value)
    assert not np.array_equal(forward, backward)


@pytest.mark.parametrize("make", [build, build_network])
def test_what_keras_refuses_is_told_and_never_tried_again(make: Any) -> None:
    """As no manifest that was checked should be, but the next version of Keras may think so."""
    checked = manifest()
    drop = checked.model.layers[6].model_copy(update={"rate": 2.0})
    layers = (*checked.model.layers[:6], drop, *checked.model.layers[7:])
    model = checked.model.model_copy(update={"layers": layers})

    with pytest.raises(RunError, match=r"no model can be made: ValueError: .*`rate`"):
        make(checked.model_copy(update={"model": model}))


def test_a_frozen_layer_is_not_trained() -> None:
    document = classifier()
    document["model"]["layers"][1]["trainable"] = False
    frozen = Manifest.of(document)

    program = build(frozen)

    trained = sum(int(np.prod(v.shape)) for v in program.model.trainable_variables)
    assert trained == frozen.model.trainable_parameters
    assert program.model.count_params() == frozen.model.parameters


def test_examples_are_varied_in_training_alone() -> None:
    flip = {"type": "RandomFlip", "mode": "horizontal"}
    model = model_of(model_with([(8, 9, 3)], flip))
    built = build_model(model, seed=1)
    given = inputs_of(model)[0]

    np.testing.assert_array_equal(built(given, training=False), given)
    assert not np.array_equal(built(given, training=True), given)


PROBABILITIES = np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]], "float32")
ONE_HOT = np.array([[1, 0, 0], [0, 1, 0]], "float32")
LABELS = np.array([0, 1])


@pytest.mark.parametrize(
    ("section", "theirs", "target"),
    [
        (
            {"type": "SparseCategoricalCrossentropy", "from_logits": True},
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
            LABELS,
        ),
        (
            {"type": "CategoricalCrossentropy", "label_smoothing": 0.1},
            keras.losses.CategoricalCrossentropy(label_smoothing=0.1),
            ONE_HOT,
        ),
        (
            {"type": "BinaryCrossentropy", "from_logits": True, "label_smoothing": 0.2},
            keras.losses.BinaryCrossentropy(from_logits=True, label_smoothing=0.2),
            ONE_HOT,
        ),
        ({"type": "MeanSquaredError"}, keras.losses.MeanSquaredError(), ONE_HOT),
        ({"type": "MeanAbsoluteError"}, keras.losses.MeanAbsoluteError(), ONE_HOT),
        ({"type": "Huber", "delta": 0.3}, keras.losses.Huber(0.3), ONE_HOT),
        ({"type": "KLDivergence"}, keras.losses.KLDivergence(), ONE_HOT),
        ({"type": "LogCosh"}, keras.losses.LogCosh(), ONE_HOT),
    ],
)
def test_losses_are_those_of_keras_for_each_example(
    section: Document, theirs: Any, target: Any
) -> None:
    ours = loss_of(TypeAdapter(Loss).validate_python(section))

    found = ours(target, PROBABILITIES)

    assert found.shape == (2,)
    theirs.reduction = "none"
    np.testing.assert_allclose(found, theirs(target, PROBABILITIES), rtol=1e-6)


@pytest.mark.parametrize(
    ("section", "target", "expected"),
    [
        ({"type": "SparseCategoricalAccuracy"}, LABELS, [1, 0]),
        ({"type": "SparseCategoricalAccuracy"}, LABELS[:, None], [1, 0]),
        ({"type": "SparseTopKCategoricalAccuracy", "k": 2}, np.array([1, 0]), [1, 1]),
        ({"type": "CategoricalAccuracy"}, ONE_HOT, [1, 0]),
        ({"type": "BinaryAccuracy"}, ONE_HOT, [1, 1 / 3]),
        ({"type": "BinaryAccuracy", "threshold": 0.15}, ONE_HOT, [2 / 3, 1 / 3]),
        ({"type": "MeanAbsoluteError"}, ONE_HOT, [0.2, 0.6]),
        ({"type": "MeanSquaredError"}, ONE_HOT, [0.14 / 3, 1.46 / 3]),
    ],
)
def test_metrics_give_a_number_for_each_example(
    section: Document, target: Any, expected: list[float]
) -> None:
    metric = metric_of(TypeAdapter(Metric).validate_python(section))

    np.testing.assert_allclose(metric(target, PROBABILITIES), expected, rtol=1e-5)


def test_classes_weigh_what_the_manifest_says() -> None:
    program = build(manifest(class_weight={"1": 3.0, "3": 0.5}))

    found = program.weigh(np.array([0, 1, 2, 3]), np.array([1, 1, 2, 2], "float32"))

    np.testing.assert_array_equal(found, [1, 3, 2, 1])


@pytest.mark.parametrize(
    "rate",
    [
        {"type": "ExponentialDecay", "decay_rate": 0.9, "staircase": True},
        {"type": "InverseTimeDecay", "decay_rate": 0.9},
        {"type": "PolynomialDecay", "power": 2},
        {"type": "CosineDecay", "warmup_target": 0.5, "warmup_steps": 10},
    ],
)
def test_schedules_are_built(rate: Document) -> None:
    given = {**rate, "initial_learning_rate": 0.1, "decay_steps": 100}

    program = build(manifest(optimizer={"type": "SGD", "learning_rate": given}))

    assert float(program.optimizer.learning_rate) == pytest.approx(0.1)


@pytest.mark.parametrize(
    "optimizer",
    [
        {"type": "SGD", "momentum": 0.9, "nesterov": True, "clipvalue": 0.5},
        {"type": "AdamW", "weight_decay": 0.1, "global_clipnorm": 1},
        {"type": "RMSprop", "centered": True, "clipnorm": 1},
        {
            "type": "Adam",
            "learning_rate": {
                "type": "PiecewiseConstantDecay",
                "boundaries": [1],
                "values": [0.1, 0.01],
            },
        },
    ],
)
def test_two_steps_in_a_graph_give_the_same_bits_each_time(optimizer: Document) -> None:
    ends = []
    for _ in range(2):
        program = build(manifest(optimizer=optimizer))
        step = step_of(program)
        for number in range(2):
            chance = np.random.default_rng(number)
            step(chance.integers(0, 256, (32, 8, 8, 1), "uint8"), chance.integers(0, 4, 32))
        ends.append(weights_of(program))

    start = weights_of(build(manifest()))
    for left, right in zip(*ends, strict=True):
        np.testing.assert_array_equal(left, right)
    assert not any(np.array_equal(left, right) for left, right in zip(ends[0], start, strict=True))


def step_of(program: Program) -> Any:
    return tf.function(lambda images, labels: train(program, images, labels))


def train(program: Program, images: Any, labels: Any) -> None:
    variables = program.model.trainable_variables
    with tf.GradientTape() as tape:
        output = program.model(program.as_inputs([images]), training=True)
        loss = tf.reduce_mean(program.loss(labels, output)) + tf.add_n(program.model.losses)
    gradients = tape.gradient(loss, [variable.value for variable in variables])
    program.optimizer.apply(gradients, variables)


def test_every_layer_of_the_whitelist_is_tried() -> None:
    kinds = {get_args(kind.model_fields["type"].annotation)[0] for kind in whitelist()}

    assert {layer["type"] for _, _, layer in LAYERS} == kinds


def whitelist(kinds: Any = AnyLayer) -> tuple[Any, ...]:
    """Of those that there are of something, each; of nothing none."""
    union, *_ = get_args(kinds) or ((),)
    return get_args(union)


@pytest.mark.parametrize(
    ("module", "kinds"),
    [
        (keras.layers, AnyLayer),
        (keras.losses, Loss),
        (keras.metrics, Metric),
        (keras.optimizers, Optimizer),
        (keras.optimizers.schedules, Schedule),
    ],
    ids=["layers", "losses", "metrics", "optimizers", "schedules"],
)
def test_of_all_that_keras_has_the_nearest_is_named(module: Any, kinds: Any) -> None:
    """And not merely the list of what there is."""
    known = [get_args(kind.model_fields["type"].annotation)[0] for kind in whitelist(kinds)]
    theirs = {name for name, one in vars(module).items() if isinstance(one, type)}
    assert set(known) <= theirs

    told = {name: nearest(name, known) for name in theirs - {*known, "Reduction"}}

    assert [name for name, text in told.items() if text.startswith("there are")] == []
    named = re.findall(r"\b(?:use|mean) \W?([A-Z]\w+)", " ".join(told.values()))
    assert named
    assert set(named) <= set(known)


@pytest.mark.parametrize(
    ("shapes", "layer"), [case[1:] for case in LAYERS], ids=[case[0] for case in LAYERS]
)
def test_a_layer_has_the_shapes_and_weights_that_were_counted(
    shapes: list[tuple[int, ...]], layer: Document
) -> None:
    model = model_of(model_with(shapes, layer))
    given = inputs_of(model)

    built = build_model(model, seed=1)
    effect = model.effects["it"]
    made = built.get_layer("it")

    assert built.output_shape == (None, *effect.output.shape)
    assert sum(int(np.prod(v.shape)) for v in made.trainable_weights) == effect.trainable
    assert sum(int(np.prod(v.shape)) for v in made.non_trainable_weights) == effect.fixed
    assert built.count_params() == model.parameters
    # Trained twice from the same start, it gives the same bits.
    once = gradients_of(built, given)
    again = gradients_of(build_model(model, seed=1), given)
    assert once[0].shape == (EXAMPLES, *effect.output.shape)
    assert len(once) == len(again)
    for left, right in zip(once, again, strict=True):
        np.testing.assert_array_equal(left, right)
        assert np.isfinite(left).all()


PARTS = {"initializer": Initializer, "regularizer": Regularizer, "constraint": Constraint}
# One layer for each shape that weights have.
PARTED = ["dense", "conv1d", "conv2d", "separable1d", "depthwise", "batchnorm", "embedding"]
PARTED += ["lstm", "gru", "gru before", "heads", "prelu", "prelu apart"]


def parts_of(layer: Document) -> list[tuple[str, str, Any]]:
    """Fields of a layer with each kind of part that there is for them, on axes of all sorts."""
    [kind] = [kind for kind in whitelist() if layer["type"] == kind.model_fields["type"].default]
    tried: list[tuple[str, str, Any]] = []
    for field in kind.model_fields:
        if field.endswith("activation"):
            tried += [(field, name, name) for name in get_args(ActivationName)]
        for part in whitelist(PARTS.get(field.rpartition("_")[2])):
            name = part.model_fields["type"].default
            tried.append((field, name, {"type": name}))
            if "axis" in part.model_fields:
                axes: list[Any] = [1, 2, 3, [0, 1], [0, 1, 2], [1, 0], []]
                tried += [(field, name, {"type": name, "axis": axis}) for axis in axes]
    return tried


@pytest.mark.parametrize("case", PARTED)
def test_what_a_manifest_accepts_as_parts_of_a_layer_keras_builds(case: str) -> None:
    [(shapes, layer)] = [(shapes, layer) for name, shapes, layer in LAYERS if name == case]
    never = {(field, name) for field, name, _ in parts_of(layer)}
    for field, name, part in parts_of(layer):
        try:
            model = model_of(model_with(shapes, {**layer, field: part}))
        except ValidationError:
            continue
        never.discard((field, name))

        for variable in build_model(model, seed=1).get_layer("it").trainable_variables:
            if variable.regularizer is not None:
                assert np.isfinite(variable.regularizer(variable))
            if variable.constraint is not None:
                assert variable.constraint(variable).shape == variable.shape

    # Of some shapes there is no matrix; all else can be had.
    assert {name for _, name in never} <= {"Identity", "Orthogonal"}
