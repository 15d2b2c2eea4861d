"""Figures of training as files that TensorBoard shows."""

from pathlib import Path
from typing import Any

import keras

from trainyard.engine.summaries import Summaries


class TrainSummary:
    """A folder of TensorBoard's: `log_dir`/`app_name`/train."""

    def __init__(self, log_dir: Path | str, app_name: str) -> None:
        self.folder = Path(log_dir).expanduser() / app_name / "train"


class Scribe(keras.callbacks.Callback):  # type: ignore[misc]
    """Writes down what the workers tell, at the step that they tell it of."""

    def __init__(
        self, summary: TrainSummary, *, first: int, last: int, records: int, batch: int
    ) -> None:
        super().__init__()
        self._summaries = Summaries(summary.folder)
        # What was trained before counts on: a resumed run is one curve.
        self._first, self._last = first, last
        self._records, self._batch = records, batch
        self._epoch = 0
        self._step: int | None = None

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch, self._step = epoch, None

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self._step = self._first + self._epoch * self._records // self._batch + batch + 1
        self._add(self._step, logs or {})

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        ended = self._first + -(-(epoch + 1) * self._records // self._batch)
        # The last epoch may be a short one.
        ended = min(ended, self._last)
        given: dict[str, float] = logs or {}
        told = self._step is not None
        self._add(ended, {name: one for name, one in given.items() if name[:4] == "val_"})
        if not told:
            # Of this epoch nothing but its means is known.
            self._add(ended, {name: one for name, one in given.items() if name[:4] != "val_"})

    def _add(self, step: int, logs: dict[str, float]) -> None:
        self._summaries.add((step, name, float(value)) for name, value in logs.items())
