"""Activations as layers."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trainyard.protocol.manifest.layers.base import Effect, Layer, Ranks
from trainyard.protocol.manifest.layers.merging import position
from trainyard.protocol.manifest.parts import (
    ZEROS,
    ActivationName,
    Constraint,
    Initializer,
    Regularizer,
)
from trainyard.protocol.manifest.values import MOST_DIMENSIONS, NonNegative, Number, Size, Tensor


class _Activating(Layer):
    passes_mask: ClassVar = True

    def _effect(self, *given: Tensor) -> Effect:
        return Effect(Tensor(given[0].shape))


class Activation(_Activating):
    type: Literal["Activation"] = "Activation"
    activation: ActivationName


class ReLU(_Activating):
    type: Literal["ReLU"] = "ReLU"
    max_value: NonNegative | None = None
    negative_slope: NonNegative = 0.0
    threshold: NonNegative = 0.0


class LeakyReLU(_Activating):
    type: Literal["LeakyReLU"] = "LeakyReLU"
    negative_slope: NonNegative = 0.3


class ELU(_Activating):
    type: Literal["ELU"] = "ELU"
    alpha: Number = 1.0


class PReLU(_Activating):
    type: Literal["PReLU"] = "PReLU"
    alpha_initializer: Initializer = ZEROS
    alpha_regularizer: Regularizer | None = None
    alpha_constraint: Constraint | None = None
    shared_axes: Annotated[tuple[Size, ...], Field(max_length=MOST_DIMENSIONS)] | None = None

    def _effect(self, *given: Tensor) -> Effect:
        shared = {position(axis, given[0].rank) for axis in self.shared_axes or ()}
        weights = 1
        for axis, length in enumerate(given[0].shape):
            weights *= 1 if axis in shared else length
        return Effect(Tensor(given[0].shape), weights)

    def weight_ranks(self, *given: Tensor) -> Ranks:
        return {"alpha": (given[0].rank,)}


class Softmax(_Activating):
    """A mask would take features out of it, or not fit: it is made for scores of attention."""

    type: Literal["Softmax"] = "Softmax"
    passes_mask: ClassVar = False
    axis: Annotated[int, Field(ge=-MOST_DIMENSIONS, le=MOST_DIMENSIONS)] = -1

    def _effect(self, *given: Tensor) -> Effect:
        position(self.axis, given[0].rank)
        return super()._effect(*given)
