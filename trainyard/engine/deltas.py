"""What a worker of a round sends to the others: how far it moved each weight.

A delta is a state of its own, with one form and one hash. It is NumPy alone, element by element, so
that every machine makes the same of it.
"""

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.engine.errors import StateError
from trainyard.engine.state import OUTER, WEIGHTS, State, Tensor, is_of

Compression: TypeAlias = Literal["none", "float16", "int8"]
Floats: TypeAlias = npt.NDArray[np.float32]

_DELTA, _SCALE, _MOVING = "delta/", "scale/", "moving/"
_STORED: dict[Compression, npt.DTypeLike] = {
    "none": np.float32,
    "float16": np.float16,
    "int8": np.int8,
}
_LARGEST = 127


def trained_names(globe: State) -> list[str]:
    """The weights that are trained: those that the outer optimiser has a momentum for."""
    return [WEIGHTS + name.removeprefix(OUTER) for name in globe.tensors if name.startswith(OUTER)]


def moving_names(globe: State, still: Collection[str] = ()) -> list[str]:
    """The weights that are found rather than trained, such as moving statistics.

    Of the layers `still` there are none: nobody changes what they have.
    """
    trained = set(trained_names(globe))
    return [
        name
        for name, tensor in globe.tensors.items()
        if name.startswith(WEIGHTS)
        and name not in trained
        and tensor.dtype == np.float32
        and not is_of(name, still)
    ]


def shared_names(globe: State) -> set[str]:
    """The weights that all workers have from the global state: nobody keeps them of a round."""
    return {*trained_names(globe), *moving_names(globe)}


def make_delta(
    globe: State,
    weights: Mapping[str, Tensor],
    compression: Compression,
    still: Collection[str] = (),
) -> State:
    """The delta of a worker that came from `globe` to `weights`."""
    tensors: dict[str, Tensor | np.generic] = {}
    with np.errstate(over="ignore", invalid="ignore"):
        for name in trained_names(globe):
            short = name.removeprefix(WEIGHTS)
            moved: Floats = np.subtract(globe.tensors[name], weights[name])
            if compression == "int8":
                scale = np.max(np.abs(moved), initial=np.float32(0)) / np.float32(_LARGEST)
                tensors[_SCALE + short] = np.float32(scale)
                tensors[_DELTA + short] = _small_integers(moved, scale)
            else:
                # NumPy rounds to the nearest, and to the even one of two.
                tensors[_DELTA + short] = moved.astype(_STORED[compression])
    for name in moving_names(globe, still):
        tensors[_MOVING + name.removeprefix(WEIGHTS)] = weights[name]
    return State(tensors)


def read_delta(
    globe: State, delta: State, compression: Compression, still: Collection[str] = ()
) -> dict[str, Floats]:
    """How far each weight of `globe` moved, and the moving statistics, by their names.

    A delta comes from a stranger: one that does not belong to `globe` is refused.
    """
    read: dict[str, Floats] = {}
    expected = set()
    for name in trained_names(globe):
        short = name.removeprefix(WEIGHTS)
        expected.add(_DELTA + short)
        moved = _tensor(delta, _DELTA + short, globe.tensors[name].shape, _STORED[compression])
        read[name] = moved.astype(np.float32)
        if compression == "int8":
            expected.add(_SCALE + short)
            read[name] *= _tensor(delta, _SCALE + short, (), np.float32)
    for name in moving_names(globe, still):
        short = name.removeprefix(WEIGHTS)
        expected.add(_MOVING + short)
        read[name] = _tensor(delta, _MOVING + short, globe.tensors[name].shape, np.float32)
    if strange := sorted(delta.tensors.keys() - expected):
        raise StateError(f"the delta has {strange[0]}, which the model has not")
    return read


def is_finite(tensors: Mapping[str, npt.NDArray[Any]]) -> bool:
    return all(bool(np.isfinite(tensor).all()) for tensor in tensors.values())


def _small_integers(moved: Floats, scale: np.float32) -> npt.NDArray[np.int8]:
    if not np.isfinite(scale) or scale == 0:
        return np.zeros(moved.shape, np.int8)
    rounded: Floats = np.clip(np.rint(moved / scale), -_LARGEST, _LARGEST)
    return rounded.astype(np.int8)


def _tensor(
    delta: State, name: str, shape: tuple[int, ...], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    tensor = delta.tensors.get(name)
    if tensor is None:
        raise StateError(f"the delta has no {name}: it is of another model or another compression")
    if (tensor.shape, tensor.dtype) != (shape, np.dtype(dtype)):
        raise StateError(
            f"{name} of the delta is {tensor.dtype} {list(tensor.shape)}, and should be "
            f"{np.dtype(dtype)} {list(shape)}"
        )
    return tensor
