"""Normalisation, dropout and noise."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trainyard.protocol.manifest.layers.base import Effect, Layer, Ranks
from trainyard.protocol.manifest.parts import ONES, ZEROS, Constraint, Initializer, Regularizer
from trainyard.protocol.manifest.values import NonNegative, Positive, Share, Tensor


class _Normalizing(Layer):
    """Over the last axis."""

    epsilon: Positive = 0.001
    center: bool = True
    scale: bool = True
    beta_initializer: Initializer = ZEROS
    gamma_initializer: Initializer = ONES
    beta_regularizer: Regularizer | None = None
    gamma_regularizer: Regularizer | None = None
    beta_constraint: Constraint | None = None
    gamma_constraint: Constraint | None = None

    ranks: ClassVar = (1, 2, 3, 4)
    passes_mask: ClassVar = True

    def weight_ranks(self, *given: Tensor) -> Ranks:
        moving = {"moving_mean": (1,), "moving_variance": (1,)}
        return {"beta": (1,) * self.center, "gamma": (1,) * self.scale, **moving}


class BatchNormalization(_Normalizing):
    type: Literal["BatchNormalization"] = "BatchNormalization"
    momentum: Share = 0.99
    moving_mean_initializer: Initializer = ZEROS
    moving_variance_initializer: Initializer = ONES

    def _effect(self, *given: Tensor) -> Effect:
        channels = given[0].shape[-1]
        return Effect(Tensor(given[0].shape), channels * (self.center + self.scale), 2 * channels)


class LayerNormalization(_Normalizing):
    type: Literal["LayerNormalization"] = "LayerNormalization"

    def _effect(self, *given: Tensor) -> Effect:
        return Effect(Tensor(given[0].shape), given[0].shape[-1] * (self.center + self.scale))


class _Unchanged(Layer):
    passes_mask: ClassVar = True

    def _effect(self, *given: Tensor) -> Effect:
        return Effect(Tensor(given[0].shape))


class Dropout(_Unchanged):
    type: Literal["Dropout"] = "Dropout"
    rate: Share


class SpatialDropout1D(_Unchanged):
    type: Literal["SpatialDropout1D"] = "SpatialDropout1D"
    rate: Share
    ranks: ClassVar = (2,)


class SpatialDropout2D(_Unchanged):
    type: Literal["SpatialDropout2D"] = "SpatialDropout2D"
    rate: Share
    ranks: ClassVar = (3,)


class GaussianNoise(_Unchanged):
    type: Literal["GaussianNoise"] = "GaussianNoise"
    stddev: Annotated[NonNegative, Field(le=1)]
