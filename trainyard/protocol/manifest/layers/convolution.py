"""Convolutions, always with channels last."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from trainyard.protocol.manifest.layers.base import Effect, Layer, Ranks
from trainyard.protocol.manifest.layers.windows import Padding, convolved
from trainyard.protocol.manifest.parts import (
    GLOROT_UNIFORM,
    ZEROS,
    ActivationName,
    Constraint,
    Initializer,
    Regularizer,
)
from trainyard.protocol.manifest.values import Pair, Size, Tensor

_Multiplier: TypeAlias = Annotated[int, Field(ge=1, le=1024)]


class _Convolution(Layer):
    activation: ActivationName = "linear"
    use_bias: bool = True
    bias_initializer: Initializer = ZEROS
    bias_regularizer: Regularizer | None = None
    bias_constraint: Constraint | None = None

    @model_validator(mode="after")
    def _strides_or_dilation(self) -> "_Convolution":
        if max(self._sizes("strides")) > 1 and max(self._sizes("dilation_rate")) > 1:
            raise ValueError("strides and dilation_rate cannot both be over 1; leave one at 1")
        return self

    def _sizes(self, name: str) -> tuple[int, ...]:
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (value,)

    @property
    def _kernel_area(self) -> int:
        area = 1
        for length in self._sizes("kernel_size"):
            area *= length
        return area

    def _output(self, given: Tensor, padding: Padding | Literal["causal"], channels: int) -> Tensor:
        lengths = zip(
            given.shape,
            self._sizes("kernel_size"),
            self._sizes("strides"),
            self._sizes("dilation_rate"),
            strict=False,  # the channels are left over
        )
        return Tensor((*(convolved(*sizes, padding) for sizes in lengths), channels))


class _FullConvolution(_Convolution):
    filters: Size
    kernel_initializer: Initializer = GLOROT_UNIFORM
    kernel_regularizer: Regularizer | None = None
    kernel_constraint: Constraint | None = None

    def _weights(self, channels: int) -> int:
        return (self._kernel_area * channels + self.use_bias) * self.filters

    def weight_ranks(self, *given: Tensor) -> Ranks:
        return {"kernel": (given[0].rank + 1,), "bias": (1,) * self.use_bias}


class Conv1D(_FullConvolution):
    type: Literal["Conv1D"] = "Conv1D"
    kernel_size: Size
    strides: Size = 1
    padding: Padding | Literal["causal"] = "valid"
    dilation_rate: Size = 1

    ranks: ClassVar = (2,)

    def _effect(self, *given: Tensor) -> Effect:
        output = self._output(given[0], self.padding, self.filters)
        return Effect(output, self._weights(given[0].shape[-1]))


class Conv2D(_FullConvolution):
    type: Literal["Conv2D"] = "Conv2D"
    kernel_size: Pair
    strides: Pair = (1, 1)
    padding: Padding = "valid"
    dilation_rate: Pair = (1, 1)

    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        output = self._output(given[0], self.padding, self.filters)
        return Effect(output, self._weights(given[0].shape[-1]))


class _ByDepth(_Convolution):
    depth_multiplier: _Multiplier = 1
    depthwise_initializer: Initializer = GLOROT_UNIFORM
    depthwise_regularizer: Regularizer | None = None
    depthwise_constraint: Constraint | None = None

    @model_validator(mode="after")
    def _square_strides(self) -> "_ByDepth":
        if len(set(self._sizes("strides"))) > 1:
            raise ValueError("strides must be equal in both directions, as TensorFlow has it")
        return self

    def _depthwise_weights(self, channels: int) -> int:
        return self._kernel_area * channels * self.depth_multiplier

    def weight_ranks(self, *given: Tensor) -> Ranks:
        kernel = (given[0].rank + 1,)
        return {"depthwise": kernel, "pointwise": kernel, "bias": (1,) * self.use_bias}


class DepthwiseConv2D(_ByDepth):
    type: Literal["DepthwiseConv2D"] = "DepthwiseConv2D"
    kernel_size: Pair
    strides: Pair = (1, 1)
    padding: Padding = "valid"
    dilation_rate: Pair = (1, 1)

    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        channels = given[0].shape[-1]
        filters = channels * self.depth_multiplier
        weights = self._depthwise_weights(channels) + self.use_bias * filters
        return Effect(self._output(given[0], self.padding, filters), weights)


class _Separable(_ByDepth):
    filters: Size
    pointwise_initializer: Initializer = GLOROT_UNIFORM
    pointwise_regularizer: Regularizer | None = None
    pointwise_constraint: Constraint | None = None

    def _separable(self, given: Tensor, padding: Padding) -> Effect:
        channels = given.shape[-1]
        inner = channels * self.depth_multiplier
        weights = self._depthwise_weights(channels) + (inner + self.use_bias) * self.filters
        output = self._output(given, padding, self.filters)
        return Effect(output, weights, scratch=output.size // self.filters * inner)


class SeparableConv1D(_Separable):
    type: Literal["SeparableConv1D"] = "SeparableConv1D"
    kernel_size: Size
    strides: Size = 1
    padding: Padding = "valid"
    dilation_rate: Size = 1

    ranks: ClassVar = (2,)

    def _effect(self, *given: Tensor) -> Effect:
        return self._separable(given[0], self.padding)


class SeparableConv2D(_Separable):
    type: Literal["SeparableConv2D"] = "SeparableConv2D"
    kernel_size: Pair
    strides: Pair = (1, 1)
    padding: Padding = "valid"
    dilation_rate: Pair = (1, 1)

    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        return self._separable(given[0], self.padding)
