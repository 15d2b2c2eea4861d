"""Optimisers and schedules of the learning rate, with fields called as Keras calls them."""

from itertools import pairwise
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from trainyard.protocol.manifest.values import NonNegative, Positive, Share, Steps, Strict

_Step: TypeAlias = Annotated[int, Field(ge=0, le=10**9)]


class ExponentialDecay(Strict):
    type: Literal["ExponentialDecay"] = "ExponentialDecay"
    initial_learning_rate: Positive
    decay_steps: Steps
    decay_rate: Positive
    staircase: bool = False


class InverseTimeDecay(Strict):
    type: Literal["InverseTimeDecay"] = "InverseTimeDecay"
    initial_learning_rate: Positive
    decay_steps: Steps
    decay_rate: Positive
    staircase: bool = False


class PolynomialDecay(Strict):
    type: Literal["PolynomialDecay"] = "PolynomialDecay"
    initial_learning_rate: Positive
    decay_steps: Steps
    end_learning_rate: NonNegative = 0.0001
    power: Positive = 1.0
    cycle: bool = False


class CosineDecay(Strict):
    """From `initial_learning_rate` up to `warmup_target` in `warmup_steps`, and then down."""

    type: Literal["CosineDecay"] = "CosineDecay"
    initial_learning_rate: NonNegative
    decay_steps: Steps
    alpha: NonNegative = 0.0
    warmup_target: Positive | None = None
    warmup_steps: _Step = 0

    @model_validator(mode="after")
    def _warms_up(self) -> "CosineDecay":
        if (self.warmup_target is None) != (self.warmup_steps == 0):
            raise ValueError("warmup_target and warmup_steps go together: give both or neither")
        if self.warmup_target is None and not self.initial_learning_rate:
            raise ValueError("the learning rate would be 0 throughout; give a warmup_target")
        return self


class PiecewiseConstantDecay(Strict):
    type: Literal["PiecewiseConstantDecay"] = "PiecewiseConstantDecay"
    boundaries: Annotated[tuple[Steps, ...], Field(min_length=1, max_length=1000)]
    values: Annotated[tuple[NonNegative, ...], Field(min_length=2, max_length=1001)]

    @model_validator(mode="after")
    def _in_order(self) -> "PiecewiseConstantDecay":
        if len(self.values) != len(self.boundaries) + 1:
            raise ValueError("there must be one value more than boundaries")
        if any(left >= right for left, right in pairwise(self.boundaries)):
            raise ValueError("boundaries must rise")
        return self


Schedule: TypeAlias = Annotated[
    ExponentialDecay | InverseTimeDecay | PolynomialDecay | CosineDecay | PiecewiseConstantDecay,
    Field(discriminator="type"),
]


class _Optimizer(Strict):
    clipnorm: Positive | None = None
    global_clipnorm: Positive | None = None
    clipvalue: Positive | None = None

    @model_validator(mode="after")
    def _clips_once(self) -> "_Optimizer":
        given = (self.clipnorm, self.global_clipnorm, self.clipvalue)
        if sum(value is not None for value in given) > 1:
            raise ValueError("give one of clipnorm, global_clipnorm and clipvalue")
        return self


class SGD(_Optimizer):
    type: Literal["SGD"] = "SGD"
    learning_rate: Positive | Schedule = 0.01
    momentum: Share = 0.0
    nesterov: bool = False

    @model_validator(mode="after")
    def _nesterov_needs_momentum(self) -> "SGD":
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov does nothing without momentum; give one, such as 0.9")
        return self


class Adam(_Optimizer):
    type: Literal["Adam"] = "Adam"
    learning_rate: Positive | Schedule = 0.001
    beta_1: Share = 0.9
    beta_2: Share = 0.999
    epsilon: Positive = 1e-7
    amsgrad: bool = False


class AdamW(_Optimizer):
    type: Literal["AdamW"] = "AdamW"
    learning_rate: Positive | Schedule = 0.001
    weight_decay: NonNegative = 0.004
    beta_1: Share = 0.9
    beta_2: Share = 0.999
    epsilon: Positive = 1e-7
    amsgrad: bool = False


class RMSprop(_Optimizer):
    type: Literal["RMSprop"] = "RMSprop"
    learning_rate: Positive | Schedule = 0.001
    rho: Share = 0.9
    momentum: Share = 0.0
    epsilon: Positive = 1e-7
    centered: bool = False


Optimizer: TypeAlias = Annotated[SGD | Adam | AdamW | RMSprop, Field(discriminator="type")]
