"""The variables of a program under names of their own, and their way into a state and back."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from trainyard.engine.errors import StateError
from trainyard.engine.program import Network, Program
from trainyard.engine.state import OPTIMIZER, WEIGHTS, State, Tensor, check_form

# What the manifest says once and no step changes, though it is a variable.
_CONSTANT = ".learning_rate"
# By which a schedule finds its rate.
_COUNTED = ".iteration"


def named_weights(network: Network) -> dict[str, Any]:
    """The model's own variables among them: weights, moving statistics, seeds."""
    named = {WEIGHTS + name: variable for name, variable in network.variables.items()}
    if len(named) != len(network.model.variables):
        raise StateError("two variables of the model have the same name")
    return named


def named_variables(program: Program) -> dict[str, Any]:
    """All variables that a run changes: weights, moving statistics, seeds, and the optimiser's.

    Layers are named by the manifest. The optimiser's are numbered, since Keras derives their names
    from the layers' in a way that two of them may share.
    """
    named = named_weights(program)
    for number, variable in enumerate(program.optimizer.variables):
        named[f"{OPTIMIZER}{number:05}.{variable.name}"] = variable
    return named


class Reader:
    """Reads variables all at once: one by one, TensorFlow takes longer to be asked than to copy."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._shapes = {name: tuple(variable.shape) for name, variable in variables.items()}
        # All of a kind come as one vector, which is a copy already.
        kinds: dict[str, list[str]] = {}
        for name, variable in variables.items():
            kinds.setdefault(str(variable.dtype), []).append(name)
        self._kinds = list(kinds.values())
        self._vectors = tf.function(
            lambda: [
                tf.concat([tf.reshape(variables[name].value, [-1]) for name in names], 0)
                for names in self._kinds
            ],
            autograph=False,
        )

    def read(self) -> dict[str, Tensor]:
        """Copies, which nothing changes any more."""
        found: dict[str, Tensor] = {}
        for names, vector in zip(self._kinds, map(np.asarray, self._vectors()), strict=True):
            end = 0
            for name in names:
                shape = self._shapes[name]
                begin, end = end, end + math.prod(shape)
                found[name] = vector[begin:end].reshape(shape)
        return found


def assign(variables: Mapping[str, Any], state: State, prefix: str = "") -> None:
    """Give the variables under `prefix` the values of `state`, all of them or none."""
    wanted = {name: variable for name, variable in variables.items() if name.startswith(prefix)}
    for name, variable in wanted.items():
        tensor = state.tensors.get(name)
        if tensor is None:
            raise StateError(f"the state has no {name}: it is of another model")
        if (tensor.shape, str(tensor.dtype)) != (tuple(variable.shape), str(variable.dtype)):
            raise StateError(
                f"{name} of the state is {tensor.dtype} {list(tensor.shape)}, and of this model "
                f"{variable.dtype} {list(variable.shape)}"
            )
    for name, variable in wanted.items():
        variable.assign(state.tensors[name])


def check_rate(state: State, initial: Mapping[str, Tensor], steps: range) -> None:
    """Refuse a state with another learning rate than the manifest's, or another place in it.

    Or whoever begins with one is right in every later segment: those are computed from its states.
    `steps` are those that the optimiser may have taken.
    """
    check_form(state, initial, OPTIMIZER)
    for name, tensor in initial.items():
        if not name.startswith(OPTIMIZER):
            continue
        found = state.tensors[name]
        if name.endswith(_CONSTANT) and found.tobytes() != tensor.tobytes():
            raise StateError(f"{name} of the state is {found}, and the manifest says {tensor}")
        if name.endswith(_COUNTED) and int(found) not in steps:
            raise StateError(
                f"{name} of the state is {found}, and here it is {_told(steps)}: by it a schedule "
                "finds its rate"
            )


def _told(steps: range) -> str:
    # Not by its length, which Python can only tell of shorter ones than a forged count makes.
    return (
        f"{steps.start}" if steps.stop == steps.start + 1 else f"{steps.start} to {steps.stop - 1}"
    )
