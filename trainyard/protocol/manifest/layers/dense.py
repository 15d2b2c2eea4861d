"""Layers of plain weights: Dense and Embedding."""

from typing import ClassVar, Literal

from trainyard.protocol.manifest.layers.base import Effect, Layer, Ranks
from trainyard.protocol.manifest.parts import (
    GLOROT_UNIFORM,
    ZEROS,
    ActivationName,
    Constraint,
    Initializer,
    RandomUniform,
    Regularizer,
)
from trainyard.protocol.manifest.values import INTEGERS, Size, Tensor


class Dense(Layer):
    type: Literal["Dense"] = "Dense"
    units: Size
    activation: ActivationName = "linear"
    use_bias: bool = True
    kernel_initializer: Initializer = GLOROT_UNIFORM
    bias_initializer: Initializer = ZEROS
    kernel_regularizer: Regularizer | None = None
    bias_regularizer: Regularizer | None = None
    kernel_constraint: Constraint | None = None
    bias_constraint: Constraint | None = None

    ranks: ClassVar = (1, 2, 3, 4)
    passes_mask: ClassVar = True

    def _effect(self, *given: Tensor) -> Effect:
        *outer, features = given[0].shape
        weights = (features + self.use_bias) * self.units
        return Effect(Tensor((*outer, self.units)), weights)

    def weight_ranks(self, *given: Tensor) -> Ranks:
        return {"kernel": (2,), "bias": (1,) * self.use_bias}


class Embedding(Layer):
    type: Literal["Embedding"] = "Embedding"
    input_dim: Size
    output_dim: Size
    embeddings_initializer: Initializer = RandomUniform()
    embeddings_regularizer: Regularizer | None = None
    embeddings_constraint: Constraint | None = None
    mask_zero: bool = False

    ranks: ClassVar = (0, 1, 2)
    takes_integers: ClassVar = True

    def _effect(self, *given: Tensor) -> Effect:
        if given[0].dtype not in INTEGERS:
            raise ValueError(f"takes integers, not {given[0]}")
        output = Tensor((*given[0].shape, self.output_dim))
        return Effect(output, self.input_dim * self.output_dim)

    def weight_ranks(self, *given: Tensor) -> Ranks:
        return {"embeddings": (2,)}
