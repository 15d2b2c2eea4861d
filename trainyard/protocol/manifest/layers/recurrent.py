"""Recurrent layers, alone or running both ways."""

from abc import abstractmethod
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, field_validator

from trainyard.protocol.manifest.errors import MisfitError
from trainyard.protocol.manifest.layers.base import Effect, Layer, Ranks, check_parts
from trainyard.protocol.manifest.parts import (
    GLOROT_UNIFORM,
    ORTHOGONAL,
    ZEROS,
    ActivationName,
    Constraint,
    Initializer,
    Regularizer,
)
from trainyard.protocol.manifest.values import Share, Size, Strict, Tensor


class Recurrent(Strict):
    """What a recurrent layer is, apart from its name and place."""

    gates: ClassVar[int]

    units: Size
    activation: ActivationName = "tanh"
    use_bias: bool = True
    kernel_initializer: Initializer = GLOROT_UNIFORM
    recurrent_initializer: Initializer = ORTHOGONAL
    bias_initializer: Initializer = ZEROS
    kernel_regularizer: Regularizer | None = None
    recurrent_regularizer: Regularizer | None = None
    bias_regularizer: Regularizer | None = None
    kernel_constraint: Constraint | None = None
    recurrent_constraint: Constraint | None = None
    bias_constraint: Constraint | None = None
    dropout: Share = 0.0
    recurrent_dropout: Share = 0.0
    return_sequences: bool = False
    go_backwards: bool = False

    def weights(self, features: int) -> int:
        return self.gates * self.units * (features + self.units + self.biases)

    @property
    def biases(self) -> int:
        """Vectors of bias for each gate."""
        return int(self.use_bias)

    def weight_ranks(self, *given: Tensor) -> Ranks:
        bias = (2 if self.biases > 1 else 1,)
        return {"kernel": (2,), "recurrent": (2,), "bias": bias * self.use_bias}

    def output(self, given: Tensor, units: int) -> Tensor:
        steps, _ = given.shape
        return Tensor((steps, units) if self.return_sequences else (units,))

    def held(self, given: Tensor) -> int:
        """Values that training keeps for all steps, whether or not they are returned."""
        return given.shape[0] * self.units * (self.gates + 2)


class LstmBody(Recurrent):
    type: Literal["LSTM"] = "LSTM"
    recurrent_activation: ActivationName = "sigmoid"
    unit_forget_bias: bool = True

    gates: ClassVar = 4


class GruBody(Recurrent):
    type: Literal["GRU"] = "GRU"
    recurrent_activation: ActivationName = "sigmoid"
    reset_after: bool = True

    gates: ClassVar = 3

    @property
    def biases(self) -> int:
        return self.use_bias * (2 if self.reset_after else 1)


class SimpleRnnBody(Recurrent):
    type: Literal["SimpleRNN"] = "SimpleRNN"

    gates: ClassVar = 1


Body: TypeAlias = Annotated[LstmBody | GruBody | SimpleRnnBody, Field(discriminator="type")]


class _OneWay(Layer):
    ranks: ClassVar = (2,)

    @abstractmethod
    def weights(self, features: int) -> int: ...

    def _effect(self, *given: Tensor) -> Effect:
        assert isinstance(self, Recurrent)
        output = self.output(given[0], self.units)
        return Effect(output, self.weights(given[0].shape[-1]), scratch=self.held(given[0]))


class LSTM(LstmBody, _OneWay):
    """Long short-term memory."""


class GRU(GruBody, _OneWay):
    """Gated recurrent units."""


class SimpleRNN(SimpleRnnBody, _OneWay):
    """A recurrent layer without gates."""


class Bidirectional(Layer):
    """A recurrent layer and its twin that reads from the end; each has its own weights."""

    type: Literal["Bidirectional"] = "Bidirectional"
    layer: Body
    merge_mode: Literal["concat", "sum", "mul", "ave"] = "concat"

    ranks: ClassVar = (2,)

    @field_validator("layer")
    @classmethod
    def _forwards(cls, layer: Recurrent) -> Recurrent:
        if layer.go_backwards:
            raise ValueError("the layer inside must read forwards; its twin reads backwards")
        return layer

    def _check_parts(self, given: tuple[Tensor, ...]) -> None:
        try:
            check_parts(self.layer, self.layer.weight_ranks())
        except MisfitError as error:
            raise MisfitError(str(error), "layer", *error.path) from error

    def _effect(self, *given: Tensor) -> Effect:
        units = self.layer.units * (2 if self.merge_mode == "concat" else 1)
        weights = 2 * self.layer.weights(given[0].shape[-1])
        return Effect(
            self.layer.output(given[0], units), weights, scratch=2 * self.layer.held(given[0])
        )
