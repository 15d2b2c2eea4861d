"""Loss and metrics of predictions that are there already."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainyard.engine.objectives import loss_of, metric_of
from trainyard.protocol.manifest.objectives import Loss, Metric

_AT_ONCE = 1_000


def measure(
    loss: Loss, metrics: Sequence[Metric], targets: npt.NDArray[Any], predicted: npt.NDArray[Any]
) -> dict[str, float]:
    """The mean of each over all records. Regularisers are no part of this loss."""
    functions = {"loss": loss_of(loss)} | {one.title: metric_of(one) for one in metrics}
    sums = dict.fromkeys(functions, 0.0)
    for start in range(0, len(predicted), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        for name, function in functions.items():
            values = function(tf.convert_to_tensor(targets[part]), predicted[part])
            sums[name] += float(np.sum(np.asarray(values), dtype=np.float64))
    return {name: total / len(predicted) for name, total in sums.items()}
