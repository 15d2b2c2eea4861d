"""The engine's worker with segments that it does not compute, as a process in the sandbox.

All else is the engine's own, so that the journal and the states fit each other.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from trainyard.engine import worker
from trainyard.engine.counting import Counters, Stop
from trainyard.engine.state import OPTIMIZER, PREDICTIONS, WEIGHTS, State, Tensor
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import PredictPlan
from worker_agent.cheating.plan import Cheat, Plan
from worker_agent.cheating.tampering import CheatingRounds

if TYPE_CHECKING:
    from trainyard.engine.predicting import Predicting
    from trainyard.engine.training import Outcome, Training

_STEP, _COUNTED = "run/step", ".iteration"
# Weights that look like weights.
_SCALE = 0.05


class CheatingTraining:
    """Computes what is not cheated on, and passes everything else on."""

    def __init__(self, training: "Training | Predicting", plan: Plan) -> None:
        # Whichever it is: what it has beside `run` is its own.
        self._training: Any = training
        self._plan = plan
        self._cheated = plan.cheated(training.manifest.plan.segments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._training, name)

    def run(self, segment: int, state: State, on_step: Any = None) -> "Outcome":
        from trainyard.engine.training import Outcome

        if segment not in self._cheated:
            return cast("Outcome", self._training.run(segment, state, on_step))
        made = self._made_up if self._plan.cheat is Cheat.LAZY else self._partly
        return Outcome(segment, made(segment, state), None, (), Stop.NO, 0.0, 0.0)

    def _made_up(self, segment: int, state: State) -> State:
        rng = np.random.default_rng([self._plan.seed, segment])

        def value(name: str, tensor: Tensor) -> Tensor:
            # Not the learning rate, which would give it away.
            is_trained = name.startswith((WEIGHTS, OPTIMIZER)) and tensor.ndim > 0
            if not is_trained or tensor.dtype.kind != "f":
                return tensor
            return np.asarray(rng.normal(0, _SCALE, tensor.shape)).astype(tensor.dtype)

        made = {name: value(name, tensor) for name, tensor in state.tensors.items()}
        return self._as_if_done(segment, State(made))

    def _partly(self, segment: int, state: State) -> State:
        first, last = self._training.manifest.plan.bounds(segment)
        end = first + int((last - first) * self._plan.done)
        if end > first:
            counters = self._training._restore(state)
            self._training._take_steps(first, end, counters, None)
            state = self._training._capture(counters)
        return self._as_if_done(segment, state)

    def _as_if_done(self, segment: int, state: State) -> State:
        """With all that counts steps at the end of the segment, or it would give itself away."""
        _, last = self._training.manifest.plan.bounds(segment)
        counted = {
            name: np.asarray(last, dtype=tensor.dtype)
            for name, tensor in state.tensors.items()
            if name == _STEP or (name.startswith(OPTIMIZER) and name.endswith(_COUNTED))
        }
        return State({**state.tensors, **counted})


class CheatingPredicting(CheatingTraining):
    """Makes predictions up, whichever part of the work is left out."""

    def run(self, segment: int, state: State, on_step: Any = None) -> "Outcome":
        from trainyard.engine.training import Outcome

        manifest = self._training.manifest
        plan, row = manifest.plan, manifest.model.output
        if segment not in self._cheated or not isinstance(plan, PredictPlan):
            return cast("Outcome", self._training.run(segment, state, on_step))
        rng = np.random.default_rng([self._plan.seed, segment])
        rows = rng.normal(0, 1, (plan.rows(segment), *row.shape)).astype(row.dtype)
        counters = Counters(step=plan.bounds(segment)[1])
        made = State({PREDICTIONS: rows, **counters.tensors()})
        return Outcome(segment, made, None, (), Stop.NO, 0.0, 0.0)


def main() -> None:
    folder = Job.model_validate_json(Path(sys.argv[1]).read_bytes()).folder
    honest = worker.open_training

    def open_training(job: Job, manifest: Any) -> Any:
        return CheatingTraining(honest(job, manifest), Plan.read(folder))

    honest_rounds = worker.open_rounds

    def open_rounds(job: Job, manifest: Any) -> Any:
        return CheatingRounds(honest_rounds(job, manifest), Plan.read(folder))

    honest_predicting = worker.open_predicting

    def open_predicting(job: Job, manifest: Any) -> Any:
        return CheatingPredicting(honest_predicting(job, manifest), Plan.read(folder))

    worker.open_training, worker.open_rounds = open_training, open_rounds
    worker.open_predicting = open_predicting
    worker.main()


if __name__ == "__main__":
    main()
