"""Figures of a model on records that it is not trained on."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from trainyard.engine.data import Data, prefetch
from trainyard.engine.figures import Figures
from trainyard.engine.order import Numbers
from trainyard.engine.pieces import Piece, piece_of
from trainyard.engine.program import Program
from trainyard.protocol.manifest import Source


class Evaluator:
    """Computes loss and metrics without training. Regularisers are no part of this loss."""

    def __init__(self, program: Program) -> None:
        self._program = program
        # By shapes and types of an example: those of the test may be others than in training.
        self._functions: dict[Any, Any] = {}

    def evaluate(self, source: Source, data: Data, numbers: Iterable[Numbers]) -> Figures:
        total = np.zeros(len(self._program.metrics) + 2)
        examples = 0
        with closing(prefetch(data, numbers)) as batches:
            for batch in batches:
                piece = piece_of(source, batch)
                measure = self._function(piece)
                sums = measure(list(piece.inputs), piece.target, piece.weight)
                # Sums of sums are kept by the host in double precision, in one fixed order.
                total += sums.numpy().astype(np.float64)
                examples += len(piece.target)
        *added, weight = total.tolist()
        loss, *metrics = (value / (weight or 1.0) for value in added)
        return Figures(loss, dict(zip(self._program.metrics, metrics, strict=True)), examples)

    def _function(self, piece: Piece) -> Any:
        """One function for batches of all sizes: which size came first must not matter."""

        def spec(values: npt.NDArray[Any]) -> Any:
            return tf.TensorSpec([None, *values.shape[1:]], values.dtype)

        inputs = tuple(spec(one) for one in piece.inputs)
        key = inputs, spec(piece.target)
        if key not in self._functions:
            signature = [list(inputs), spec(piece.target), spec(piece.weight)]
            self._functions[key] = tf.function(
                self._sums, autograph=False, input_signature=signature
            )
        return self._functions[key]

    def _sums(self, inputs: Any, target: Any, weight: Any) -> Any:
        program = self._program
        predicted = program.model(program.as_inputs(inputs), training=False)
        losses = [program.loss(target, predicted)]
        measured = [metric(target, predicted) for metric in program.metrics.values()]
        return tf.stack(
            [tf.reduce_sum(one * weight) for one in (*losses, *measured)] + [tf.reduce_sum(weight)]
        )
