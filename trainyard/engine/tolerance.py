"""Comparison of two ends of one segment that were computed on unlike machines.

Bits differ there, and what is left to ask is how far apart two machines end, against how far the
segment went: |found - claimed| / |claimed - start|. Rounding makes a small part of the way; a step
that was left out makes a large one.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from trainyard.engine.counting import RUN
from trainyard.engine.errors import RunError
from trainyard.engine.state import OPTIMIZER, OUTER, WEIGHTS, State, Tensor

# By benchmarks/tolerance.py, up to 10 steps: the largest honest deviation was 0.0007, and the least
# of a cheat 0.0075 (a learning rate that is a hundredth too high; one that is a twentieth too high
# has 0.037). Unlike processors were seen to differ by up to 0.0011; the threshold is between those.
DEFAULT_THRESHOLD = 0.005
# In steps. At 50 an honest LeNet under momentum was 0.45 away, further than cheats, whose smallest
# was 0.050: no threshold is right there.
LONGEST_SEGMENT = 10
_MOVED = (WEIGHTS, OPTIMIZER, OUTER)
_STEP, _BEST = RUN + "step", RUN + "best"
# Numbers that differ by less than float32 can hold are the same to this comparison: weights that a
# segment hardly moves would else be compared by the rounding of their last bit.
_RESOLUTION = 2.0**-23


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far apart two ends are, as shares of the way from the start to the claimed one."""

    # All weights together, with the moving statistics among them: they are part of the model.
    weights: float
    # What the optimiser remembers, which the next segment starts from.
    optimizer: float
    tensors: Mapping[str, float]
    # Names of what has to be the same anywhere: counters, seeds, shapes.
    unequal: tuple[str, ...]
    # What the outer optimiser of rounds remembers.
    outer: float = 0.0
    # The largest of single numbers, such as the learning rate: in a sum they would drown.
    scalars: float = 0.0

    @property
    def largest(self) -> float:
        """The one figure that is held against a threshold."""
        if self.unequal:
            return math.inf
        return max(self.weights, self.optimizer, self.outer, self.scalars)


def deviation(start: State, claimed: State, found: State) -> Deviation:
    """Compare what a worker claims a segment ends with, and what somebody else found."""
    names = sorted(start.tensors.keys() | claimed.tensors.keys() | found.tensors.keys())
    unequal: list[str] = []
    tensors: dict[str, _Way] = {}
    scalars: dict[str, float] = {}
    for name in names:
        three = [state.tensors.get(name) for state in (start, claimed, found)]
        forms = {None if one is None else (one.shape, one.dtype) for one in three}
        if len(forms) > 1 or not _is_comparable(name, claimed, found):
            unequal.append(name)
        elif name == _BEST:
            scalars[name] = _apart(claimed.tensors[name].item(), found.tensors[name].item())
        elif name.startswith(_MOVED) and _is_float(claimed.tensors[name]):
            way = _Way.of(name, start, claimed, found)
            if claimed.tensors[name].ndim:
                tensors[name] = way
            else:
                scalars[name] = way.deviation

    def together(prefix: str) -> float:
        return _together(way for name, way in tensors.items() if name.startswith(prefix))

    return Deviation(
        weights=together(WEIGHTS),
        optimizer=together(OPTIMIZER),
        outer=together(OUTER),
        scalars=max(scalars.values(), default=0.0),
        tensors={**{name: way.deviation for name, way in tensors.items()}, **scalars},
        unequal=tuple(unequal),
    )


def within(
    start: State, claimed: State, found: State, threshold: float = DEFAULT_THRESHOLD
) -> bool:
    """Whether `claimed` may be what an honest machine of another class computed from `start`."""
    steps = _step(claimed) - _step(start)
    if steps > LONGEST_SEGMENT:
        raise RunError(
            f"the segment has {steps} steps, and after more than {LONGEST_SEGMENT} honest machines "
            "of unlike classes are as far apart as cheats: no comparison can tell them"
        )
    return deviation(start, claimed, found).largest <= threshold


@dataclass(frozen=True, slots=True)
class _Way:
    """Squares of lengths: how far apart, how far it went, and how long the vector is."""

    apart: float
    went: float
    length: float

    @classmethod
    def of(cls, name: str, start: State, claimed: State, found: State) -> "_Way":
        # In float64, where the squares of any float32 fit.
        began, ended, other = (
            state.tensors[name].astype(np.float64).ravel() for state in (start, claimed, found)
        )
        return cls(_square(other - ended), _square(ended - began), _square(ended))

    @property
    def deviation(self) -> float:
        if not (math.isfinite(self.apart) and math.isfinite(self.went)):
            return math.inf
        if self.apart <= self.length * _RESOLUTION**2:
            return 0.0
        return math.sqrt(self.apart / self.went) if self.went else math.inf


def _together(ways: Iterable[_Way]) -> float:
    apart = went = length = 0.0
    for way in ways:
        apart, went, length = apart + way.apart, went + way.went, length + way.length
    return _Way(apart, went, length).deviation


def _is_comparable(name: str, claimed: State, found: State) -> bool:
    """Whether a tensor may differ at all, or is the same in both."""
    one, other = claimed.tensors[name], found.tensors[name]
    if not _is_float(one):
        return np.array_equal(one, other)
    if name == _BEST:
        # Without a number as long as nothing was validated.
        return bool(np.isnan(one).all() == np.isnan(other).all())
    return name.startswith(_MOVED) or one.tobytes() == other.tobytes()


def _apart(claimed: float, found: float) -> float:
    """Two figures of a validation, which start nowhere: as a share of the claimed one."""
    if math.isnan(claimed) or claimed == found:
        return 0.0
    return abs(found - claimed) / abs(claimed) if claimed else math.inf


def _step(state: State) -> int:
    tensor = state.tensors.get(_STEP)
    return 0 if tensor is None or tensor.shape else int(tensor)


def _square(vector: Tensor) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.sum(vector * vector))


def _is_float(tensor: Tensor) -> bool:
    return np.issubdtype(tensor.dtype, np.floating)
