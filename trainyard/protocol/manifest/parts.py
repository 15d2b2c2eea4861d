"""What layers are made with: activations, initialisers, regularisers, constraints.

No initialiser has a seed of its own: the engine derives one from the manifest's seed and the name
of the layer, so that the first weights are a function of the manifest.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from trainyard.protocol.manifest.values import NonNegative, Number, Positive, Strict

ActivationName: TypeAlias = Literal[
    "linear",
    "relu",
    "relu6",
    "leaky_relu",
    "elu",
    "selu",
    "celu",
    "gelu",
    "silu",
    "mish",
    "sigmoid",
    "hard_sigmoid",
    "hard_silu",
    "log_sigmoid",
    "tanh",
    "hard_tanh",
    "softmax",
    "log_softmax",
    "softplus",
    "softsign",
    "exponential",
]


class _Initializer(Strict):
    pass


class Zeros(_Initializer):
    type: Literal["Zeros"] = "Zeros"


class Ones(_Initializer):
    type: Literal["Ones"] = "Ones"


class Constant(_Initializer):
    type: Literal["Constant"] = "Constant"
    value: Number = 0.0


class Identity(_Initializer):
    type: Literal["Identity"] = "Identity"
    gain: Number = 1.0


class RandomNormal(_Initializer):
    type: Literal["RandomNormal"] = "RandomNormal"
    mean: Number = 0.0
    stddev: NonNegative = 0.05


class TruncatedNormal(_Initializer):
    type: Literal["TruncatedNormal"] = "TruncatedNormal"
    mean: Number = 0.0
    stddev: NonNegative = 0.05


class RandomUniform(_Initializer):
    type: Literal["RandomUniform"] = "RandomUniform"
    minval: Number = -0.05
    maxval: Number = 0.05


class VarianceScaling(_Initializer):
    type: Literal["VarianceScaling"] = "VarianceScaling"
    scale: Positive = 1.0
    mode: Literal["fan_in", "fan_out", "fan_avg"] = "fan_in"
    distribution: Literal["truncated_normal", "untruncated_normal", "uniform"] = "truncated_normal"


class GlorotUniform(_Initializer):
    type: Literal["GlorotUniform"] = "GlorotUniform"


class GlorotNormal(_Initializer):
    type: Literal["GlorotNormal"] = "GlorotNormal"


class HeUniform(_Initializer):
    type: Literal["HeUniform"] = "HeUniform"


class HeNormal(_Initializer):
    type: Literal["HeNormal"] = "HeNormal"


class LecunUniform(_Initializer):
    type: Literal["LecunUniform"] = "LecunUniform"


class LecunNormal(_Initializer):
    type: Literal["LecunNormal"] = "LecunNormal"


class Orthogonal(_Initializer):
    type: Literal["Orthogonal"] = "Orthogonal"
    gain: Number = 1.0


Initializer: TypeAlias = Annotated[
    Zeros
    | Ones
    | Constant
    | Identity
    | RandomNormal
    | TruncatedNormal
    | RandomUniform
    | VarianceScaling
    | GlorotUniform
    | GlorotNormal
    | HeUniform
    | HeNormal
    | LecunUniform
    | LecunNormal
    | Orthogonal,
    Field(discriminator="type"),
]


class L1(Strict):
    type: Literal["L1"] = "L1"
    l1: NonNegative = 0.01


class L2(Strict):
    type: Literal["L2"] = "L2"
    l2: NonNegative = 0.01


class L1L2(Strict):
    type: Literal["L1L2"] = "L1L2"
    l1: NonNegative = 0.0
    l2: NonNegative = 0.0


Regularizer: TypeAlias = Annotated[L1 | L2 | L1L2, Field(discriminator="type")]

# An axis of a weight, not of a batch; no weight has more.
_WeightAxis: TypeAlias = Annotated[int, Field(ge=0, le=3)]


def _check_once(axes: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(axes)) < len(axes):
        raise ValueError(f"an axis is named twice in {list(axes)[:5]}; name each one once")
    return axes


_WeightAxes: TypeAlias = (
    _WeightAxis | Annotated[tuple[_WeightAxis, ...], AfterValidator(_check_once)]
)


class NonNeg(Strict):
    type: Literal["NonNeg"] = "NonNeg"


class MaxNorm(Strict):
    type: Literal["MaxNorm"] = "MaxNorm"
    max_value: Positive = 2.0
    axis: _WeightAxes = 0


class UnitNorm(Strict):
    type: Literal["UnitNorm"] = "UnitNorm"
    axis: _WeightAxes = 0


Constraint: TypeAlias = Annotated[NonNeg | MaxNorm | UnitNorm, Field(discriminator="type")]

ZEROS = Zeros()
ONES = Ones()
GLOROT_UNIFORM = GlorotUniform()
ORTHOGONAL = Orthogonal()
