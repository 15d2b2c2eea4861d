"""The networks that `benchmarks.engine` measures: those of the examples, trained alike."""

import json
from pathlib import Path
from typing import Any

from trainyard.protocol.manifest import Manifest

ROOT = Path(__file__).resolve().parent.parent
LENET = "mnist/lenet5"
# By the batch that they are timed with.
NETS = {LENET: 128, "mnist/mlp300_100": 128, "cifar10/cnn": 16}


def manifest_of(net: str, **changes: Any) -> Manifest:
    """An example's manifest with another training."""
    document = json.loads((ROOT / "examples" / f"{net}.json").read_bytes())
    document["training"] |= {"optimizer": {"type": "Adam", "learning_rate": 0.001}, **changes}
    return Manifest.of(document)
