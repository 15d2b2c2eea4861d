"""What a published run has predicted. No TensorFlow."""

import numpy as np

from trainyard.engine.errors import RunError, StateError
from trainyard.engine.evidence import Published
from trainyard.engine.state import PREDICTIONS, State, Tensor
from trainyard.protocol.manifest import PredictPlan


def read_predictions(run: Published) -> Tensor:
    """A row for each record, in their order; each state of it has the hash that its trace has.

    StateError for a run that has something else there: only what is drawn is recomputed, and of the
    rest a worker may have committed to anything.
    """
    plan, row = run.manifest.plan, run.manifest.model.output
    if not isinstance(plan, PredictPlan):
        raise RunError(f"{run.result} has trained, and predicted nothing")
    found = np.empty((plan.train_records, *row.shape), row.dtype)
    start = 0
    for segment in range(plan.segments):
        path = run.state(segment + 1)
        rows = State.load(path).tensors.get(PREDICTIONS)
        path.unlink()
        wanted = (plan.rows(segment), *row.shape)
        if rows is None or rows.shape != wanted or rows.dtype != found.dtype:
            raise StateError(f"segment {segment} has no predictions of its records")
        found[start : start + wanted[0]] = rows
        start += wanted[0]
    return found
