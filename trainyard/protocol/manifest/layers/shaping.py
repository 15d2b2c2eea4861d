"""Layers that only move values around."""

from math import prod
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator

from trainyard.protocol.manifest.layers.base import Effect, Layer
from trainyard.protocol.manifest.values import (
    MOST_DIMENSIONS,
    MarginPair,
    Margins,
    Pair,
    Size,
    Tensor,
)

_OpenSize: TypeAlias = Size | Literal[-1]


class Flatten(Layer):
    type: Literal["Flatten"] = "Flatten"
    takes_integers: ClassVar = True

    def _effect(self, *given: Tensor) -> Effect:
        return Effect(Tensor((given[0].size,), given[0].dtype))


class Reshape(Layer):
    type: Literal["Reshape"] = "Reshape"
    target_shape: Annotated[tuple[_OpenSize, ...], Field(max_length=MOST_DIMENSIONS)]
    takes_integers: ClassVar = True

    @field_validator("target_shape")
    @classmethod
    def _one_open(cls, shape: tuple[int, ...]) -> tuple[int, ...]:
        if shape.count(-1) > 1:
            raise ValueError("only one length can be left open by -1")
        return shape

    def _effect(self, *given: Tensor) -> Effect:
        known = prod(length for length in self.target_shape if length != -1)
        size = given[0].size
        open_length = size // known
        shape = tuple(open_length if length == -1 else length for length in self.target_shape)
        if prod(shape) != size:
            raise ValueError(f"{given[0]} has {size} values, which do not fill {list(shape)}")
        return Effect(Tensor(shape, given[0].dtype))


class Permute(Layer):
    type: Literal["Permute"] = "Permute"
    dims: Annotated[tuple[Size, ...], Field(min_length=1, max_length=MOST_DIMENSIONS)]
    takes_integers: ClassVar = True

    def _effect(self, *given: Tensor) -> Effect:
        rank = given[0].rank
        if sorted(self.dims) != list(range(1, rank + 1)):
            raise ValueError(f"dims must be an order of 1 to {rank}, for {given[0]}")
        return Effect(Tensor(tuple(given[0].shape[dim - 1] for dim in self.dims), given[0].dtype))


class RepeatVector(Layer):
    type: Literal["RepeatVector"] = "RepeatVector"
    n: Size
    ranks: ClassVar = (1,)

    def _effect(self, *given: Tensor) -> Effect:
        return Effect(Tensor((self.n, *given[0].shape)))


class ZeroPadding1D(Layer):
    type: Literal["ZeroPadding1D"] = "ZeroPadding1D"
    padding: MarginPair = (1, 1)
    ranks: ClassVar = (2,)

    def _effect(self, *given: Tensor) -> Effect:
        steps, features = given[0].shape
        return Effect(Tensor((steps + sum(self.padding), features)))


class ZeroPadding2D(Layer):
    type: Literal["ZeroPadding2D"] = "ZeroPadding2D"
    padding: Margins = ((1, 1), (1, 1))
    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        height, width, channels = given[0].shape
        rows, columns = map(sum, self.padding)
        return Effect(Tensor((height + rows, width + columns, channels)))


class Cropping2D(Layer):
    type: Literal["Cropping2D"] = "Cropping2D"
    cropping: Margins
    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        height, width, channels = given[0].shape
        rows, columns = map(sum, self.cropping)
        return Effect(Tensor((height - rows, width - columns, channels)))


class UpSampling2D(Layer):
    type: Literal["UpSampling2D"] = "UpSampling2D"
    size: Pair = (2, 2)
    interpolation: Literal["nearest", "bilinear"] = "nearest"
    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        height, width, channels = given[0].shape
        return Effect(Tensor((height * self.size[0], width * self.size[1], channels)))
