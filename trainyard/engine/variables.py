"""The variables of a program under names of their own, and their way into a state and back."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from trainyard.engine.errors import StateError
from trainyard.engine.program import Program
from trainyard.engine.state import OPTIMIZER, WEIGHTS, State, Tensor

# What the manifest says once and no step changes, though it is a variable.
_CONSTANT = ".learning_rate"


def named_variables(program: Program) -> dict[str, Any]:
    """All variables that a run changes: weights, moving statistics, seeds, and the optimiser's.

    Layers are named by the manifest. The optimiser's are numbered, since Keras derives their names
    from the layers' in a way that two of them may share.
    """
    named = {WEIGHTS + name: variable for name, variable in program.variables.items()}
    if len(named) != len(program.model.variables):
        raise StateError("two variables of the model have the same name")
    for number, variable in enumerate(program.optimizer.variables):
        named[f"{OPTIMIZER}{number:05}.{variable.name}"] = variable
    return named


class Reader:
    """Reads variables all at once: one by one, TensorFlow takes longer to be asked than to copy."""

    def __init__(self, variables: Mapping[str, Any]) -> None:
        self._names = list(variables)
        self._values = tf.function(
            lambda: [tf.identity(variable.value) for variable in variables.values()],
            autograph=False,
        )

    def read(self) -> dict[str, Tensor]:
        """Copies, which nothing changes any more."""
        return dict(zip(self._names, map(np.array, self._values()), strict=True))


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


def check_constants(state: State, initial: Mapping[str, Tensor]) -> None:
    """Refuse a state with another learning rate than the manifest's.

    Or whoever begins with one is right in every later segment: those are computed from its states.
    """
    for name, tensor in initial.items():
        found = state.tensors.get(name)
        is_constant = name.startswith(OPTIMIZER) and name.endswith(_CONSTANT)
        if is_constant and found is not None and found.tobytes() != tensor.tobytes():
            raise StateError(f"{name} of the state is {found}, and the manifest says {tensor}")
