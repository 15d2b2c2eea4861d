"""Mode `async`: workers that wait for nobody, and a leader who merges what they send as it comes.

A worker computes the part of a whole step from the weights as they are when it starts. Meanwhile
the parts of others are merged, so no two runs are alike and none can be replayed: states are there
to go on from, and the last one is scored. A part changes nothing. It is merged once, by the leader,
whichever worker it was that computed it at last.
"""

import math
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any

import keras
import tensorflow as tf

from trainyard.engine.addresses import Addresses
from trainyard.engine.figures import Sums
from trainyard.engine.parameter_server import Farm
from trainyard.engine.pieces import Piece
from trainyard.engine.program import Program, build
from trainyard.engine.state import State
from trainyard.engine.stepping import Stepper
from trainyard.engine.training import Material, Training
from trainyard.protocol.manifest import Manifest


class AsyncStepper(Stepper):
    """Parts from weights that are kept for all workers, and the merge of one part at a time."""

    def __init__(self, program: Program, farm: Farm, *, batch: int) -> None:
        super().__init__(program, batch=batch, workers=1)
        self._weights = list(program.model.weights)
        self._kept = farm.keep([variable.value for variable in self._weights])
        self.part = tf.function(self._compute_shift, autograph=False)
        self._take_in = tf.function(self._merge_shift, autograph=False)
        self.publish = tf.function(self._copy_weights, autograph=False)

    def arguments(self, number: int, piece: Piece) -> Sequence[Any]:
        """What `part` is called with for step `number`."""
        return self._arguments(number, 0, piece)

    def merge_one(self, vector: Any) -> Sums:
        """Take the step of a part. One whose loss is no number is left out."""
        figures = len(self._program.metrics) + 2
        sums = self._sums(vector[-figures:])
        if math.isfinite(sums.loss):
            self._take_in(vector)
        return sums

    def _compute_shift(self, part: Any, inputs: Any, target: Any, weight: Any) -> Any:
        """As other parts, of values; what it does to moving statistics comes as differences.

        INVARIANT: it reads no variable but those that are kept, and writes none.
        """
        values = [variable.read_value() for variable in self._kept]
        mapping = list(zip(self._weights, values, strict=True))
        with keras.StatelessScope(state_mapping=mapping, collect_losses=True):
            before = [variable.value for variable in self._moving]
            gradients, sums = self._gradients(part, inputs, target, weight)
            after = [variable.value for variable in self._moving]
        shifts = [new - old for new, old in zip(after, before, strict=True)]
        return self._joined(gradients, shifts, sums)

    def _merge_shift(self, vector: Any) -> None:
        """Others were merged since the part began, so its differences are added to theirs."""
        gradients, shifts, _ = self._parted(vector)
        for variable, shift in zip(self._moving, shifts, strict=True):
            variable.assign_add(shift)
        self._program.optimizer.apply(gradients, self._trained)
        self._copy_weights()

    def _copy_weights(self) -> None:
        for kept, variable in zip(self._kept, self._weights, strict=True):
            kept.assign(variable.value)


def open_async(manifest: Manifest, material: Material, addresses: Addresses) -> "AsyncTraining":
    """What computes the segments of a manifest with the workers at `addresses`."""
    # Before the program, whose first weights are computed.
    farm = Farm(addresses, manifest.training.threads)
    return AsyncTraining(manifest, build(manifest), material, farm)


class AsyncTraining(Training):
    """Computes segments with the workers of a farm. Its own variables are those of the run."""

    _stepper: AsyncStepper

    def __init__(
        self, manifest: Manifest, program: Program, material: Material, farm: Farm
    ) -> None:
        super().__init__(manifest, program, material)
        self._farm = farm
        self._stepper = AsyncStepper(program, farm, batch=self._batch)

    def _steps(self, first: int, last: int) -> Generator[tuple[int, Sums], None, None]:
        """Steps in the order in which they come to an end, and are counted."""
        self._stepper.publish()
        merged = first
        with closing(self._pieces(first, last, [0])) as all_pieces, self._farm.flock() as flock:
            for step, [piece] in enumerate(all_pieces, first):
                flock.send(self._stepper.part, self._stepper.arguments(step, piece))
                awaits_all = step == last - 1 or self._is_tried_after(step)
                while flock.is_full or (awaits_all and not flock.is_empty):
                    yield merged, self._stepper.merge_one(flock.receive())
                    merged += 1

    def _is_tried_after(self, step: int) -> bool:
        return self._validates and self._epoch_ended_by(step) is not None

    def _go_back(self, state: State, first: int, last: int) -> None:
        """There is nothing to undo: a step whose loss is no number was left out."""
