"""Losses and metrics. Each gives one number an example, so that sums over workers add up."""

import re
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from trainyard.protocol.manifest.values import (
    FLOATS,
    INTEGERS,
    Name,
    Number,
    Positive,
    Share,
    Size,
    Strict,
    Tensor,
)


class _Objective(Strict):
    """`sparse` ones compare a number of a class with one output for each class."""

    sparse: ClassVar[bool] = False

    def check(self, target: Tensor, output: Tensor) -> None:
        """ValueError where such targets cannot be compared with such outputs."""
        if output.dtype not in FLOATS or not output.rank:
            raise ValueError(f"compares vectors of float32, not {output}")
        if self.sparse:
            self._check_sparse(target, output)
        elif target.shape not in (output.shape, *_squeezed(output.shape)):
            raise ValueError(
                f"needs targets of shape {list(output.shape)} as the outputs have, not {target}"
                + self._hint(target)
            )

    def _check_sparse(self, target: Tensor, output: Tensor) -> None:
        classes = output.shape[-1]
        if classes < 2:
            raise ValueError(f"needs an output for each class, not {output}; BinaryCrossentropy?")
        if target.dtype not in INTEGERS:
            raise ValueError(f"needs integer targets, not {target}")
        if target.shape not in (output.shape[:-1], (*output.shape[:-1], 1)):
            raise ValueError(
                f"needs targets of shape {list(output.shape[:-1])} for outputs of shape "
                f"{list(output.shape)}, not {target}"
            )

    def _hint(self, target: Tensor) -> str:
        return "; for numbers of classes use the Sparse… one" if target.dtype in INTEGERS else ""


def _squeezed(shape: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return (shape[:-1],) if shape[-1] == 1 else ()


class SparseCategoricalCrossentropy(_Objective):
    type: Literal["SparseCategoricalCrossentropy"] = "SparseCategoricalCrossentropy"
    from_logits: bool = False
    sparse: ClassVar = True


class CategoricalCrossentropy(_Objective):
    type: Literal["CategoricalCrossentropy"] = "CategoricalCrossentropy"
    from_logits: bool = False
    label_smoothing: Share = 0.0


class BinaryCrossentropy(_Objective):
    type: Literal["BinaryCrossentropy"] = "BinaryCrossentropy"
    from_logits: bool = False
    label_smoothing: Share = 0.0


class MeanSquaredError(_Objective):
    type: Literal["MeanSquaredError"] = "MeanSquaredError"


class MeanAbsoluteError(_Objective):
    type: Literal["MeanAbsoluteError"] = "MeanAbsoluteError"


class Huber(_Objective):
    type: Literal["Huber"] = "Huber"
    delta: Positive = 1.0


class KLDivergence(_Objective):
    type: Literal["KLDivergence"] = "KLDivergence"


class LogCosh(_Objective):
    type: Literal["LogCosh"] = "LogCosh"


Loss: TypeAlias = Annotated[
    SparseCategoricalCrossentropy
    | CategoricalCrossentropy
    | BinaryCrossentropy
    | MeanSquaredError
    | MeanAbsoluteError
    | Huber
    | KLDivergence
    | LogCosh,
    Field(discriminator="type"),
]


# Losses whose targets say which class an example is of.
WITH_CLASSES = ("SparseCategoricalCrossentropy", "CategoricalCrossentropy", "BinaryCrossentropy")


class _Metric(_Objective):
    """Some count: of each example they say only whether it is right, so it counts whole."""

    name: Name | None = None
    counts: ClassVar[bool] = False

    @property
    def title(self) -> str:
        """The name in reports: the given one, or the type as Keras would write it."""
        if self.name:
            return self.name
        kind = str(getattr(self, "type"))  # noqa: B009 - the subclasses declare it
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).lower()


class SparseCategoricalAccuracy(_Metric):
    type: Literal["SparseCategoricalAccuracy"] = "SparseCategoricalAccuracy"
    counts: ClassVar = True
    sparse: ClassVar = True


class SparseTopKCategoricalAccuracy(_Metric):
    type: Literal["SparseTopKCategoricalAccuracy"] = "SparseTopKCategoricalAccuracy"
    k: Size = 5
    counts: ClassVar = True
    sparse: ClassVar = True


class CategoricalAccuracy(_Metric):
    type: Literal["CategoricalAccuracy"] = "CategoricalAccuracy"
    counts: ClassVar = True


class BinaryAccuracy(_Metric):
    """Outputs over `threshold` count as 1: 0.5 for probabilities, 0 for logits."""

    type: Literal["BinaryAccuracy"] = "BinaryAccuracy"
    threshold: Number = 0.5
    counts: ClassVar = True


class MeanSquaredErrorMetric(_Metric):
    type: Literal["MeanSquaredError"] = "MeanSquaredError"


class MeanAbsoluteErrorMetric(_Metric):
    type: Literal["MeanAbsoluteError"] = "MeanAbsoluteError"


Metric: TypeAlias = Annotated[
    SparseCategoricalAccuracy
    | SparseTopKCategoricalAccuracy
    | CategoricalAccuracy
    | BinaryAccuracy
    | MeanSquaredErrorMetric
    | MeanAbsoluteErrorMetric,
    Field(discriminator="type"),
]
