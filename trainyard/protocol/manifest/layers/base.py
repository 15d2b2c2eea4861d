"""What every layer of a manifest has, and how it answers for shapes and parameters."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeAlias

from pydantic import Field

from trainyard.protocol.manifest.errors import MisfitError
from trainyard.protocol.manifest.parts import Constraint, MaxNorm, UnitNorm
from trainyard.protocol.manifest.values import INTEGERS, Name, Strict, Tensor

_MOST_SOURCES = 64
# The ranks of what a layer has under each name: several where it has several of one name, and none
# where it has none, as of a bias that is not used.
Ranks: TypeAlias = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class Effect:
    """What a layer makes of its inputs: its output, and the weights that it needs for that."""

    output: Tensor
    trainable: int = 0
    fixed: int = 0
    # Values held beside the output, such as scores of attention.
    scratch: int = 0


class Layer(Strict):
    """A layer by name. Fields are called as Keras calls them.

    `from` names the inputs, or earlier layers, that it reads; left out, it reads the one before.
    """

    least_sources: ClassVar[int] = 1
    most_sources: ClassVar[int] = 1
    takes_integers: ClassVar[bool] = False
    # Ranks of an example that the layer can take; empty for any.
    ranks: ClassVar[tuple[int, ...]] = ()
    # Whether it passes on which steps are padding (Embedding's mask_zero).
    passes_mask: ClassVar[bool] = False

    name: Name
    sources: Annotated[
        tuple[Name, ...] | None, Field(alias="from", min_length=1, max_length=_MOST_SOURCES)
    ] = None
    trainable: bool = True

    def effect(self, *given: Tensor) -> Effect:
        """Shapes and weights for these inputs; ValueError where they do not fit."""
        self._check_sources(given)
        self._check_parts(given)
        effect = self._effect(*given)
        if any(length < 1 for length in effect.output.shape):
            raise ValueError(
                f"nothing is left of {given[0]}: the output would be {effect.output}; "
                "use a smaller kernel, pool or stride, or padding 'same'"
            )
        if self.trainable:
            return effect
        return Effect(effect.output, 0, effect.trainable + effect.fixed, effect.scratch)

    @abstractmethod
    def _effect(self, *given: Tensor) -> Effect: ...

    def weight_ranks(self, *given: Tensor) -> Ranks:
        """Of the weights, by the names that their initialisers begin with."""
        return {}

    def _check_parts(self, given: tuple[Tensor, ...]) -> None:
        check_parts(self, self.weight_ranks(*given))

    def _check_sources(self, given: tuple[Tensor, ...]) -> None:
        if not self.least_sources <= len(given) <= self.most_sources:
            wanted = (
                str(self.least_sources)
                if self.least_sources == self.most_sources
                else f"{self.least_sources} to {self.most_sources}"
            )
            raise ValueError(f"takes {wanted} inputs, not {len(given)}")
        for tensor in given:
            if self.ranks and tensor.rank not in self.ranks:
                wanted = " or ".join(map(str, self.ranks))
                raise ValueError(f"takes examples of rank {wanted}, not {tensor}")
            if not self.takes_integers and (tensor.dtype in INTEGERS or tensor.dtype == "bool"):
                raise ValueError(f"takes float32, not {tensor}; put a Rescaling layer before it")


def check_parts(body: Strict, ranks: Ranks) -> None:
    """Refuse initialisers and constraints that Keras would not apply to weights of these ranks."""
    for field in type(body).model_fields:
        weight, _, kind = field.rpartition("_")
        if kind == "initializer":
            _check_start(getattr(body, field).type, weight, ranks[weight])
        elif kind == "constraint":
            _check_axes(getattr(body, field), weight, ranks[weight])


def _check_start(initializer: str, weight: str, ranks: tuple[int, ...]) -> None:
    for rank in ranks:
        if initializer == "Identity" and rank != 2:
            other, takes = "Orthogonal" if rank > 2 else "Ones", "a matrix"
        elif initializer == "Orthogonal" and rank < 2:
            other, takes = "RandomNormal", "a matrix or more"
        else:
            continue
        raise MisfitError(
            f"cannot begin with {initializer}, which is for {takes}: "
            f"the {weight} has rank {rank}; use {other}",
            f"{weight}_initializer",
        )


def _check_axes(constraint: Constraint | None, weight: str, ranks: tuple[int, ...]) -> None:
    if not ranks or not isinstance(constraint, MaxNorm | UnitNorm):
        return
    rank = min(ranks)
    axes = constraint.axis if isinstance(constraint.axis, tuple) else (constraint.axis,)
    beyond = [axis for axis in axes if axis >= rank]
    if beyond:
        raise MisfitError(
            f"has no axis {beyond[0]} in its {weight}, which has rank {rank}; "
            + (f"use axes below {rank}" if rank else "use NonNeg"),
            f"{weight}_constraint",
            "axis",
        )
