"""Short fixed programs that show a machine's bits: `python -m trainyard.engine.calibration JOB`.

They go through the same code as every run. A process has one number of threads, so there is one
process for each.
"""

import platform
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from trainyard.engine.environment import Environment
from trainyard.engine.events import Failed, tell
from trainyard.engine.processor import read_processor
from trainyard.engine.runtime import BEST, Numerics, start
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.data import Batch
    from trainyard.engine.order import Numbers

THREADS = (1, 2)
_RECORDS, _SIDE, _BATCH, _STEPS = 256, 20, 48, 3
# A manifest must name its data; these programs are handed theirs.
_NOWHERE = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
_SCALE = {"name": "scale", "type": "Rescaling", "scale": 1 / 255}
_OUT = {"name": "out", "type": "Dense", "units": 10}
# Wide enough that products are cut into blocks and shared by threads.
PROGRAMS: dict[str, tuple[list[dict[str, Any]], dict[str, Any]]] = {
    "convolution": (
        [
            _SCALE,
            {"name": "c1", "type": "Conv2D", "filters": 8, "kernel_size": 5, "activation": "relu"},
            {"name": "p1", "type": "AveragePooling2D"},
            {"name": "c2", "type": "Conv2D", "filters": 16, "kernel_size": 3, "activation": "tanh"},
            {"name": "flat", "type": "Flatten"},
            _OUT,
        ],
        {"type": "SGD", "learning_rate": 0.05, "momentum": 0.9},
    ),
    "product": (
        [
            _SCALE,
            {"name": "flat", "type": "Flatten"},
            {"name": "d1", "type": "Dense", "units": 600, "activation": "gelu"},
            {"name": "d2", "type": "Dense", "units": 500, "activation": "sigmoid"},
            _OUT,
        ],
        {"type": "Adam", "learning_rate": 0.001},
    ),
    "normalisation": (
        [
            _SCALE,
            {"name": "c1", "type": "Conv2D", "filters": 8, "kernel_size": 3, "use_bias": False},
            {"name": "norm", "type": "BatchNormalization"},
            {"name": "act", "type": "ReLU"},
            {"name": "pool", "type": "MaxPooling2D"},
            {"name": "flat", "type": "Flatten"},
            {"name": "drop", "type": "Dropout", "rate": 0.4},
            _OUT,
        ],
        {"type": "AdamW", "learning_rate": 0.001, "weight_decay": 0.01},
    ),
    "recurrence": (
        [
            _SCALE,
            {"name": "rows", "type": "Reshape", "target_shape": [_SIDE, _SIDE]},
            {"name": "lstm", "type": "LSTM", "units": 32},
            _OUT,
        ],
        {"type": "RMSprop", "learning_rate": 0.001},
    ),
}


class CalibrationJob(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    threads: int
    numerics: Numerics = BEST


class Calibrated(BaseModel):
    """What one process found."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    threads: int
    environment: Environment
    states: dict[str, str]


def describe(numerics: Numerics = BEST, threads: int = 1) -> Environment:
    """The environment of this process, which from now on computes with so many threads."""
    tf = start(threads, numerics)
    import keras
    from tensorflow.python.framework import config

    return Environment(
        tensorflow=tf.version.VERSION,
        tensorflow_build=tf.version.GIT_VERSION,
        compiler=tf.version.COMPILER_VERSION,
        keras=keras.__version__,
        numpy=np.__version__,
        libc=" ".join(platform.libc_ver()),
        processor=read_processor(),
        numerics=numerics,
        layout=keras.config.image_data_format(),
        deterministic=config.is_op_determinism_enabled(),
    )


def main() -> None:
    job = CalibrationJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    try:
        found = Calibrated(
            threads=job.threads,
            environment=describe(job.numerics, job.threads),
            states={name: _last_state(name, job.threads) for name in PROGRAMS},
        )
    except TrainyardError as error:
        tell(Failed(reason=str(error)))
        sys.exit(1)
    sys.stdout.write(found.model_dump_json() + "\n")


def manifest_of(name: str, threads: int) -> Manifest:
    layers, optimizer = PROGRAMS[name]
    shape = [_SIDE, _SIDE, 1]
    return Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": shape, "dtype": "uint8"}],
                "layers": layers,
                "outputs": ["out"],
            },
            "data": {
                "train": {
                    "kind": "npz",
                    "path": _NOWHERE,
                    "records": _RECORDS,
                    "features": {
                        "image": {"dtype": "uint8", "shape": shape},
                        "label": {"dtype": "int64", "shape": []},
                    },
                    "inputs": ["image"],
                    "target": "label",
                }
            },
            "training": {
                "mode": "single",
                "threads": threads,
                "batch": _BATCH,
                "until": {"steps": _STEPS},
                "steps_per_segment": _STEPS,
                "seed": 7,
                "optimizer": optimizer,
                "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
            },
        }
    )


class _Made:
    """Records by arithmetic, so that they are the same everywhere."""

    def rows(self, numbers: "Numbers") -> "Batch":
        pixels = numbers[:, None] * (_SIDE * _SIDE) + np.arange(_SIDE * _SIDE)
        bright = (pixels * 2654435761 >> 7) % 256
        return {
            "image": bright.astype(np.uint8).reshape(-1, _SIDE, _SIDE, 1),
            "label": (numbers * 7 % 10).astype(np.int64),
        }


def _last_state(name: str, threads: int) -> str:
    from trainyard.engine.data import Data
    from trainyard.engine.program import build
    from trainyard.engine.training import Material, Training

    manifest = manifest_of(name, threads)
    material = Material(Data(_RECORDS, _Made(), in_memory=True))
    training = Training(manifest, build(manifest), material)
    return training.run(0, training.start()).state.hash.hex()


if __name__ == "__main__":
    main()
