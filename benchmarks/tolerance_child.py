"""Trajectories under one kind of numerics: `python -m benchmarks.tolerance_child JOB`.

One process has one number of threads and one kind of numerics, and computes all networks.
"""

import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from trainyard.engine.runtime import Numerics, start
from trainyard.engine.state import WEIGHTS, State
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.data import Batch
    from trainyard.engine.order import Numbers
    from trainyard.engine.training import Training

# Of the rate of the manifest.
_RATES = {"rate 1.1": 1.1, "rate 1.05": 1.05, "rate 1.01": 1.01}
# Of one tensor alone, which among all others weighs next to nothing.
_IN_A_TENSOR = {"tensor 1.05": 1.05, "tensor still": 0.0}
CHEATS = ("skipped", *_RATES, "order", "dropped", "one record", "frozen", *_IN_A_TENSOR)
# Of a cluster: the second worker sends what the first has found.
_IN_CLUSTERS = ("copied",)
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
    # As Keras has it by default. The normalisation takes the bias away again, so all that moves it
    # is rounding, which differs from machine to machine.
    "biased": [
        _SCALE,
        {"name": "c1", "type": "Conv2D", "filters": 8, "kernel_size": 3},
        {"name": "norm", "type": "BatchNormalization"},
        {"name": "act", "type": "ReLU"},
        {"name": "pool", "type": "MaxPooling2D"},
        _FLAT,
        _OUT,
    ],
    "lstm": [
        _SCALE,
        {"name": "rows", "type": "Reshape", "target_shape": [_SIDE, _SIDE]},
        {"name": "lstm", "type": "LSTM", "units": 48},
        _OUT,
    ],
}
# Those with the fewest weights: it is the hardest to see that they stood still.
_SMALLEST = {"lenet": "c1", "mlp": "out", "batch_norm": "norm", "biased": "norm", "lstm": "out"}
# The smallest tensor that is trained.
_TENSORS = {
    "lenet": "c1/bias",
    "mlp": "out/bias",
    "batch_norm": "norm/beta",
    "biased": "norm/beta",
    "lstm": "out/bias",
}
# A network, and how many workers train it. Of a cluster all parts are computed in one process.
CASES: dict[str, tuple[str, int]] = {
    **{net: (net, 1) for net in NETS},
    **{f"{net} of 2": (net, 2) for net in ("lenet", "batch_norm")},
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
    lengths: tuple[int, ...]
    # Whether this one computes the states that all start from, and the cheats.
    leads: bool


def cheats_of(case: str) -> tuple[str, ...]:
    return CHEATS + _IN_CLUSTERS * (CASES[case][1] > 1)


def start_file(folder: Path, case: str, seed: int, first: int) -> Path:
    return folder / f"{case}-{seed}-{first}-start.safetensors"


def end_file(folder: Path, case: str, seed: int, first: int, length: int, who: str) -> Path:
    return folder / f"{case}-{seed}-{first}-{length}-{who}.safetensors"


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
        if self.cheat == "one record":
            numbers = np.concatenate([numbers[:-1], numbers[:1]])
        if self.cheat == "copied":
            numbers = np.tile(numbers[: len(numbers) // 2], 2)
        return {"image": self._images[numbers], "label": self._labels[numbers]}


def main() -> None:
    job = Job.model_validate_json(Path(sys.argv[1]).read_bytes())
    start(job.threads, job.numerics)
    from trainyard.engine.data import Data
    from trainyard.engine.program import build
    from trainyard.engine.training import Material, Training

    for case in CASES:
        for seed in job.seeds:
            manifest = _manifest(case, seed, job)
            records = _Records()
            data = Data(_RECORDS, records, in_memory=True)
            training = Training(manifest, build(manifest), Material(data))
            if job.leads:
                _lead(training, job, case, seed)
            for first in job.starts:
                began = State.load(start_file(job.folder, case, seed, first))
                for cheat in ("", *cheats_of(case)) if job.leads else ("",):
                    records.cheat = cheat
                    path = partial(end_file, job.folder, case, seed, first)
                    frozen = _SMALLEST[CASES[case][0]] if cheat == "frozen" else None
                    tensor = WEIGHTS + _TENSORS[CASES[case][0]]
                    ends = _follow(training, began, first, job.lengths, cheat, frozen, tensor)
                    for length, state in ends:
                        _write(state, path(length, cheat or job.name))


def _lead(training: "Training", job: Job, case: str, seed: int) -> None:
    """Train honestly up to each of the states that everybody starts from."""
    state = training.start()
    for step in range(max(job.starts) + 1):
        if step in job.starts:
            _write(state, start_file(job.folder, case, seed, step))
        if step < max(job.starts):
            state = training.run(step, state).state


def _follow(
    training: "Training",
    state: State,
    first: int,
    lengths: tuple[int, ...],
    cheat: str,
    frozen: str | None,
    tensor: str,
) -> Iterator[tuple[int, State]]:
    """The ends of segments of `lengths`. Whoever cheats hides what can be read from a state."""
    before = state
    for taken in range(max(lengths)):
        if cheat == "skipped" and taken % 10 == 4:
            state = _counted_on(state)
        else:
            state = training.run(first + taken, state).state
            if cheat in _RATES:
                state = _faster(before, state, _RATES[cheat])
            if cheat in _IN_A_TENSOR:
                state = _faster(before, state, _IN_A_TENSOR[cheat], tensor)
            if frozen is not None:
                state = _without(before, state, frozen)
            before = state
        if taken + 1 in lengths:
            yield taken + 1, state


def _counted_on(state: State) -> State:
    """As if one more step had been taken."""
    counters = {
        name: one + 1
        for name, one in state.tensors.items()
        if name == "run/step" or name.endswith(".iteration")
    }
    return State({**state.tensors, **counters})


def _faster(before: State, after: State, rate: float, prefix: str = WEIGHTS) -> State:
    """As if the rate of the step had been so many times the manifest's, for weights of `prefix`.

    What the optimiser remembers stays as the manifest's rate makes it: that is the harder to see.
    """
    moved = {
        name: (one + np.float32(rate - 1) * (one - before.tensors[name])).astype(one.dtype)
        for name, one in after.tensors.items()
        if name.startswith(prefix) and "moving" not in name and one.dtype == np.float32
    }
    if not moved:
        raise ValueError(f"nothing of {prefix} was found to move")
    return State({**after.tensors, **moved})


def _without(before: State, after: State, layer: str) -> State:
    """As if `layer` were not trained: neither it nor what the optimiser remembers of it moves.

    Moving statistics do, for they cost nothing to find.
    """
    still = {
        name: before.tensors[name]
        for name in after.tensors
        if (name.startswith(f"{WEIGHTS}{layer}/") or f".{layer}_" in name) and "moving" not in name
    }
    if len(still) < 2:
        raise ValueError(f"nothing of {layer} was found to freeze")
    return State({**after.tensors, **still})


def _write(state: State, path: Path) -> None:
    path.write_bytes(b"".join(_bytes(state.parts())))


def _bytes(parts: Iterable[bytes | memoryview]) -> Iterable[bytes]:
    return (bytes(part) for part in parts)


def _manifest(case: str, seed: int, job: Job) -> Manifest:
    net, workers = CASES[case]
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
                "mode": "single" if workers == 1 else "sync",
                "workers": workers,
                "threads": job.threads,
                "batch": _BATCH,
                "until": {"steps": max(job.starts) + max(job.lengths)},
                "steps_per_segment": 1,
                "seed": seed,
                "optimizer": _OPTIMIZERS[seed % len(_OPTIMIZERS)],
                "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
            },
        }
    )


if __name__ == "__main__":
    main()
