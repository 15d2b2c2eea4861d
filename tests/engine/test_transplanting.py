"""Weights of somebody's model in a state of its manifest, and a state back in the model."""

import json
from typing import Any

import keras
import numpy as np
import pytest

from tests.engine.manifests import classifier
from trainyard.engine.errors import StateError
from trainyard.engine.importing import model_of, training_of
from trainyard.engine.program import build
from trainyard.engine.state import OPTIMIZER, State
from trainyard.engine.transplanting import (
    compiled_model,
    restore,
    unlike_optimizers,
    weights_of,
)
from trainyard.engine.variables import named_variables
from trainyard.protocol.manifest import Manifest

CLASSES = 4


def sequential() -> Any:
    return keras.Sequential(
        [
            keras.Input((8, 8, 1), name="image"),
            keras.layers.Conv2D(4, 3, name="conv"),
            keras.layers.BatchNormalization(name="norm"),
            keras.layers.Flatten(),
            keras.layers.Dropout(0.5),
            keras.layers.Dense(CLASSES, name="out"),
        ]
    )


def branched() -> Any:
    """Keras orders layers by depth, and not as they were made; one is a model of its own."""
    given = keras.Input((8, 8, 1), name="image")
    flat = keras.layers.Flatten(name="flat")(given)
    short = keras.layers.Dense(5, name="short")(flat)
    inner = keras.Sequential(
        [keras.Input((64,)), keras.layers.Dense(7, name="a"), keras.layers.Dense(5, name="b")],
        name="inner",
    )
    both = keras.layers.Add(name="both")([short, inner(flat)])
    return keras.Model(given, keras.layers.Dense(CLASSES, name="out")(both))


def attentive() -> Any:
    """With a layer that has a seed within."""
    given = keras.Input((8, 8, 1), name="image")
    rows = keras.layers.Reshape((8, 8), name="rows")(given)
    heads = keras.layers.MultiHeadAttention(2, 3, dropout=0.5, name="heads")(rows, rows)
    flat = keras.layers.Flatten(name="flat")(heads)
    return keras.Model(given, keras.layers.Dense(CLASSES, name="out")(flat))


def compiled(make: Any, optimizer: Any) -> tuple[Any, Manifest]:
    model = make()
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    document = classifier(**training_of(model))
    document["model"] = model_of(model).model_dump(mode="json", by_alias=True, exclude_none=True)
    document["data"]["train"]["features"]["image"]["dtype"] = "float32"
    return model, Manifest.of(document)


def disturbed(manifest: Manifest) -> State:
    """A state of the manifest in which no two numbers are the same."""
    named = named_variables(build(manifest))
    tensors = {}
    for place, (name, variable) in enumerate(named.items()):
        values = np.asarray(variable.value)
        if values.dtype.kind == "f":
            values = (np.arange(values.size, dtype=np.float32) / 7 + place).reshape(values.shape)
        elif name.startswith(OPTIMIZER):
            values = np.asarray(40 + place, values.dtype)
        tensors[name] = values
    return State(tensors)


@pytest.mark.parametrize("make", [sequential, branched, attentive])
def test_a_program_with_the_weights_of_a_model_computes_what_it_does(make: Any) -> None:
    model, manifest = compiled(make, "sgd")

    found = compiled_model(manifest, _whole(manifest, weights_of(model, manifest)))

    given = np.random.default_rng(1).normal(size=(3, 8, 8, 1)).astype(np.float32)
    np.testing.assert_array_equal(found(given), model(given))


@pytest.mark.parametrize("make", [sequential, branched, attentive])
@pytest.mark.parametrize(
    "optimizer",
    [
        keras.optimizers.Adam(0.01, amsgrad=True),
        keras.optimizers.SGD(0.01, momentum=0.9),
        keras.optimizers.RMSprop(0.01, momentum=0.9, centered=True),
    ],
    ids=["adam", "sgd", "rmsprop"],
)
def test_a_state_comes_back_with_each_slot_at_its_variable(make: Any, optimizer: Any) -> None:
    fresh = type(optimizer).from_config(optimizer.get_config())
    model, manifest = compiled(make, fresh)
    before = [id(one) for one in model.variables]
    state = disturbed(manifest)

    restore(model, manifest, state)

    assert [id(one) for one in model.variables] == before
    np.testing.assert_array_equal(
        model.get_layer("out").kernel.numpy(), state.tensors["weights/out/kernel"]
    )
    again = build(manifest)
    slots = {name: one for name, one in state.tensors.items() if name.startswith(OPTIMIZER)}
    ours = {name: one for name, one in named_variables(again).items() if name in slots}
    lists = {
        name: value
        for name, value in vars(model.optimizer).items()
        if isinstance(value, list) and len(value) == len(model.trainable_variables)
    }
    kernel = model.get_layer("out").kernel
    place = model.optimizer._get_variable_index(kernel)
    partner = next(
        number
        for number, one in enumerate(again.optimizer._trainable_variables)
        if one.path == "out/kernel"
    )
    moved = 0
    for name, variable in ours.items():
        for kept, value in lists.items():
            twin = getattr(again.optimizer, kept)
            if "variables" not in kept and twin[partner] is variable:
                np.testing.assert_array_equal(value[place].numpy(), slots[name])
                moved += 1
    assert moved >= 1
    [count] = [one for name, one in slots.items() if name.endswith(".iteration")]
    assert int(model.optimizer.iterations) == int(count)


def test_after_rounds_the_optimizer_is_a_fresh_one() -> None:
    """Each worker has an optimiser of its own there, and the state of the run has none."""
    model, plain = compiled(sequential, keras.optimizers.Adam(0.01))
    document = json.loads(plain.canonical)
    document["training"] |= {"mode": "rounds", "workers": 2, "rounds": {"local_steps": 2}}
    del document["training"]["steps_per_segment"]
    manifest = Manifest.of(document)
    state = disturbed(manifest)
    merged = State({n: one for n, one in state.tensors.items() if not n.startswith(OPTIMIZER)})
    restore(model, plain, disturbed(plain))
    assert int(model.optimizer.iterations) > 0

    restore(model, manifest, merged)

    assert int(model.optimizer.iterations) == 0
    assert all(not one.numpy().any() for one in model.optimizer._momentums)
    for kernel in (
        model.get_layer("out").kernel,
        compiled_model(manifest, merged).layers[-1].kernel,
    ):
        np.testing.assert_array_equal(kernel, state.tensors["weights/out/kernel"])
    with pytest.raises(StateError, match="the state has no optimizer/"):
        restore(model, plain, merged)


def test_layers_are_known_by_their_order_where_their_names_are_others() -> None:
    model, manifest = compiled(sequential, "sgd")
    renamed = keras.Sequential(
        [keras.Input((8, 8, 1)), *(type(one).from_config(_anew(one)) for one in model.layers)]
    )
    state = disturbed(manifest)

    restore(renamed, manifest, state)

    kernel = renamed.get_layer("other_out").kernel
    np.testing.assert_array_equal(kernel, state.tensors["weights/out/kernel"])


def _anew(layer: Any) -> dict[str, Any]:
    return {**layer.get_config(), "name": f"other_{layer.name}"}


def test_a_model_of_other_shapes_is_refused() -> None:
    _, manifest = compiled(sequential, "sgd")
    other = keras.Sequential(
        [*sequential().layers[:-1], keras.layers.Dense(CLASSES + 1, name="out")]
    )
    other.build((None, 8, 8, 1))

    with pytest.raises(StateError, match="another model than the one that was trained"):
        restore(other, manifest, disturbed(manifest))


@pytest.mark.parametrize(
    ("optimizer", "trained", "here"),
    [
        (keras.optimizers.SGD(0.01), "Adam", "SGD"),
        (keras.optimizers.Adam(0.01, amsgrad=True), "Adam(amsgrad=False)", "Adam(amsgrad=True)"),
        (keras.optimizers.Adam(0.5), "Adam(learning_rate=0.01)", None),
    ],
    ids=["sgd", "amsgrad", "rate"],
)
def test_another_optimizer_is_told_and_takes_nothing(
    optimizer: Any, trained: str, here: str | None
) -> None:
    model, manifest = compiled(sequential, keras.optimizers.Adam(0.01))
    assert unlike_optimizers(model, manifest) is None
    other, elsewhere = compiled(sequential, optimizer)
    before = [one.numpy() for one in other.variables]

    assert unlike_optimizers(other, manifest) == (trained, here or "Adam(learning_rate=0.5)")

    if here is not None:
        for one, said in ((other, manifest), (model, elsewhere)):
            with pytest.raises(StateError, match=r"keeps other variables than the (Adam|SGD)"):
                restore(one, said, disturbed(said))
        for old, variable in zip(before, other.variables, strict=True):
            np.testing.assert_array_equal(variable.numpy(), old)


def test_a_rate_that_a_manifest_has_in_more_bits_is_the_same() -> None:
    model, plain = compiled(sequential, keras.optimizers.Adam(0.01))
    document = json.loads(plain.canonical)
    document["training"]["optimizer"]["learning_rate"] = 0.01

    assert unlike_optimizers(model, Manifest.of(document)) is None


def _whole(manifest: Manifest, weights: State) -> State:
    """The weights with the optimiser's first variables."""
    first = {name: np.asarray(one.value) for name, one in named_variables(build(manifest)).items()}
    return State({**first, **weights.tensors})
