"""A manifest that predicts: what its model makes of its records, segment by segment.

A segment is some batches, in the order of the records, and its state is their predictions. Nothing
goes from one segment to the next, so whoever has the manifest can compute any of them. Batches are
cut at the same records whoever computes them, and with them the bits are the same.
"""

import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import tensorflow as tf

from trainyard.engine.counting import Counters, Stop
from trainyard.engine.data import Data, prefetch
from trainyard.engine.errors import RunError
from trainyard.engine.order import Numbers
from trainyard.engine.program import Network
from trainyard.engine.state import PREDICTIONS, State, Tensor
from trainyard.engine.training import OnStep, Outcome
from trainyard.engine.variables import assign, named_weights
from trainyard.protocol.manifest import Manifest, PredictPlan


class Predicting:
    """Computes segments, all of them with the weights that the manifest begins with."""

    def __init__(self, manifest: Manifest, network: Network, data: Data) -> None:
        if not isinstance(manifest.plan, PredictPlan):
            raise RunError("the manifest trains: it has nothing to predict")
        self.manifest, self._plan = manifest, manifest.plan
        self._network, self._data = network, data
        self._variables = named_weights(network)
        self._is_started = False
        self._source = manifest.data.train
        # One function for batches of all sizes: which size came first must not matter.
        features = (self._source.features[name].tensor for name in self._source.inputs)
        inputs = [tf.TensorSpec([None, *one.shape], one.dtype) for one in features]
        self._forward = tf.function(self._predict, autograph=False, input_signature=[inputs])

    def start(self, weights: State | None = None) -> State:
        """The state before the first segment: weights by the seed, or those of another state.

        To be called first, also where a run goes on.
        """
        if weights is not None:
            assign(self._variables, weights)
        self._is_started = True
        tensors = {name: np.asarray(one.value) for name, one in self._variables.items()}
        return State({**tensors, **Counters().tensors()})

    def run(self, segment: int, state: State, on_step: OnStep | None = None) -> Outcome:
        """Compute `segment`.

        INVARIANT: nothing is taken from `state`: the weights are those of the manifest.
        """
        if not self._is_started:
            raise RunError("a prediction begins with its weights, which nobody has given")
        first, last = self._plan.bounds(segment)
        began = time.perf_counter()
        with closing(prefetch(self._data, self._numbers(first, last))) as batches:
            rows: list[Tensor] = [self._rows(batch) for batch in batches]
        predicted = time.perf_counter()
        counters = Counters(step=last)
        state = State({PREDICTIONS: np.concatenate(rows), **counters.tensors()})
        return Outcome(
            segment=segment,
            state=state,
            figures=None,
            evaluations=(),
            stop=Stop.NO,
            train_s=predicted - began,
            trace_s=time.perf_counter() - predicted,
        )

    def _numbers(self, first: int, last: int) -> Iterator[Numbers]:
        for step in range(first, last):
            yield np.arange(*self._plan.records(step), dtype=np.int64)

    def _rows(self, batch: dict[str, Tensor]) -> Tensor:
        inputs = [tf.convert_to_tensor(batch[name]) for name in self._source.inputs]
        return np.asarray(self._forward(inputs))

    def _predict(self, inputs: Any) -> Any:
        network = self._network
        return network.model(network.as_inputs(inputs), training=False)
