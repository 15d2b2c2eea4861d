"""Examples as a step takes them: the model's inputs in its order, the target, and weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from trainyard.protocol.manifest import Source

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Piece:
    """The examples of one slot in one step."""

    inputs: tuple[Array, ...]
    target: Array
    weight: npt.NDArray[np.float32]


def piece_of(source: Source, batch: Mapping[str, Array], share: slice = slice(None)) -> Piece:
    """The part `share` of a batch; without a feature that weighs examples, each weighs one."""
    target = batch[source.label][share]
    if source.weight is None:
        weight = np.ones(len(target), np.float32)
    else:
        weight = batch[source.weight][share].reshape(-1).astype(np.float32)
    return Piece(tuple(batch[name][share] for name in source.inputs), target, weight)
