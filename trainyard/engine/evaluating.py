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
        self._measure: Any = None

    def evaluate(self, source: Source, data: Data, numbers: Iterable[Numbers]) -> Figures:
        total = np.zeros(len(self._program.metrics) + 2)
        examples = 0
        with closing(prefetch(data, numbers)) as batches:
            for batch in batches:
                piece = piece_of(source, batch)
                if self._measure is None:
                    self._measure = self._function(piece)
                sums = self._measure(list(piece.inputs), piece.target, piece.weight)
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

        signature = [[spec(one) for one in piece.inputs], spec(piece.target), spec(piece.weight)]
        return tf.function(self._sums, autograph=False, input_signature=signature)

    def _sums(self, inputs: Any, target: Any, weight: Any) -> Any:
        program = self._program
        predicted = program.model(program.as_inputs(inputs), training=False)
        losses = [program.loss(target, predicted)]
        measured = [metric(target, predicted) for metric in program.metrics.values()]
        return tf.stack(
            [tf.reduce_sum(one * weight) for one in (*losses, *measured)] + [tf.reduce_sum(weight)]
        )
