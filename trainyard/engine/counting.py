"""The part of a state that is no variable: how far the run is, and whether it is over."""

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from trainyard.engine.errors import StateError
from trainyard.engine.state import State, Tensor

RUN = "run/"


class Stop(IntEnum):
    """Why a run is over before its last step; segments after that change nothing."""

    NO = 0
    EARLY = 1
    DIVERGED = 2


@dataclass(slots=True)
class Counters:
    """Where a run is. `best` and `waited` are those of early stopping."""

    step: int = 0
    stop: Stop = Stop.NO
    best: float = math.nan
    waited: int = 0

    def tensors(self) -> dict[str, Tensor]:
        return {
            RUN + "step": np.asarray(self.step, np.int64),
            RUN + "stop": np.asarray(self.stop, np.int64),
            # One NaN of the many that there are.
            RUN + "best": np.asarray(math.nan if math.isnan(self.best) else self.best, np.float64),
            RUN + "waited": np.asarray(self.waited, np.int64),
        }

    @classmethod
    def of(cls, state: State) -> "Counters":
        expected = cls().tensors()
        for name, tensor in expected.items():
            found = state.tensors.get(name)
            if found is None or (found.dtype, found.shape) != (tensor.dtype, tensor.shape):
                raise StateError(f"the state has no {name}, or another kind of it")
        step, stop, best, waited = (state.tensors[name].item() for name in expected)
        if stop not in set(Stop):
            raise StateError(f"the state is stopped for reason {stop}, which no run has")
        return cls(step, Stop(stop), best, waited)

    def is_better(self, value: float, by: float, *, lower: bool) -> bool:
        """Whether `value` is better than the best so far by more than `by`."""
        if math.isnan(self.best):
            return True
        gain = self.best - value if lower else value - self.best
        return gain > by
