"""A loss that was computed of a data set's tensors, as a model and the loss it is compiled with.

As in `loss = keras.ops.mean(keras.ops.sparse_categorical_crossentropy(labels, logits,
from_logits=True))`: nothing of it runs here. The graph is read back from the loss to the two
tensors that it compares, and what no manifest says is refused by its name.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import keras

from trainyard.sdk.errors import RefusedError

if TYPE_CHECKING:
    from trainyard.spark.dataset import TFDataset

_ENTROPIES = ("SparseCategoricalCrossentropy", "CategoricalCrossentropy", "BinaryCrossentropy")
# Of differences, by what is done to them before the mean.
_DIFFERENCES = {"Square": "MeanSquaredError", "Absolute": "MeanAbsoluteError"}
# What only changes how a label is written, which Keras does again by itself.
_WRAPPING = ("Squeeze", "ExpandDims", "Cast")
_KNOWN = "keras.ops.mean of a crossentropy of keras.ops, of a square, or of an absolute difference"


@dataclass(frozen=True, slots=True)
class Aim:
    """What a loss says: a model, how it is to be compiled, and the data for it."""

    model: Any
    loss: Any
    dataset: "TFDataset"


def is_loss(given: Any) -> bool:
    return isinstance(given, keras.KerasTensor)


def aim_of(loss: Any) -> Aim:
    """The model between the data set's inputs and the loss."""
    operation, arguments = _made_by(loss)
    if operation == "Mean":
        if getattr(loss, "shape", ()) != ():
            raise RefusedError("the loss is no single number: take the mean over all of it")
        operation, arguments = _made_by(arguments[0])
        # That of the last axis, which Keras takes by itself.
        if operation == "Mean":
            operation, arguments = _made_by(arguments[0])
    else:
        raise RefusedError(f"the loss ends with {operation}, and it has to be {_KNOWN}")
    if operation in _ENTROPIES:
        labels, predicted = arguments[:2]
        made = getattr(keras.losses, operation)(from_logits=_is_of_logits(arguments))
    elif operation in _DIFFERENCES:
        inner, both = _made_by(arguments[0])
        if inner != "Subtract":
            raise RefusedError(f"the loss is of {inner}, and it has to be {_KNOWN}")
        labels, predicted = _sides(*both[:2])
        made = getattr(keras.losses, _DIFFERENCES[operation])()
    else:
        raise RefusedError(f"the loss is of {operation}, and it has to be {_KNOWN}")
    return _aim(labels, predicted, made)


def dataset_of(model: Any) -> "TFDataset | None":
    """The data set whose tensors a model was built of, if it was."""
    found = {id(one): one for one in map(_dataset, model.inputs) if one is not None}
    if len(found) > 1:
        raise RefusedError("the model reads the tensors of several data sets; give it those of one")
    return next(iter(found.values()), None)


def _aim(labels: Any, predicted: Any, loss: Any) -> Aim:
    label = _unwrapped(labels)
    dataset = _dataset(label)
    if dataset is None:
        raise RefusedError("the loss compares with something that is none of dataset.tensors")
    if label.name != dataset.target:
        raise RefusedError(
            f"the loss compares with {label.name!r}, and the data set's target is "
            f"{dataset.target!r}: name it with target= where the data set is made"
        )
    inputs = [one for one in dataset.tensors if one.name in dataset.inputs]
    try:
        model = keras.Model(inputs, predicted)
    except ValueError as error:
        raise RefusedError(f"the loss does not come from dataset.tensors alone: {error}") from error
    return Aim(model, loss, dataset)


def _sides(one: Any, other: Any) -> tuple[Any, Any]:
    """Label and prediction, whichever was taken from the other."""
    first = _dataset(_unwrapped(one))
    return (one, other) if first is not None else (other, one)


def _unwrapped(tensor: Any) -> Any:
    operation, arguments = _made_by(tensor)
    while operation in _WRAPPING:
        tensor = arguments[0]
        operation, arguments = _made_by(tensor)
    return tensor


def _dataset(tensor: Any) -> "TFDataset | None":
    found: TFDataset | None = getattr(tensor, "trainyard_dataset", None)
    return found


def _made_by(tensor: Any) -> tuple[str, "_Arguments"]:
    """The name of the operation that a tensor came from, and what the operation was given."""
    history = getattr(tensor, "_keras_history", None)
    if history is None:
        raise RefusedError("the loss is no tensor of Keras': compute it with keras.ops")
    operation = history.operation
    node = operation._inbound_nodes[history.node_index]
    return type(operation).__name__, _Arguments(operation, node.input_tensors)


class _Arguments(list[Any]):
    """The tensors that an operation was given, and the operation with its settings."""

    def __init__(self, operation: Any, tensors: list[Any]) -> None:
        super().__init__(tensors)
        self.operation = operation


def _is_of_logits(arguments: _Arguments) -> bool:
    operation = arguments.operation
    if getattr(operation, "axis", -1) != -1:
        raise RefusedError(f"the loss has classes on axis {operation.axis}; put them on the last")
    return bool(operation.from_logits)
