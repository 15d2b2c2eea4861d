"""Comparison of two ends of one segment that were computed on unlike machines.

Bits differ there, and what is left to ask is how far apart two machines end, against how far the
segment went: |found - claimed| / |claimed - start|. Rounding makes a small part of the way; a step
that was left out makes a large one.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trainyard.engine.counting import RUN, Counters, Stop
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.scoring import LEAST_LOSS
from trainyard.engine.state import OPTIMIZER, OUTER, WEIGHTS, State, Tensor, is_of
from trainyard.protocol.manifest import Manifest

# By benchmarks/tolerance.py --quick, up to 10 steps, under Adam, SGD with momentum and RMSprop: the
# largest honest deviation was 0.0024, of a network with a bias that rounding moves (0.00003 of all
# others), and the least of a cheat 0.0070 (one small tensor that goes a twentieth too far; a
# learning rate that is a hundredth too high has 0.0077). Unlike processors were seen to differ by
# up to 0.0011; the threshold is between those.
DEFAULT_THRESHOLD = 0.005
# In steps. At 50 an honest LeNet was 0.45 away under momentum, and 0.064 under RMSprop, further
# than cheats, whose smallest was 0.050: no threshold is right there.
LONGEST_SEGMENT = 10
_MOVED = (WEIGHTS, OPTIMIZER, OUTER)
_BEST = RUN + "best"
# Of a tensor's length: how far apart two machines may draw the first weights. All that were tried
# drew the same bits, but how logarithms are rounded is up to a machine's libraries.
_ALIKE = 1e-5
# Numbers that differ by less than float32 can hold are the same to this comparison: weights that a
# segment hardly moves would else be compared by the rounding of their last bit.
_RESOLUTION = 2.0**-23
# How many times as far as all together a tensor may be apart by itself: a small one that nobody
# looks at would else be a cheat's own.
_ROOM = 6.0
# A tensor whose gradients are a smaller part than this of the largest ones is moved by rounding,
# such as the bias of a layer before a normalisation, which takes it away again. Adam makes whole
# steps of that. So it may be anywhere up to four times as far away as other weights went.
_ROUNDING, _ADRIFT = 1e-4, 4 / DEFAULT_THRESHOLD
_MOVING = ("/moving_mean", "/moving_variance")
# What optimisers of a manifest remember of gradients; the first of them in squares.
_SQUARED = "_velocity"
_OF_GRADIENTS = ("velocity", "velocity_hat", "momentum", "average_gradient")


@dataclass(frozen=True, slots=True)
class Deviation:
    """How far apart two ends are, as shares of the way from the start to the claimed one."""

    # All weights together that are trained.
    weights: float
    # What the optimiser remembers, which the next segment starts from.
    optimizer: float
    tensors: Mapping[str, float]
    # Names of what has to be the same anywhere: counters, seeds, shapes.
    unequal: tuple[str, ...]
    # Those of them that one state has and another has not, or has in another shape or kind.
    malformed: tuple[str, ...] = ()
    # What the outer optimiser of rounds remembers.
    outer: float = 0.0
    # The largest of single numbers, such as the learning rate: in a sum they would drown.
    scalars: float = 0.0
    # The largest of a tensor alone, with moving statistics, which are part of the model too.
    single: float = 0.0
    # The largest of those that rounding moves, as a share of how far the others went.
    adrift: float = 0.0

    @property
    def largest(self) -> float:
        """The one figure that is held against a threshold."""
        return math.inf if self.unequal else self.furthest

    @property
    def furthest(self) -> float:
        """The same of numbers alone, as if all was equal that has to be."""
        return max(
            *(self.weights, self.optimizer, self.outer, self.scalars),
            *(self.single / _ROOM, self.adrift / _ADRIFT),
        )


@dataclass(frozen=True, slots=True)
class Terms:
    """What the manifest says of a segment, and never the claim."""

    steps: int
    stops_early: bool = False
    # Layers that are not trained: what they have is the same anywhere, after however many steps.
    still: tuple[str, ...] = ()
    # How far apart the best figures of a validation may be, whatever they are. Of a share of
    # examples, one that lies on the border may fall to either side.
    slack: float = 0.0

    @classmethod
    def of(cls, manifest: Manifest, segment: int) -> "Terms":
        first, last = manifest.plan.bounds(segment)
        stops_early = manifest.training.early_stopping is not None
        return cls(last - first, stops_early, manifest.model.still, _slack(manifest))

    def is_still(self, name: str) -> bool:
        return is_of(name, self.still)


def _slack(manifest: Manifest) -> float:
    training = manifest.training
    stopping, validation = training.early_stopping, training.validation
    if stopping is None or validation is None:
        return 0.0
    if stopping.monitor.removeprefix("val_") not in training.shares:
        return LEAST_LOSS
    source = validation.source
    return 1 / (source.records if source else manifest.plan.held_out)


def deviation(start: State, claimed: State, found: State, terms: Terms) -> Deviation:
    """Compare what a worker claims a segment ends with, and what somebody else found."""
    names = sorted(start.tensors.keys() | claimed.tensors.keys() | found.tensors.keys())
    unequal: list[str] = []
    malformed: list[str] = []
    tensors: dict[str, _Way] = {}
    scalars: dict[str, float] = {}
    for name in names:
        three = [state.tensors.get(name) for state in (start, claimed, found)]
        forms = {None if one is None else (one.shape, one.dtype) for one in three}
        if len(forms) > 1:
            malformed.append(name)
            unequal.append(name)
        elif not _is_comparable(name, claimed, found, terms):
            unequal.append(name)
        elif name == _BEST:
            best, other = claimed.tensors[name].item(), found.tensors[name].item()
            scalars[name] = _apart(best, other, terms.slack)
        elif name.startswith(_MOVED) and _is_float(claimed.tensors[name]):
            way = _Way.of(name, start, claimed, found)
            if claimed.tensors[name].ndim:
                tensors[name] = way
            else:
                scalars[name] = way.deviation

    adrift = _moved_by_rounding(start, found, tensors)
    summed = {name: way for name, way in tensors.items() if name not in adrift}

    def together(prefix: str) -> float:
        return _together(
            way
            for name, way in summed.items()
            if name.startswith(prefix) and not name.endswith(_MOVING)
        )

    return Deviation(
        weights=together(WEIGHTS),
        optimizer=together(OPTIMIZER),
        outer=together(OUTER),
        scalars=max(scalars.values(), default=0.0),
        single=max((way.deviation for way in summed.values()), default=0.0),
        adrift=_adrift(adrift, tensors, start, found),
        tensors={**{name: way.deviation for name, way in tensors.items()}, **scalars},
        unequal=tuple(unequal),
        malformed=tuple(malformed),
    )


def within(
    start: State,
    claimed: State,
    found: State,
    terms: Terms,
    *,
    threshold: float = DEFAULT_THRESHOLD,
) -> bool:
    """Whether `claimed` may be what an honest machine of another class computed from `start`.

    Of a segment that is too long for a threshold, what has to be the same anywhere is compared
    still. RunError where no comparison can tell.
    """
    apart = deviation(start, claimed, found, terms)
    may_end_elsewhere = not apart.malformed and _may_end_elsewhere(start, claimed, found, terms)
    if terms.steps <= LONGEST_SEGMENT and not may_end_elsewhere:
        return apart.largest <= threshold
    if _is_proven(apart, claimed, terms, may_end_elsewhere):
        return False
    if may_end_elsewhere:
        raise RunError(
            "what ends a run was decided otherwise here, as on honest machines of unlike classes "
            "it may be where figures are close: no comparison can tell them"
        )
    raise RunError(
        f"the segment has {terms.steps} steps, and after more than {LONGEST_SEGMENT} honest "
        "machines of unlike classes are as far apart as cheats: no comparison can tell them"
    )


def begins_alike(claimed: State, found: State) -> bool:
    """Whether `claimed` may be the first state of a run on a machine of another class."""
    if claimed.tensors.keys() != found.tensors.keys():
        return False
    return all(_is_alike(name, claimed, found) for name in found.tensors)


def _is_alike(name: str, claimed: State, found: State) -> bool:
    one, other = claimed.tensors[name], found.tensors[name]
    if (one.shape, one.dtype) != (other.shape, other.dtype):
        return False
    if not name.startswith(WEIGHTS) or not _is_float(other):
        return one.tobytes() == other.tobytes()
    way = _Way.of(name, found, claimed, found)
    return way.apart <= way.length * _ALIKE**2


def _may_end_elsewhere(start: State, claimed: State, found: State, terms: Terms) -> bool:
    """Whether the run ends otherwise in what is claimed, as on an honest machine it may.

    A run diverges where its numbers overflow, and stops early by what was validated. After few
    steps an auditor's own numbers tell whether they were near to overflow: a claim excuses nothing.
    """
    try:
        before, one, other = (Counters.of(state) for state in (start, claimed, found))
    except StateError:
        return False
    if before.stop is not Stop.NO or _end(one) == _end(other):
        return False
    taken = one.step - before.step
    if not 0 <= taken <= terms.steps or (one.stop is Stop.NO and taken != terms.steps):
        # Nobody takes more than there are, and who goes on has taken all.
        return False
    if one.stop is Stop.EARLY and not terms.stops_early:
        return False
    is_long = terms.steps > LONGEST_SEGMENT
    diverged = other.stop is Stop.DIVERGED or (is_long and one.stop is Stop.DIVERGED)
    return diverged or (terms.stops_early and one.stop is not Stop.DIVERGED)


def _end(one: Counters) -> tuple[int, Stop, int]:
    return one.step, one.stop, one.waited


def _is_proven(apart: Deviation, claimed: State, terms: Terms, may_end_elsewhere: bool) -> bool:
    """Whether no honest machine can have `claimed`, however far its numbers strayed."""
    floats = {name: one for name, one in claimed.tensors.items() if _is_float(one)}
    if apart.malformed or any(name in floats and terms.is_still(name) for name in apart.unequal):
        return True
    # A run ends before that, as diverged.
    if not all(np.isfinite(one).all() for name, one in floats.items() if name.startswith(WEIGHTS)):
        return True
    # Whoever stopped elsewhere has counted and drawn otherwise.
    return bool(apart.unequal) and not may_end_elsewhere


def _moved_by_rounding(start: State, found: State, tensors: Iterable[str]) -> set[str]:
    """The weights whose gradients are next to nothing, and what the optimiser remembers of them.

    By what it remembers in the state that was found, never in the claimed one.
    """
    trained = [name for name in tensors if name.startswith(WEIGHTS) and not name.endswith(_MOVING)]
    memories = {name: _memories_of(name, found) for name in trained}
    sizes = {name: _gradient(name, memories[name], start, found) for name in trained}
    least = max(sizes.values(), default=0.0) * _ROUNDING
    still = [name for name, size in sizes.items() if size < least]
    return {*still, *(memory for name in still for memory in memories[name])}


def _memories_of(name: str, found: State) -> list[str]:
    """As Keras names them: by the path of the weight, and what they are."""
    own = f".{name.removeprefix(WEIGHTS).replace('/', '_')}_"
    return [
        memory
        for memory in found.tensors
        if memory.startswith(OPTIMIZER)
        and own in memory
        and memory.partition(own)[2] in _OF_GRADIENTS
    ]


def _gradient(name: str, memories: Sequence[str], start: State, found: State) -> float:
    """How large the gradients of a weight are, as far as one can tell; in the same unit for all."""
    for memory in memories:
        values = found.tensors[memory].astype(np.float64)
        if memory.endswith(_SQUARED):
            return math.sqrt(float(np.sum(np.abs(values))))
    for memory in memories:
        return math.sqrt(_square(found.tensors[memory].astype(np.float64)))
    # Plain descent remembers nothing, and goes as far as its gradients are large.
    moved = found.tensors[name].astype(np.float64) - start.tensors[name].astype(np.float64)
    return math.sqrt(_square(moved))


def _adrift(
    names: Iterable[str], tensors: Mapping[str, "_Way"], start: State, found: State
) -> float:
    """How far apart that is which rounding moves: weights each beside how far all others went.

    What the optimiser remembers of them is next to nothing beside what it remembers of others. How
    far others went, and what is remembered of them, is what was found: a claim could say anything.
    """
    adrift = set(names)
    others = {name: found.tensors[name] for name in tensors.keys() - adrift}
    went, count = 0.0, 0
    for name, tensor in others.items():
        if name.startswith(WEIGHTS) and not name.endswith(_MOVING):
            went += _square(tensor.astype(np.float64) - start.tensors[name].astype(np.float64))
            count += tensor.size
    furthest = 0.0
    for name in adrift:
        way = tensors[name]
        if not math.isfinite(way.apart):
            return math.inf
        if way.deviation == 0:
            continue
        if name.startswith(OPTIMIZER):
            kind = name.rpartition("_")[2]
            alike = (one for other, one in others.items() if other.endswith(kind))
            beside = sum(_square(one.astype(np.float64)) for one in alike) / _ADRIFT**2
        else:
            beside = way.count * went / count if count else 0.0
        furthest = max(furthest, math.sqrt(way.apart / beside) if beside else math.inf)
    return furthest


@dataclass(frozen=True, slots=True)
class _Way:
    """Squares of lengths: how far apart, how far it went, and how long the vector is."""

    apart: float
    went: float
    length: float
    # Of numbers.
    count: int = 0

    @classmethod
    def of(cls, name: str, start: State, claimed: State, found: State) -> "_Way":
        # In float64, where the squares of any float32 fit.
        began, ended, other = (
            state.tensors[name].astype(np.float64).ravel() for state in (start, claimed, found)
        )
        return cls(
            _square(other - ended), _square(ended - began), _square(ended), max(ended.size, 1)
        )

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


def _is_comparable(name: str, claimed: State, found: State, terms: Terms) -> bool:
    """Whether a tensor may differ at all, or is the same in both."""
    one, other = claimed.tensors[name], found.tensors[name]
    if not _is_float(one):
        return np.array_equal(one, other)
    if terms.is_still(name):
        return one.tobytes() == other.tobytes()
    if name == _BEST:
        # Without a number as long as nothing was validated.
        return bool(np.isnan(one).all() == np.isnan(other).all())
    return name.startswith(_MOVED) or one.tobytes() == other.tobytes()


def _apart(claimed: float, found: float, slack: float) -> float:
    """Two figures of a validation, which start nowhere: as a share of the claimed one."""
    if math.isnan(claimed) or claimed == found:
        return 0.0
    if not (math.isfinite(claimed) and math.isfinite(found)):
        return math.inf
    apart = abs(found - claimed) - slack
    if apart <= 0:
        return 0.0
    return apart / abs(claimed) if claimed else math.inf


def _square(vector: Tensor) -> float:
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.sum(vector * vector))


def _is_float(tensor: Tensor) -> bool:
    return np.issubdtype(tensor.dtype, np.floating)
