"""Preparing and varying examples inside the model, so that the trace covers it."""

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator

from trainyard.protocol.manifest.layers.base import Effect, Layer
from trainyard.protocol.manifest.values import NonNegative, Number, Positive, Size, Tensor

_Numbers: TypeAlias = Annotated[tuple[Number, ...], Field(min_length=1, fail_fast=True)]
_Variances: TypeAlias = Annotated[tuple[Positive, ...], Field(min_length=1, fail_fast=True)]
_Factor: TypeAlias = Annotated[Number, Field(ge=-1, le=1)]
_Range: TypeAlias = tuple[_Factor, _Factor]
_Zoom: TypeAlias = Annotated[Number, Field(gt=-1, le=1)]
_FillMode: TypeAlias = Literal["constant", "nearest", "reflect", "wrap"]
_Interpolation: TypeAlias = Literal["nearest", "bilinear"]


class Rescaling(Layer):
    """inputs * scale + offset, each one number or one for each channel."""

    type: Literal["Rescaling"] = "Rescaling"
    scale: Number | _Numbers
    offset: Number | _Numbers = 0.0
    takes_integers: ClassVar = True

    def _effect(self, *given: Tensor) -> Effect:
        for name in ("scale", "offset"):
            _check_channels(name, getattr(self, name), given[0])
        return Effect(Tensor(given[0].shape))


class Normalization(Layer):
    """(inputs - mean) / sqrt(variance), each one number or one for each channel."""

    type: Literal["Normalization"] = "Normalization"
    mean: Number | _Numbers
    variance: Positive | _Variances
    invert: bool = False
    ranks: ClassVar = (1, 2, 3, 4)

    @model_validator(mode="after")
    def _alike(self) -> "Normalization":
        if isinstance(self.mean, tuple) != isinstance(self.variance, tuple):
            raise ValueError("mean and variance must both be numbers, or both lists")
        return self

    def _effect(self, *given: Tensor) -> Effect:
        for name in ("mean", "variance"):
            _check_channels(name, getattr(self, name), given[0])
        return Effect(Tensor(given[0].shape))


class Resizing(Layer):
    type: Literal["Resizing"] = "Resizing"
    height: Size
    width: Size
    interpolation: _Interpolation = "bilinear"
    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        return Effect(Tensor((self.height, self.width, given[0].shape[-1])))


class _Varying(Layer):
    ranks: ClassVar = (3,)

    def _effect(self, *given: Tensor) -> Effect:
        return Effect(Tensor(given[0].shape))


class RandomFlip(_Varying):
    type: Literal["RandomFlip"] = "RandomFlip"
    mode: Literal["horizontal", "vertical", "horizontal_and_vertical"] = "horizontal_and_vertical"


class _Moving(_Varying):
    fill_mode: _FillMode = "reflect"
    fill_value: Number = 0.0
    interpolation: _Interpolation = "bilinear"


class RandomTranslation(_Moving):
    type: Literal["RandomTranslation"] = "RandomTranslation"
    height_factor: _Factor | _Range
    width_factor: _Factor | _Range


class RandomRotation(_Moving):
    type: Literal["RandomRotation"] = "RandomRotation"
    factor: _Factor | _Range


class RandomZoom(_Moving):
    """By -1 nothing would be left of an image."""

    type: Literal["RandomZoom"] = "RandomZoom"
    height_factor: _Zoom | tuple[_Zoom, _Zoom]
    width_factor: _Zoom | tuple[_Zoom, _Zoom] | None = None


class RandomContrast(_Varying):
    type: Literal["RandomContrast"] = "RandomContrast"
    factor: Annotated[NonNegative, Field(lt=1)]
    value_range: tuple[Number, Number] = (0.0, 255.0)


def _check_channels(name: str, value: float | tuple[float, ...], given: Tensor) -> None:
    if isinstance(value, tuple) and (not given.rank or len(value) != given.shape[-1]):
        raise ValueError(f"{name} has {len(value)} numbers, which are not the channels of {given}")
