"""What a round leaves in the trace for each worker: what it keeps for its next one, or its absence.

A worker that is not there has a state all the same, which says only that, and why. Anybody can make
it, so its hash in a trace is enough to know it by.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache

import numpy as np

from trainyard.engine.counting import RUN, Counters
from trainyard.engine.errors import StateError
from trainyard.engine.state import State, Tensor
from trainyard.protocol.manifest import Local, RoundsPlan

_DELTA, _ABSENT = RUN + "delta", RUN + "absent"
# What each worker that sent a delta keeps beside its variables.
COUNTED = frozenset({*Counters().tensors(), _DELTA})


class Absence(IntEnum):
    """Why a merge leaves a worker out."""

    # Not there when the round began, or lost in it.
    AWAY = 1
    # There, but not done by the deadline.
    LATE = 2
    # Its loss or its weights are no numbers. Whoever computes its part finds the same.
    DIVERGED = 3
    # The run was over before the round.
    OVER = 4

    @property
    def is_told(self) -> bool:
        """Whether it is not found by computing, but has to be told."""
        return self in (Absence.AWAY, Absence.LATE)


def absent(counters: Counters, why: Absence) -> State:
    return State({**counters.tensors(), _ABSENT: np.asarray(why, np.int64)})


def absent_in(plan: RoundsPlan, segment: int, why: Absence) -> State:
    """The state of a worker that was not in the round of `segment`."""
    return absent(Counters(step=plan.bounds(segment)[1]), why)


def kept(tensors: Mapping[str, Tensor], counters: Counters, delta: State) -> State:
    """The state of a worker that sent `delta`, and keeps `tensors` for its next round."""
    digest = np.frombuffer(delta.hash, np.uint8)
    return State({**tensors, **counters.tensors(), _DELTA: digest})


def absence_of(leaf: State) -> Absence | None:
    tensor = leaf.tensors.get(_ABSENT)
    if tensor is None:
        return None
    if (tensor.dtype, tensor.shape) != (np.dtype(np.int64), ()) or tensor.item() not in set(
        Absence
    ):
        raise StateError("the state tells of an absence that no round knows")
    return Absence(tensor.item())


def delta_of(leaf: State) -> bytes | None:
    """The hash of the delta that the worker sent; None if it was absent."""
    if absence_of(leaf) is not None:
        return None
    tensor = leaf.tensors.get(_DELTA)
    if tensor is None or (tensor.dtype, tensor.shape) != (np.dtype(np.uint8), (32,)):
        raise StateError("the state names no delta: it is not what a worker keeps of a round")
    return tensor.tobytes()


class Absences:
    """The numbers of the states of a trace that are absences, other than after the run's end."""

    def __init__(self, plan: RoundsPlan, states: Sequence[str]) -> None:
        self._plan, self._states = plan, states

    def __contains__(self, number: object) -> bool:
        return isinstance(number, int) and self.why(number) is not None

    def why(self, number: int) -> Absence | None:
        is_known = 0 < number < len(self._states)
        if not is_known or not isinstance(self._plan.part(number - 1), Local):
            return None
        for why in (Absence.AWAY, Absence.LATE, Absence.DIVERGED):
            if _absent_hash(self._plan.bounds(number - 1)[1], why) == self._states[number]:
                return why
        return None


@lru_cache(maxsize=1 << 16)
def _absent_hash(step: int, why: Absence) -> str:
    """Each part of a worker asks for those of all rounds since it was there."""
    return absent(Counters(step=step), why).hash.hex()
