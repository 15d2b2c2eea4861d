"""TensorFlow, set up once in a process such that the same program gives the same bits."""

import os
import sys
from typing import Any

from trainyard.engine.errors import RunError

# Read by TensorFlow and Keras when they are imported.
_SETTINGS = {
    # A library of the machine's maker may change sums; the class says whether it is used.
    "TF_ENABLE_ONEDNN_OPTS": "1",
    "TF_DETERMINISTIC_OPS": "1",
    "CUDA_VISIBLE_DEVICES": "-1",
    "KERAS_BACKEND": "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_threads: int | None = None


def start(threads: int) -> Any:
    """Import TensorFlow for a run of so many threads an operation, and return it.

    Sums depend on how many threads share an operation, not on how many operations run at once.
    """
    global _threads
    if _threads is not None and _threads != threads:
        raise RunError(
            f"this process computes with {_threads} threads and cannot change to {threads}: "
            "run this manifest in a process of its own"
        )
    if _threads is None and "tensorflow" in sys.modules:
        # It has read its settings by then, and would compute other bits without a word.
        raise RunError(
            "TensorFlow was imported before it was set up: call this first, or use a process of "
            "its own"
        )
    os.environ.update(_SETTINGS)
    import tensorflow as tf

    if _threads is None:
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(1)
        tf.config.experimental.enable_op_determinism()
        _threads = threads
    return tf
