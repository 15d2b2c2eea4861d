"""Attention: a query looks at values, by their keys where those are given apart."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from trainyard.protocol.manifest.layers.base import Effect, Layer, Ranks
from trainyard.protocol.manifest.parts import (
    GLOROT_UNIFORM,
    ZEROS,
    Constraint,
    Initializer,
    Regularizer,
)
from trainyard.protocol.manifest.values import Share, Size, Tensor


class _Attending(Layer):
    """`from` is [query, value] or [query, value, key]."""

    dropout: Share = 0.0
    use_causal_mask: bool = False

    least_sources: ClassVar = 2
    most_sources: ClassVar = 3
    ranks: ClassVar = (2,)


class MultiHeadAttention(_Attending):
    type: Literal["MultiHeadAttention"] = "MultiHeadAttention"
    num_heads: Annotated[int, Field(ge=1, le=1024)]
    key_dim: Size
    value_dim: Size | None = None
    output_shape: Size | None = None
    use_bias: bool = True
    kernel_initializer: Initializer = GLOROT_UNIFORM
    bias_initializer: Initializer = ZEROS
    kernel_regularizer: Regularizer | None = None
    bias_regularizer: Regularizer | None = None
    kernel_constraint: Constraint | None = None
    bias_constraint: Constraint | None = None

    def _effect(self, *given: Tensor) -> Effect:
        query, value = given[:2]
        key = _key(given)
        keys = self.num_heads * self.key_dim
        values = self.num_heads * (self.value_dim or self.key_dim)
        steps, features = query.shape
        output = self.output_shape or features
        weights = (
            (features + self.use_bias) * keys
            + (key.shape[1] + self.use_bias) * keys
            + (value.shape[1] + self.use_bias) * values
            + (values + self.use_bias) * output
        )
        scores = 2 * self.num_heads * steps * value.shape[0]
        projected = steps * (keys + values) + value.shape[0] * (keys + values)
        return Effect(Tensor((steps, output)), weights, scratch=scores + projected)

    def weight_ranks(self, *given: Tensor) -> Ranks:
        # Those of the heads, and that of the output.
        return {"kernel": (3,), "bias": (2, 1) * self.use_bias}


class Attention(_Attending):
    type: Literal["Attention"] = "Attention"
    use_scale: bool = False
    score_mode: Literal["dot", "concat"] = "dot"

    def _effect(self, *given: Tensor) -> Effect:
        query, value = given[:2]
        key = _key(given)
        if key.shape[1] != query.shape[1]:
            raise ValueError(f"keys {key} are not as long as queries {query}")
        weights = self.use_scale + (self.score_mode == "concat")
        pairs = query.shape[0] * value.shape[0]
        scratch = pairs * (query.shape[1] if self.score_mode == "concat" else 2)
        return Effect(Tensor((query.shape[0], value.shape[1])), weights, scratch=scratch)


def _key(given: tuple[Tensor, ...]) -> Tensor:
    value, key = given[1], given[-1]
    if key.shape[0] != value.shape[0]:
        raise ValueError(f"there are not as many keys {key} as values {value}")
    return key
