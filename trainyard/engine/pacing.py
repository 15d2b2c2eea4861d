"""How quickly this machine trains: `python -m trainyard.engine.pacing JOB` measures it.

A few steps of small networks, through the same code as every run. From these an estimate for any
network is made: what a step takes at least, and what each kind of layer computes in a second.
"""

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict, Field

from trainyard.engine.errors import RunError
from trainyard.engine.events import Failed, read_event, tell
from trainyard.engine.launching import processes
from trainyard.engine.runtime import start
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.data import Batch
    from trainyard.engine.order import Numbers

_FORM = ConfigDict(frozen=True, extra="forbid")
_NOWHERE = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
_SIDE, _BATCH, _RECORDS = 28, 64, 512
_STEPS, _SEGMENTS = 4, 10
_SCALE = {"name": "scale", "type": "Rescaling", "scale": 1 / 255}
_OUT = {"name": "out", "type": "Dense", "units": 10}
_FLAT = {"name": "flat", "type": "Flatten"}
# The first is next to nothing: what it takes is what any step takes.
PROGRAMS: dict[str, list[dict[str, Any]]] = {
    "least": [_SCALE, _FLAT, _OUT],
    "convolution": [
        _SCALE,
        {"name": "c1", "type": "Conv2D", "filters": 8, "kernel_size": 5, "activation": "relu"},
        {"name": "p1", "type": "MaxPooling2D"},
        {"name": "c2", "type": "Conv2D", "filters": 24, "kernel_size": 5, "activation": "relu"},
        {"name": "p2", "type": "MaxPooling2D"},
        _FLAT,
        _OUT,
    ],
    "product": [
        _SCALE,
        _FLAT,
        {"name": "d1", "type": "Dense", "units": 512, "activation": "relu"},
        {"name": "d2", "type": "Dense", "units": 256, "activation": "relu"},
        _OUT,
    ],
    "recurrence": [
        _SCALE,
        {"name": "rows", "type": "Reshape", "target_shape": [_SIDE, _SIDE]},
        {"name": "lstm", "type": "LSTM", "units": 48},
        _OUT,
    ],
}


class PacingJob(BaseModel):
    model_config = _FORM

    threads: int


class Paces(BaseModel):
    """Of one number of threads: seconds of a step of each program, and of getting ready."""

    model_config = _FORM

    threads: int
    start_s: float = Field(ge=0)
    step_s: dict[str, float]


def measure_paces(threads: int) -> Paces:
    """In a process of its own, which has TensorFlow."""
    with tempfile.TemporaryDirectory(prefix="trainyard-pacing-") as name:
        path = Path(name) / "job.json"
        path.write_text(PacingJob(threads=threads).model_dump_json())
        with processes("trainyard.engine.pacing", path, path.with_name("log")) as lines:
            for line in lines:
                if b'"event":"failed"' in line:
                    failure = read_event(line)
                    raise RunError(failure.reason if isinstance(failure, Failed) else "")
                return Paces.model_validate_json(line)
    raise RunError("the measurement of this machine's speed ended and said nothing")


def pacing_manifest(name: str, threads: int) -> Manifest:
    shape = [_SIDE, _SIDE, 1]
    features = {
        "image": {"dtype": "uint8", "shape": shape},
        "label": {"dtype": "int64", "shape": []},
    }
    return Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": shape, "dtype": "uint8"}],
                "layers": PROGRAMS[name],
                "outputs": ["out"],
            },
            "data": {
                "train": {
                    "kind": "npz",
                    "path": _NOWHERE,
                    "records": _RECORDS,
                    "features": features,
                    "inputs": ["image"],
                    "target": "label",
                }
            },
            "training": {
                "mode": "single",
                "threads": threads,
                "batch": _BATCH,
                "until": {"steps": _SEGMENTS * _STEPS},
                "steps_per_segment": _STEPS,
                "seed": 7,
                "optimizer": {"type": "Adam", "learning_rate": 0.001},
                "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
            },
        }
    )


class _Made:
    """Records that cost nothing to have."""

    def rows(self, numbers: "Numbers") -> "Batch":
        import numpy as np

        pixels = numbers[:, None] + np.arange(_SIDE * _SIDE)
        return {
            "image": (pixels % 256).astype(np.uint8).reshape(-1, _SIDE, _SIDE, 1),
            "label": (numbers * 7 % 10).astype(np.int64),
        }


def _step_s(name: str, threads: int) -> float:
    """The best of some segments: the first traces the network, and others disturb any of them."""
    from trainyard.engine.data import Data
    from trainyard.engine.program import build
    from trainyard.engine.training import Material, Training

    manifest = pacing_manifest(name, threads)
    material = Material(Data(_RECORDS, _Made(), in_memory=True))
    training = Training(manifest, build(manifest), material)
    outcome = training.run(0, training.start())
    taken = []
    for segment in range(1, _SEGMENTS):
        began = time.process_time()
        outcome = training.run(segment, outcome.state)
        # By what it used of the processor, if that is less: others may keep it busy now.
        used_s = time.process_time() - began
        share = outcome.train_s / (outcome.train_s + outcome.trace_s)
        taken.append(min(outcome.train_s, used_s * share) / _STEPS)
    return min(taken)


def main() -> None:
    job = PacingJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    try:
        start(job.threads)
        start_s = time.process_time()
        found = {name: _step_s(name, job.threads) for name in PROGRAMS}
    except TrainyardError as error:
        tell(Failed(reason=str(error)))
        sys.exit(1)
    paces = Paces(threads=job.threads, start_s=start_s, step_s=found)
    sys.stdout.write(paces.model_dump_json() + os.linesep)


if __name__ == "__main__":
    main()
