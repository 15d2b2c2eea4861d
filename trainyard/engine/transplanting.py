"""The weights of somebody's Keras model as a state of its manifest's program, and back."""

from collections.abc import Iterator
from typing import Any

import keras
import numpy as np

from trainyard.engine.errors import StateError
from trainyard.engine.importing import layers_named, model_of
from trainyard.engine.program import Network, Program, build, build_network
from trainyard.engine.state import State
from trainyard.engine.variables import assign, named_variables, named_weights
from trainyard.protocol.manifest import Manifest, Model

# Whose statistics are part of the manifest, and no variables of the program.
_CONSTANT = "Normalization"
# Lists of an optimiser that are no slots by variable, whatever their length.
_ALL = ("_variables", "_trainable_variables")


def weights_of(model: Any, manifest: Manifest) -> State:
    """The weights that `model` has now, as a state that a run of its manifest can begin with."""
    network = build_network(manifest)
    for theirs, ours in _pairs(model, manifest, network):
        ours.assign(theirs.value)
    named = named_weights(network)
    return State({name: np.asarray(one.value) for name, one in named.items()})


def restore(model: Any, manifest: Manifest, state: State) -> None:
    """Give `model` the weights of a state, and its optimiser that of the state, all in place."""
    program = build(manifest)
    assign(named_variables(program), state)
    for theirs, ours in _pairs(model, manifest, program):
        theirs.assign(ours.value)
    if getattr(model, "optimizer", None) is not None:
        _restore_optimizer(model, manifest, program)


def compiled_model(manifest: Manifest, state: State) -> Any:
    """The model of a manifest with the weights of a state, as if it had been trained here."""
    program = build(manifest)
    training = manifest.training
    model = program.model
    model.compile(
        optimizer=program.optimizer,
        loss=_made(keras.losses, training.loss),
        metrics=[_made(keras.metrics, one, name=one.title) for one in training.metrics],
    )
    assign(named_variables(program), state)
    return model


def _made(module: Any, section: Any, **more: Any) -> Any:
    fields = section.model_dump(exclude={"type", "name"})
    return getattr(module, section.type)(**fields, **more)


def is_same_network(one: Model, other: Model) -> bool:
    """Whether two models differ in nothing but names, which Keras counts through a process."""
    return bool(_unnamed(one) == _unnamed(other))


def _unnamed(model: Model) -> Any:
    names = [one.name for one in (*model.inputs, *model.layers)]
    place = {name: number for number, name in enumerate(names)}
    return (
        [(one.shape, one.dtype) for one in model.inputs],
        [
            (
                layer.model_dump(exclude={"name", "sources"}),
                [place[name] for name in model.wiring[layer.name]],
            )
            for layer in model.layers
        ],
        [place[name] for name in model.outputs],
    )


def _pairs(model: Any, manifest: Manifest, network: Network) -> Iterator[tuple[Any, Any]]:
    """Each weight of the model beside that of the network; seeds stay each one's own.

    Layers go by their order: another process may have other names for the same ones.
    """
    layers, own = layers_named(model), model_of(model)
    if not is_same_network(own, manifest.model):
        raise StateError("this is another model than the one that was trained")
    pairs = zip(manifest.model.layers, own.layers, strict=True)
    theirs_of = {trained.name: layers[here.name] for trained, here in pairs}
    for layer in network.model.layers:
        if layer.name not in theirs_of:
            # What the model is given, which has no weights.
            continue
        theirs, ours = theirs_of[layer.name].weights, layer.weights
        if type(layer).__name__ == _CONSTANT and len(theirs) != len(ours):
            continue
        yield from zip(theirs, ours, strict=True)


def _restore_optimizer(model: Any, manifest: Manifest, program: Program) -> None:
    """Slots are kept in lists by the variable that they belong to; all else goes by its place."""
    theirs, ours = model.optimizer, program.optimizer
    theirs.build(model.trainable_variables)
    partner = {id(one): own for own, one in _pairs(model, manifest, program)}
    known = {id(one): place for place, one in enumerate(theirs._trainable_variables)}
    # For each variable of the program, the place of its partner in the model's optimiser.
    places = [known[id(partner[id(one)])] for one in ours._trainable_variables]
    moved = set[int]()
    for name, slots in vars(ours).items():
        if name in _ALL or not isinstance(slots, list):
            continue
        others = getattr(theirs, name)
        if len(slots) != len(places):
            continue
        for place, slot in zip(places, slots, strict=True):
            if slot is not None and hasattr(slot, "assign"):
                others[place].assign(slot.value)
                moved |= {id(slot), id(others[place])}
    rest = [one for one in ours.variables if id(one) not in moved]
    for own, one in zip((v for v in theirs.variables if id(v) not in moved), rest, strict=True):
        own.assign(one.value)
