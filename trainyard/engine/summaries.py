"""A run as TensorBoard shows it."""

from pathlib import Path

import tensorflow as tf

from trainyard.engine.journal import Entry


class Summaries:
    """Scalars of each segment and evaluation, by step. A run that goes on adds to them."""

    def __init__(self, folder: Path) -> None:
        self._writer = tf.summary.create_file_writer(str(folder))

    def write(self, entry: Entry) -> None:
        with self._writer.as_default():
            if entry.trained is not None:
                self._scalars("", entry.trained.loss, entry.trained.metrics, entry.step)
                pace = entry.trained.examples / entry.train_s if entry.train_s else 0.0
                tf.summary.scalar("examples_per_s", pace, step=entry.step)
            if entry.energy is not None:
                tf.summary.scalar("energy_j_estimated", entry.energy.joules, step=entry.step)
            for one in entry.validated:
                self._scalars("val_", one.loss, one.metrics, one.step + 1)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()

    def _scalars(self, prefix: str, loss: float, metrics: dict[str, float], step: int) -> None:
        for name, value in {"loss": loss, **metrics}.items():
            tf.summary.scalar(prefix + name, value, step=step)
