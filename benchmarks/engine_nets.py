"""The networks that `benchmarks.engine` measures: those of the examples, trained alike."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.protocol.manifest import Manifest

ROOT = Path(__file__).resolve().parent.parent
LENET = "mnist/lenet5"


@dataclass(frozen=True, slots=True)
class Timing:
    """The batch that a network is timed with, and segments that take it about two seconds."""

    batch: int
    segments: int
    # Of a segment. Fewer where one takes long: a state then costs the larger share.
    steps: int = 100


NETS = {
    LENET: Timing(128, segments=2),
    "mnist/mlp300_100": Timing(128, segments=5),
    # Its own batch, and about as many examples as the others have in a segment.
    "cifar10/cnn": Timing(100, segments=1, steps=20),
}


def manifest_of(net: str, **changes: Any) -> Manifest:
    """An example's manifest with another training."""
    document = json.loads((ROOT / "examples" / f"{net}.json").read_bytes())
    document["training"] |= {"optimizer": {"type": "Adam", "learning_rate": 0.001}, **changes}
    return Manifest.of(document)
