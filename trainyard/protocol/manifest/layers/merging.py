"""Layers of several inputs."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trainyard.protocol.manifest.layers.base import Effect, Layer
from trainyard.protocol.manifest.values import MOST_DIMENSIONS, Tensor


class _Elementwise(Layer):
    least_sources: ClassVar = 2
    most_sources: ClassVar = 64

    def _effect(self, *given: Tensor) -> Effect:
        if len({tensor.shape for tensor in given}) > 1:
            raise ValueError(f"takes inputs of one shape, not {', '.join(map(str, given))}")
        return Effect(Tensor(given[0].shape))


class Add(_Elementwise):
    type: Literal["Add"] = "Add"


class Subtract(_Elementwise):
    type: Literal["Subtract"] = "Subtract"
    most_sources: ClassVar = 2


class Multiply(_Elementwise):
    type: Literal["Multiply"] = "Multiply"


class Average(_Elementwise):
    type: Literal["Average"] = "Average"


class Maximum(_Elementwise):
    type: Literal["Maximum"] = "Maximum"


class Concatenate(Layer):
    """Along `axis`, where 0 would be the batch."""

    type: Literal["Concatenate"] = "Concatenate"
    axis: Annotated[int, Field(ge=-MOST_DIMENSIONS, le=MOST_DIMENSIONS)] = -1
    least_sources: ClassVar = 2
    most_sources: ClassVar = 64

    def _effect(self, *given: Tensor) -> Effect:
        rank = given[0].rank
        axis = position(self.axis, rank)
        rests = {tensor.shape[:axis] + tensor.shape[axis + 1 :] for tensor in given}
        if len(rests) > 1 or any(tensor.rank != rank for tensor in given):
            raise ValueError(f"cannot join {', '.join(map(str, given))} along axis {self.axis}")
        shape = list(given[0].shape)
        shape[axis] = sum(tensor.shape[axis] for tensor in given)
        return Effect(Tensor(tuple(shape)))


def position(axis: int, rank: int) -> int:
    """Where `axis` of a batch is in the shape of one example of `rank`."""
    found = axis - 1 if axis > 0 else rank + axis
    if axis == 0 or not 0 <= found < rank:
        raise ValueError(f"axis {axis} is none of an example of rank {rank} (0 is the batch)")
    return found
