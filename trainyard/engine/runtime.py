"""TensorFlow, set up once in a process such that the same program gives the same bits."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from trainyard.engine.errors import RunError

# Read by TensorFlow and Keras when they are imported.
_SETTINGS = {
    "TF_DETERMINISTIC_OPS": "1",
    "CUDA_VISIBLE_DEVICES": "-1",
    "KERAS_BACKEND": "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
# What a user has set for other programs and what would change sums here: instructions and
# precision of oneDNN, and a compiler that fuses operations.
_CLEARED = ("ONEDNN_", "DNNL_", "TF_XLA_FLAGS", "XLA_FLAGS")

# What Keras imports where it is installed, for notebooks and tables: a fifth of the time to start.
_UNUSED = ("IPython", "pandas")


class Numerics(BaseModel):
    """How sums are computed, of all that a machine has to offer.

    Runs use what is best, which is the default; the rest stands in for other machines.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    # Whether operations use oneDNN. Products of matrices do in either case.
    onednn: bool = True
    # The newest instructions that oneDNN may use; all that there are if not given.
    newest_instructions: Literal["SSE41", "AVX", "AVX2"] | None = None


BEST = Numerics()
_started: tuple[int, Numerics] | None = None


def start(threads: int, numerics: Numerics = BEST) -> Any:
    """Import TensorFlow for a run of so many threads an operation, and return it.

    Sums depend on how many threads share an operation, not on how many operations run at once.
    """
    global _started
    if _started is not None and _started != (threads, numerics):
        raise RunError(
            f"this process computes with {_started[0]} threads and cannot change to {threads}: "
            "run this manifest in a process of its own"
        )
    if _started is None:
        _set_up(numerics)
    with _without(_UNUSED):
        import tensorflow as tf

    if _started is None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        tf.config.experimental.enable_op_determinism()
        _started = threads, numerics
    return tf


@contextmanager
def _without(names: Sequence[str]) -> Iterator[None]:
    """As if these packages were not installed."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in hidden:
            del sys.modules[name]


def _set_up(numerics: Numerics) -> None:
    if "tensorflow" in sys.modules:
        # It has read its settings by then, and would compute other bits without a word.
        raise RunError(
            "TensorFlow was imported before it was set up: call this first, or use a process of "
            "its own"
        )
    for name in [name for name in os.environ if name.startswith(_CLEARED)]:
        del os.environ[name]
    os.environ.update(_SETTINGS, TF_ENABLE_ONEDNN_OPTS="1" if numerics.onednn else "0")
    if numerics.newest_instructions is not None:
        os.environ["ONEDNN_MAX_CPU_ISA"] = numerics.newest_instructions
