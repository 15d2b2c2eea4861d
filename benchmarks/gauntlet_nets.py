"""Small networks on made-up records, which `benchmarks.gauntlet` trains in a moment."""

from pathlib import Path
from typing import Any

import numpy as np

from trainyard.protocol.manifest import Manifest

RECORDS, SIDE = 96, 12
# What a manifest must have; the files are handed over.
ADDRESS = "ipfs://bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
_SCALE = {"name": "scale", "type": "Rescaling", "scale": 1 / 255}
_OUT = {"name": "out", "type": "Dense", "units": 10}
NETS: dict[str, list[dict[str, Any]]] = {
    "mlp": [
        _SCALE,
        {"name": "flat", "type": "Flatten"},
        {"name": "d1", "type": "Dense", "units": 24, "activation": "relu"},
        _OUT,
    ],
    "cnn": [
        _SCALE,
        {"name": "c1", "type": "Conv2D", "filters": 4, "kernel_size": 5, "activation": "relu"},
        {"name": "p1", "type": "AveragePooling2D"},
        {"name": "flat", "type": "Flatten"},
        {"name": "drop", "type": "Dropout", "rate": 0.4},
        _OUT,
    ],
}


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(1)
    return {
        "image": rng.integers(0, 256, (RECORDS, SIDE, SIDE, 1), np.uint8),
        "label": rng.integers(0, 10, RECORDS).astype(np.int64),
    }


def write_records(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name, array in arrays().items():
        np.save(folder / f"{name}.npy", array)


def manifest_of(
    net: str,
    seed: int,
    segments: int,
    steps_per_segment: int,
    *,
    address: str = ADDRESS,
    workers: int = 1,
    local_steps: int | None = None,
) -> Manifest:
    shape = [SIDE, SIDE, 1]
    source = {
        "kind": "npz",
        "path": address,
        "records": RECORDS,
        "features": {
            "image": {"dtype": "uint8", "shape": shape},
            "label": {"dtype": "int64", "shape": []},
        },
        "inputs": ["image"],
        "target": "label",
    }
    training: dict[str, Any] = {
        "mode": "single" if workers == 1 else "sync",
        "workers": workers,
        "threads": 1,
        "batch": 16,
        "until": {"steps": segments * steps_per_segment},
        "steps_per_segment": steps_per_segment,
        "seed": seed,
        "optimizer": {"type": "Adam", "learning_rate": 0.01},
        "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
    }
    if local_steps is not None:
        del training["steps_per_segment"]
        training |= {"mode": "rounds", "rounds": {"local_steps": local_steps}}
    model = {
        "inputs": [{"name": "image", "shape": shape, "dtype": "uint8"}],
        "layers": NETS[net],
        "outputs": ["out"],
    }
    document = {"version": 1, "model": model, "data": {"train": source}, "training": training}
    return Manifest.of(document)
