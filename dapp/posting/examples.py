"""Examples that anyone can post at once: small networks on data that is made here."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dapp.errors import not_found
from dapp.schemas.market import Examples, ExampleTask
from dapp.services import Services
from trainyard.datasets import add_arrays
from trainyard.protocol.manifest import Manifest

Arrays = dict[str, npt.NDArray[Any]]
_PLACEHOLDER = "bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku"
_TITLES = {
    "moons": (
        "Two moons",
        "A small dense network that tells two interleaved half circles apart: done in seconds.",
    ),
    "stripes": (
        "Stripes",
        "A convolutional network that tells the direction of stripes in noisy 16 by 16 images.",
    ),
}


def examples() -> Examples:
    return Examples(items=[_example(name, None) for name in _TITLES])


def add_example(services: Services, name: str) -> ExampleTask:
    """Put the example's data into the store."""
    if name not in _TITLES:
        raise not_found(f"there is no example {name[:40]!r}; there are {', '.join(_TITLES)}")
    made = {part: _arrays(name, part) for part in ("train", "test")}
    cids = {part: str(add_arrays(services.content, one).cid) for part, one in made.items()}
    return _example(name, cids)


def _example(name: str, cids: dict[str, str] | None) -> ExampleTask:
    document = _document(name, cids or {"train": _PLACEHOLDER, "test": _PLACEHOLDER})
    manifest = Manifest.of(document)
    title, about = _TITLES[name]
    return ExampleTask(
        name=name,
        title=title,
        about=about,
        manifest=document,
        records=manifest.data.train.records,
        parameters=manifest.model.parameters,
        data_cid=None if cids is None else cids["train"],
    )


def _document(name: str, cids: dict[str, str]) -> dict[str, Any]:
    records = {"train": 4_000, "test": 1_000}
    if name == "moons":
        feature, shape, dtype = "point", [2], "float32"
        layers: list[dict[str, Any]] = [
            {"name": "hidden1", "type": "Dense", "units": 32, "activation": "relu"},
            {"name": "hidden2", "type": "Dense", "units": 32, "activation": "relu"},
        ]
    else:
        feature, shape, dtype = "image", [16, 16, 1], "uint8"
        layers = [
            {"name": "scale", "type": "Rescaling", "scale": 1 / 255},
            {
                "name": "conv",
                "type": "Conv2D",
                "filters": 8,
                "kernel_size": 3,
                "activation": "relu",
            },
            {"name": "pool", "type": "MaxPooling2D"},
            {"name": "flat", "type": "Flatten"},
            {"name": "hidden", "type": "Dense", "units": 32, "activation": "relu"},
        ]
    classes = 2 if name == "moons" else 4
    return {
        "version": 1,
        "model": {
            "inputs": [{"name": feature, "shape": shape, "dtype": dtype}],
            "layers": [*layers, {"name": "out", "type": "Dense", "units": classes}],
            "outputs": ["out"],
        },
        "data": {
            part: {
                "kind": "npz",
                "path": f"ipfs://{cids[part]}",
                "records": records[part],
                "features": {
                    feature: {"dtype": dtype, "shape": shape},
                    "label": {"dtype": "int32", "shape": []},
                },
                "inputs": [feature],
                "target": "label",
            }
            for part in ("train", "test")
        },
        "training": {
            "mode": "single",
            "workers": 1,
            "batch": 64,
            "until": {"epochs": 5},
            "steps_per_segment": 25,
            "seed": 1,
            "optimizer": {"type": "Adam", "learning_rate": 0.005},
            "loss": {"type": "SparseCategoricalCrossentropy", "from_logits": True},
            "metrics": [{"type": "SparseCategoricalAccuracy", "name": "accuracy"}],
        },
    }


def _arrays(name: str, part: str) -> Arrays:
    count = 4_000 if part == "train" else 1_000
    random = np.random.default_rng(1 if part == "train" else 2)
    if name == "moons":
        label = random.integers(0, 2, count)
        angle = random.uniform(0, np.pi, count)
        x = np.where(label == 0, np.cos(angle), 1 - np.cos(angle))
        y = np.where(label == 0, np.sin(angle), 0.5 - np.sin(angle))
        point = np.stack([x, y], axis=1) + random.normal(0, 0.1, (count, 2))
        return {"point": point.astype(np.float32), "label": label.astype(np.int32)}
    label = random.integers(0, 4, count)
    grid = np.indices((16, 16))
    ways = np.stack([grid[0], grid[1], grid[0] + grid[1], grid[0] - grid[1]])
    phase = random.integers(0, 4, count)
    waves = ((ways[label] + phase[:, None, None]) // 2 % 2) * 160
    noisy = waves + random.normal(40, 30, (count, 16, 16))
    image = np.clip(noisy, 0, 255).astype(np.uint8)[..., None]
    return {"image": image, "label": label.astype(np.int32)}
