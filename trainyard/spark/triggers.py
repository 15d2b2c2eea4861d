"""When training ends, in the words of a manifest's `until`. Pure."""

from dataclasses import dataclass
from typing import Protocol

from trainyard.sdk.errors import RefusedError


class Trigger(Protocol):
    def until(self, done: int, records: int, batch: int) -> dict[str, int]:
        """`epochs` or `steps` that are left, when so many steps are done already."""
        ...


@dataclass(frozen=True, slots=True)
class MaxEpoch:
    """After so many passes over the records, those before a checkpoint counted."""

    epochs: int

    def __post_init__(self) -> None:
        _check("MaxEpoch", self.epochs)

    def until(self, done: int, records: int, batch: int) -> dict[str, int]:
        if not done:
            return {"epochs": self.epochs}
        return {"steps": _left(self, done, steps_of({"epochs": self.epochs}, records, batch))}


@dataclass(frozen=True, slots=True)
class MaxIteration:
    """After so many steps, those before a checkpoint counted."""

    steps: int

    def __post_init__(self) -> None:
        _check("MaxIteration", self.steps)

    def until(self, done: int, records: int, batch: int) -> dict[str, int]:
        return {"steps": _left(self, done, self.steps)}


def steps_of(until: dict[str, int], records: int, batch: int) -> int:
    """How many steps an `until` comes to, as a manifest's plan counts them."""
    return until["steps"] if "steps" in until else -(-until["epochs"] * records // batch)


def _check(name: str, count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise RefusedError(f"{name}({count!r}): give a whole number from one on")


def _left(trigger: Trigger, done: int, total: int) -> int:
    if total <= done:
        raise RefusedError(
            f"{trigger} is reached: {done} of {total} steps are done, so there is nothing to train"
        )
    return total - done
