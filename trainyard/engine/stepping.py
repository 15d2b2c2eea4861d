"""One optimiser step, alone or shared by several workers, with the same bits on each of them.

A step of N workers is N parts, one for each slice of the batch, and one merge. A part starts from
the same variables as the others and gives one vector: gradients, moving statistics, sums of
metrics. The merge adds the vectors up in the order of slots. A cluster computes one part in each
process and hands the vectors round; whoever replays it computes all parts one after the other. Both
run the same two functions on the same values, so they get the same bits, for any N.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from trainyard.engine.figures import Sums
from trainyard.engine.pieces import Piece
from trainyard.engine.program import Program

# Random draws of a part: each seed has room for so many calls by a layer, and each first word of a
# seed for so many parts. Keras takes both words modulo 2^31 - 2.
_CALLS = 1 << 10
_PARTS = 1 << 20

Exchange = Callable[[Any], Any]
"""Gives all workers' vectors, in the order of slots, for one's own."""


class Stepper:
    """The two functions of a step, for one model, one batch size and one number of workers."""

    def __init__(self, program: Program, *, batch: int, workers: int) -> None:
        self._program = program
        self._workers = workers
        self._batch = batch
        model = program.model
        self._trained = list(model.trainable_variables)
        self._moving = _moving(model)
        weights = {id(variable) for variable in model.weights}
        self._seeds = [variable for variable in model.variables if id(variable) not in weights]
        self._first_words = [int(np.asarray(seed)[0]) for seed in self._seeds]
        self._alone = tf.function(self._step_alone, autograph=False)
        self._part = tf.function(self._compute_part, autograph=False)
        self._merge = tf.function(self._merge_parts, autograph=False)
        self._shared: Callable[..., Any] | None = None
        self._put_back = tf.function(self._assign_moving, autograph=False)

    def step(self, number: int, pieces: Sequence[Piece]) -> Sums:
        """Take step `number` of all workers here, one part after the other."""
        if self._workers == 1:
            return self._sums(self._alone(*self._arguments(number, 0, pieces[0])))
        before = [tf.identity(variable.value) for variable in self._moving]
        vectors = []
        for slot, piece in enumerate(pieces):
            if slot and before:
                self._put_back(before)
            vectors.append(self._part(*self._arguments(number, slot, piece)))
        return self._sums(self._merge(tf.stack(vectors)))

    def step_as(self, slot: int, number: int, piece: Piece, exchange: Exchange) -> Sums:
        """Take step `number` with the others, as the worker of `slot`."""
        if self._shared is None:
            # One call for all three: TensorFlow takes its time to be called.
            self._shared = tf.function(
                lambda *arguments: self._merge(exchange(self._part(*arguments))), autograph=False
            )
        return self._sums(self._shared(*self._arguments(number, slot, piece)))

    def seed_for(self, number: int) -> None:
        """Set all seeds to where step `number` starts, whoever computed the steps before."""
        for seed, first in zip(self._seeds, self._first_words, strict=True):
            seed.assign(_seed(first, number * self._workers))

    def _arguments(self, number: int, slot: int, piece: Piece) -> list[Any]:
        part = np.int64(number * self._workers + slot)
        return [
            tf.convert_to_tensor(part),
            [tf.convert_to_tensor(values) for values in piece.inputs],
            tf.convert_to_tensor(piece.target),
            tf.convert_to_tensor(piece.weight),
        ]

    def _gradients(self, part: Any, inputs: Any, target: Any, weight: Any) -> tuple[Any, Any]:
        for seed, first in zip(self._seeds, self._first_words, strict=True):
            seed.assign(_seed(first, part))
        program = self._program
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            for variable in self._trained:
                tape.watch(variable.value)
            predicted = program.model(program.as_inputs(inputs), training=True)
            weight = program.weigh(target, weight)
            losses = program.loss(target, predicted) * weight
            loss = tf.reduce_sum(losses) / self._batch
            regular = program.model.losses
            if regular:
                loss += tf.add_n(regular) / self._workers
        gradients = tape.gradient(
            loss,
            [variable.value for variable in self._trained],
            unconnected_gradients=tf.UnconnectedGradients.ZERO,
        )
        # Without weights, as Keras counts what it is given as `metrics`.
        counted = [tf.reduce_sum(metric(target, predicted)) for metric in program.metrics.values()]
        examples = tf.cast(tf.size(weight), tf.float32)
        return gradients, tf.stack([loss, *counted, examples])

    def _step_alone(self, part: Any, inputs: Any, target: Any, weight: Any) -> Any:
        gradients, sums = self._gradients(part, inputs, target, weight)
        self._program.optimizer.apply(gradients, self._trained)
        return sums

    def _compute_part(self, part: Any, inputs: Any, target: Any, weight: Any) -> Any:
        gradients, sums = self._gradients(part, inputs, target, weight)
        return self._joined(gradients, [variable.value for variable in self._moving], sums)

    def _joined(self, gradients: Any, moving: Any, sums: Any) -> Any:
        flat = [tf.reshape(tf.convert_to_tensor(value), [-1]) for value in (*gradients, *moving)]
        return tf.concat([*flat, sums], 0)

    def _parted(self, vector: Any) -> tuple[Any, Any, Any]:
        """Gradients, moving statistics and sums, of the vector that they were joined to."""
        shapes = [variable.shape for variable in (*self._trained, *self._moving)]
        sizes = [int(np.prod(shape, dtype=np.int64)) for shape in shapes]
        *flat, sums = tf.split(vector, [*sizes, vector.shape[0] - sum(sizes)])
        values = [tf.reshape(one, shape) for one, shape in zip(flat, shapes, strict=True)]
        return values[: len(self._trained)], values[len(self._trained) :], sums

    def _merge_parts(self, vectors: Any) -> Any:
        parts = tf.unstack(vectors, self._workers)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        gradients, moving, sums = self._parted(total)
        self._assign_moving([value / self._workers for value in moving])
        self._program.optimizer.apply(gradients, self._trained)
        return sums

    def _assign_moving(self, values: Any) -> None:
        for variable, value in zip(self._moving, values, strict=True):
            variable.assign(value)

    def _sums(self, values: Any) -> Sums:
        loss, *metrics, examples = (float(value) for value in values.numpy())
        return Sums(loss, tuple(metrics), examples)


def _moving(model: Any) -> list[Any]:
    """What steps change beside what is trained. Of a layer that is not trained they change nothing.

    To merge that too would change it: a third of three times a number may be another.
    """
    found = {
        id(variable)
        for layer in model.layers
        if layer.trainable
        for variable in layer.non_trainable_weights
    }
    return [
        variable
        for variable in model.non_trainable_weights
        if id(variable) in found and "float" in str(variable.dtype)
    ]


def _seed(first: int, part: Any) -> Any:
    """Both words of the seed that a layer draws by in `part`."""
    part = tf.convert_to_tensor(part, tf.int64)
    return tf.stack([first + part // _PARTS, part % _PARTS * _CALLS])
