"""Pooling, in windows and over everything."""

from typing import ClassVar, Literal

from trainyard.protocol.manifest.layers.base import Effect, Layer
from trainyard.protocol.manifest.layers.windows import Padding, pooled
from trainyard.protocol.manifest.values import Pair, Size, Tensor


class _Pooling1D(Layer):
    pool_size: Size = 2
    strides: Size | None = None
    padding: Padding = "valid"

    ranks: ClassVar = (2,)

    def _effect(self, *given: Tensor) -> Effect:
        length, channels = given[0].shape
        stride = self.strides or self.pool_size
        return Effect(Tensor((pooled(length, self.pool_size, stride, self.padding), channels)))


class _Pooling2D(Layer):
    pool_size: Pair = (2, 2)
    strides: Pair | None = None
    padding: Padding = "valid"

    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        *lengths, channels = given[0].shape
        sizes = zip(lengths, self.pool_size, self.strides or self.pool_size, strict=True)
        return Effect(Tensor((*(pooled(*size, self.padding) for size in sizes), channels)))


class MaxPooling1D(_Pooling1D):
    type: Literal["MaxPooling1D"] = "MaxPooling1D"


class AveragePooling1D(_Pooling1D):
    type: Literal["AveragePooling1D"] = "AveragePooling1D"


class MaxPooling2D(_Pooling2D):
    type: Literal["MaxPooling2D"] = "MaxPooling2D"


class AveragePooling2D(_Pooling2D):
    type: Literal["AveragePooling2D"] = "AveragePooling2D"


class _GlobalPooling(Layer):
    keepdims: bool = False

    def _effect(self, *given: Tensor) -> Effect:
        *lengths, channels = given[0].shape
        kept = (1,) * len(lengths) if self.keepdims else ()
        return Effect(Tensor((*kept, channels)))


class GlobalMaxPooling1D(_GlobalPooling):
    type: Literal["GlobalMaxPooling1D"] = "GlobalMaxPooling1D"
    ranks: ClassVar = (2,)


class GlobalAveragePooling1D(_GlobalPooling):
    type: Literal["GlobalAveragePooling1D"] = "GlobalAveragePooling1D"
    ranks: ClassVar = (2,)


class GlobalMaxPooling2D(_GlobalPooling):
    type: Literal["GlobalMaxPooling2D"] = "GlobalMaxPooling2D"
    ranks: ClassVar = (3,)


class GlobalAveragePooling2D(_GlobalPooling):
    type: Literal["GlobalAveragePooling2D"] = "GlobalAveragePooling2D"
    ranks: ClassVar = (3,)
