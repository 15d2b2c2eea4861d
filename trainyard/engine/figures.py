"""Loss and metrics, as means over examples."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sums:
    """What one step came to: the loss, each metric added up, and of how many examples."""

    loss: float
    metrics: tuple[float, ...]
    examples: float


@dataclass(frozen=True, slots=True)
class Figures:
    """What a segment or an evaluation came to."""

    loss: float
    metrics: dict[str, float]
    examples: int

    @classmethod
    def of_steps(cls, names: Iterable[str], steps: Sequence[Sums], batch: int) -> "Figures":
        """The means over the steps of a segment, which all have the same batch."""
        examples = sum(step.examples for step in steps) or 1.0
        added = [sum(values) for values in zip(*(step.metrics for step in steps), strict=True)]
        return cls(
            loss=sum(step.loss for step in steps) / len(steps),
            metrics=dict(zip(names, (value / examples for value in added), strict=True)),
            examples=batch * len(steps),
        )
