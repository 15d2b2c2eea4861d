"""The weights of somebody's Keras model as a state of its manifest's program, and back."""

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from trainyard.engine.building import make_optimizer
from trainyard.engine.errors import StateError
from trainyard.engine.importing import layers_named, model_of
from trainyard.engine.program import Network, Program, build, build_network
from trainyard.engine.reading_keras import optimizer_of
from trainyard.engine.state import WEIGHTS, State
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
    """Give `model` the weights of a state, and its optimiser that of the state, all in place.

    All of them or none. After rounds there is no optimiser that all workers share: it is a fresh
    one then.
    """
    program = _program_of(manifest, state)
    pairs = list(_pairs(model, manifest, program))
    if getattr(model, "optimizer", None) is not None:
        pairs += _optimizer_pairs(model, program, pairs)
    for theirs, ours in pairs:
        if tuple(theirs.shape) != tuple(ours.shape):
            raise StateError(
                f"{theirs.path} has the shape {list(theirs.shape)}, and {list(ours.shape)} where "
                "it was trained"
            )
    for theirs, ours in pairs:
        theirs.assign(ours.value)


def unlike_optimizers(model: Any, manifest: Manifest) -> tuple[str, str] | None:
    """What a task trained with and what `model` is compiled with, if it is not the same."""
    section, optimizer = manifest.training.optimizer, getattr(model, "optimizer", None)
    if section is None or optimizer is None:
        return None
    # As Keras has it, which keeps a rate in fewer bits than a manifest does.
    ours, theirs = optimizer_of(make_optimizer(section)), optimizer_of(optimizer)
    return None if ours == theirs else (_told(ours, theirs), _told(theirs, ours))


def _told(section: dict[str, Any], other: dict[str, Any]) -> str:
    """An optimiser in words, with what another of its kind has not."""
    own = section["type"] != other["type"]
    unlike = {} if own else {name: one for name, one in section.items() if one != other.get(name)}
    told = ", ".join(f"{name}={one!r}" for name, one in unlike.items())
    return f"{section['type']}({told})" if told else str(section["type"])


def compiled_model(manifest: Manifest, state: State) -> Any:
    """The model of a manifest with the weights of a state, as if it had been trained here."""
    return compiled_for(manifest, _program_of(manifest, state))


def compiled_for(manifest: Manifest, program: Program) -> Any:
    """The model of a program, compiled as the manifest says."""
    training, model = manifest.training, program.model
    model.compile(
        optimizer=program.optimizer,
        loss=_made(keras.losses, training.loss),
        metrics=[_made(keras.metrics, one, name=one.title) for one in training.metrics],
    )
    return model


def _program_of(manifest: Manifest, state: State) -> Program:
    """The program of a manifest with all that a state has of it."""
    program = build(manifest)
    # In rounds each worker has an optimiser of its own, which is in its leaves.
    is_shared = manifest.training.rounds is None
    assign(named_variables(program), state, "" if is_shared else WEIGHTS)
    return program


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


def _optimizer_pairs(
    model: Any, program: Program, weights: Sequence[tuple[Any, Any]]
) -> list[tuple[Any, Any]]:
    """Each variable of the model's optimiser beside that of the program's.

    Slots are kept in lists by the variable that they belong to; all else goes by its place.
    """
    theirs, ours = model.optimizer, program.optimizer
    theirs.build(model.trainable_variables)
    partner = {id(one): own for own, one in weights}
    known = {id(one): place for place, one in enumerate(theirs._trainable_variables)}
    # For each variable of the program, the place of its partner in the model's optimiser.
    partners = [id(partner[id(one)]) for one in ours._trainable_variables]
    if type(theirs) is not type(ours) or not known.keys() >= set(partners):
        raise _unlike(theirs, ours)
    places = [known[one] for one in partners]
    pairs = []
    for name, slots in vars(ours).items():
        if name in _ALL or not isinstance(slots, list) or len(slots) != len(places):
            continue
        others = getattr(theirs, name, None)
        if not isinstance(others, list) or len(others) != len(slots):
            raise _unlike(theirs, ours)
        chosen = zip((others[place] for place in places), slots, strict=True)
        pairs += [(other, slot) for other, slot in chosen if hasattr(slot, "assign")]
    moved = {id(one) for pair in pairs for one in pair}
    left, rest = (
        [one for one in each.variables if id(one) not in moved] for each in (theirs, ours)
    )
    if len(left) != len(rest) or any(not hasattr(other, "assign") for other, _ in pairs):
        raise _unlike(theirs, ours)
    return pairs + list(zip(left, rest, strict=True))


def _unlike(theirs: Any, ours: Any) -> StateError:
    return StateError(
        f"the model's {type(theirs).__name__} keeps other variables than the "
        f"{type(ours).__name__} that it was trained with"
    )
