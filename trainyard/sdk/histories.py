"""What `fit` returns, and how Keras callbacks hear of a run on the market.

TensorFlow is needed for this: it is imported by whoever has a model.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainyard.sdk.epochs import BatchDone, EpochBegun, EpochDone, Epochs, Point, Told
from trainyard.sdk.errors import NoTensorFlowError, RefusedError
from trainyard.sdk.receipts import Receipt
from trainyard.sdk.showing import Show, Silent, figures

try:
    import keras
except ImportError as error:
    raise NoTensorFlowError(error) from None


class History(keras.callbacks.History):  # type: ignore[misc]
    """Keras' own, with the number of the task, the steps that were taken, and the receipt of what
    was trained and paid.

    Figures of epochs are what the workers told while they trained. Where nobody could be asked for
    them (there is no page), those of validation are computed here, on the verified states at the
    ends of epochs; an epoch that ends within a segment has no such state, and NaN for a figure.
    """

    def __init__(self, task: int, receipt: Receipt | None = None) -> None:
        super().__init__()
        self.on_train_begin()
        self.task = task
        # That the run has taken: an optimiser may begin anew in it, and early stopping end it.
        self.steps = 0
        self._receipt = receipt

    @property
    def receipt(self) -> Receipt:
        """What was trained, checked and paid; `receipt.save(path)` for `trainyard verify`."""
        if self._receipt is None:
            raise AttributeError("there is a receipt when the task is settled")
        return self._receipt

    def close_with(self, receipt: Receipt, steps: int) -> None:
        self._receipt, self.steps = receipt, steps


class Calls:
    """Tells callbacks and whoever watches what points mean."""

    def __init__(
        self, model: Any, callbacks: Iterable[Any], history: History, epochs: Epochs
    ) -> None:
        self._epochs, self._model = epochs, model
        # Who watches, when there is something to see.
        self.show: Show = Silent()
        heard = [one for one in callbacks if not _is_early_stopping(one)]
        self._list = keras.callbacks.CallbackList(
            [*heard, history],
            add_history=False,
            add_progbar=False,
            model=model,
            verbose=0,
            epochs=epochs.count,
            steps=epochs.batches,
        )
        self._is_begun = False
        self._last: dict[str, float] = {}

    def begin(self) -> None:
        if not self._is_begun:
            self._is_begun = True
            self._model.stop_training = False
            self._list.on_train_begin()

    def take(self, points: Sequence[Point]) -> None:
        if points:
            self.begin()
        for told in self._epochs.take(points):
            self._tell(told)

    def finish(self, steps: int, tried: Mapping[int, dict[str, float]]) -> None:
        """The end: what is left to tell, with figures of validation that were computed here."""
        self.begin()
        # So that lists of figures go on in step with the epochs.
        unknown = dict.fromkeys((name for one in tried.values() for name in one), math.nan)
        for told in self._epochs.finish(steps, tried):
            if isinstance(told, EpochDone):
                told = EpochDone(told.epoch, {**unknown, **told.logs})
            self._tell(told)
        self._list.on_train_end(self._last)

    def _tell(self, told: Told) -> None:
        match told:
            case EpochBegun():
                self._list.on_epoch_begin(told.epoch)
            case BatchDone():
                self._list.on_train_batch_begin(told.batch)
                self._list.on_train_batch_end(told.batch, dict(told.logs))
                self.show.steps(told.step, told.logs)
            case EpochDone():
                self._last = told.logs
                self._list.on_epoch_end(told.epoch, dict(told.logs))
                self.show.say(f"epoch {told.epoch + 1}: {figures(told.logs) or 'not told'}")
        if self._model.stop_training:
            self._model.stop_training = False
            self.show.say(
                "a callback wants training to stop: that is with the workers, who go on; use "
                "keras.callbacks.EarlyStopping, which they know of"
            )


def listed(callbacks: Any) -> list[Any]:
    """Callbacks as Keras takes them: some, one alone, or none. RefusedError for anything else."""
    if callbacks is None or isinstance(callbacks, keras.callbacks.Callback):
        return [] if callbacks is None else [callbacks]
    if not isinstance(callbacks, Iterable):
        raise RefusedError(f"callbacks: {callbacks!r} is none of Keras'; give a list of them")
    found = list(callbacks)
    for one in found:
        if not isinstance(one, keras.callbacks.Callback):
            raise RefusedError(
                f"callbacks: {one!r} is none of Keras'; derive it from keras.callbacks.Callback"
            )
    return found


def _is_early_stopping(callback: Any) -> bool:
    return type(callback) is keras.callbacks.EarlyStopping
