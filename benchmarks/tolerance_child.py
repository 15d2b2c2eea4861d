"""Trajectories under one kind of numerics: `python -m benchmarks.tolerance_child JOB`.

One process has one number of threads and one kind of numerics, and computes all networks.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from trainyard.engine.runtime import Numerics, start
from trainyard.engine.state import State
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.data import Batch
    from trainyard.engine.order import Numbers
    from trainyard.engine.training import Training

LENGTHS = (1, 5, 10, 50, 100)
CHEATS = ("skipped", "rate", "order", "dropped")
_RECORDS, _SIDE, _BATCH = 4000, 20, 32
_NOWHERE = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
_SCALE = {"name": "scale", "type": "Rescaling", "scale": 1 / 255}
_FLAT = {"name": "flat", "type": "Flatten"}
_OUT = {"name": "out", "type": "Dense", "units": 10}
NETS: dict[str, list[dict[str, Any]]] = {
    "lenet": [
        _SCALE,
        {"name": "c1", "type": "Conv2D", "filters": 6, "kernel_size": 5, "activation": "relu"},
        {"name": "p1", "type": "AveragePooling2D"},
        {"name": "c2", "type": "Conv2D", "filters": 16, "kernel_size": 3, "activation": "relu"},
        _FLAT,
        {"name": "d1", "type": "Dense", "units": 120, "activation": "relu"},
        {"name": "d2", "type": "Dense", "units": 84, "activation": "relu"},
        _OUT,
    ],
    "mlp": [
        _SCALE,
        _FLAT,
        {"name": "d1", "type": "Dense", "units": 300, "activation": "relu"},
        {"name": "d2", "type": "Dense", "units": 100, "activation": "relu"},
        _OUT,
    ],
    "batch_norm": [
        _SCALE,
        {"name": "c1", "type": "Conv2D", "filters": 8, "kernel_size": 3, "use_bias": False},
        {"name": "norm", "type": "BatchNormalization"},
        {"name": "act", "type": "ReLU"},
        {"name": "pool", "type": "MaxPooling2D"},
        _FLAT,
        {"name": "drop", "type": "Dropout", "rate": 0.4},
        _OUT,
    ],
    "lstm": [
        _SCALE,
        {"name": "rows", "type": "Reshape", "target_shape": [_SIDE, _SIDE]},
        {"name": "lstm", "type": "LSTM", "units": 48},
        _OUT,
    ],
}
_OPTIMIZERS = (
    {"type": "Adam", "learning_rate": 0.001},
    {"type": "SGD", "learning_rate": 0.05, "momentum": 0.9},
    {"type": "RMSprop", "learning_rate": 0.001},
)


class Job(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    threads: int
    numerics: Numerics
    folder: Path
    seeds: tuple[int, ...]
    starts: tuple[int, ...]
    # Whether this one computes the states that all start from, and the cheats.
    leads: bool


def start_file(folder: Path, net: str, seed: int, first: int) -> Path:
    return folder / f"{net}-{seed}-{first}-start.safetensors"


def end_file(folder: Path, net: str, seed: int, first: int, length: int, who: str) -> Path:
    return folder / f"{net}-{seed}-{first}-{length}-{who}.safetensors"


class _Records:
    """Noisy pictures of ten patterns, by number; a cheat takes others than it is told."""

    def __init__(self) -> None:
        random = np.random.default_rng(5)
        labels = np.arange(_RECORDS) * 7 % 10
        patterns = random.integers(0, 256, (10, _SIDE, _SIDE, 1))
        noise = random.integers(0, 256, (_RECORDS, _SIDE, _SIDE, 1))
        self._images = ((patterns[labels] + 3 * noise) // 4).astype(np.uint8)
        self._labels = labels.astype(np.int64)
        self._shuffled = random.permutation(_RECORDS)
        self.cheat = ""

    def rows(self, numbers: "Numbers") -> "Batch":
        if self.cheat == "order":
            numbers = self._shuffled[numbers]
        if self.cheat == "dropped":
            numbers = numbers + (numbers % 10 == 0)
        return {"image": self._images[numbers], "label": self._labels[numbers]}


def main() -> None:
    job = Job.model_validate_json(Path(sys.argv[1]).read_bytes())
    start(job.threads, job.numerics)
    from trainyard.engine.data import Data
    from trainyard.engine.program import build
    from trainyard.engine.training import Material, Training

    for net in NETS:
        for seed in job.seeds:
            manifest = _manifest(net, seed, job)
            records = _Records()
            data = Data(_RECORDS, records, in_memory=True)
            training = Training(manifest, build(manifest), Material(data))
            if job.leads:
                _lead(training, job, net, seed)
            for first in job.starts:
                began = State.load(start_file(job.folder, net, seed, first))
                for cheat in ("", *CHEATS) if job.leads else ("",):
                    records.cheat = cheat

                    def end(length: int, who: str = cheat or job.name, first: int = first) -> Path:
                        return end_file(job.folder, net, seed, first, length, who)  # noqa: B023

                    _follow(training, began, first, cheat, end)


def _lead(training: "Training", job: Job, net: str, seed: int) -> None:
    """Train honestly up to each of the states that everybody starts from."""
    state = training.start()
    for step in range(max(job.starts) + 1):
        if step in job.starts:
            _write(state, start_file(job.folder, net, seed, step))
        if step < max(job.starts):
            state = training.run(step, state).state


def _follow(
    training: "Training", state: State, first: int, cheat: str, end: Callable[[int], Path]
) -> None:
    if cheat == "rate":
        state = _scaled(state, 1.1)
    for taken in range(max(LENGTHS)):
        if cheat == "skipped" and taken % 10 == 4:
            state = State({**state.tensors, "run/step": state.tensors["run/step"] + 1})
        else:
            state = training.run(first + taken, state).state
        if taken + 1 in LENGTHS:
            # Whoever cheats does not say so by a rate that can be read.
            _write(_scaled(state, 1 / 1.1) if cheat == "rate" else state, end(taken + 1))


def _scaled(state: State, factor: float) -> State:
    [name] = [name for name in state.tensors if name.endswith(".learning_rate")]
    return State({**state.tensors, name: (state.tensors[name] * factor).astype(np.float32)})


def _write(state: State, path: Path) -> None:
    path.write_bytes(b"".join(_bytes(state.parts())))


def _bytes(parts: Iterable[bytes | memoryview]) -> Iterable[bytes]:
    return (bytes(part) for part in parts)


def _manifest(net: str, seed: int, job: Job) -> Manifest:
    shape = [_SIDE, _SIDE, 1]
    return Manifest.of(
        {
            "version": 1,
            "model": {
                "inputs": [{"name": "image", "shape": shape, "dtype": "uint8"}],
                "layers": NETS[net],
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
                "threads": job.threads,
                "batch": _BATCH,
                "until": {"steps": max(job.starts) + max(LENGTHS)},
                "steps_per_segment": 1,
                "seed": seed,
                "optimizer": _OPTIMIZERS[seed % len(_OPTIMIZERS)],
                "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
            },
        }
    )


if __name__ == "__main__":
    main()
