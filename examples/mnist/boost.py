"""Boosted LeNet-4: each net is trained on records weighted by what those before it got wrong.

    .venv/bin/trainyard engine run examples/mnist/boosted_lenet4.json --folder net1
    .venv/bin/python examples/mnist/boost.py net1                # writes boosted_lenet4_2.json
    .venv/bin/trainyard engine run boosted_lenet4_2.json --folder net2
    .venv/bin/python examples/mnist/boost.py net1 net2           # writes boosted_lenet4_3.json
    .venv/bin/trainyard engine run boosted_lenet4_3.json --folder net3
    .venv/bin/python examples/mnist/boost.py net1 net2 net3      # adds their outputs up, and tests

Only the first manifest can be in git: the others name records that depend on the nets before.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from trainyard.content.content import Content
from trainyard.content.names import ContentPath
from trainyard.content.settings import ContentSettings, open_content
from trainyard.datasets import add_arrays, load_arrays
from trainyard.protocol.manifest import Manifest

NETS = 3
BATCH = 1000
# A record is never worth more than so many of those that are no trouble.
MOST = 10.0

Floats: TypeAlias = npt.NDArray[np.float32]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of the nets so far, in order")
    runs: list[Path] = parser.parse_args().runs
    content = open_content(ContentSettings())
    if len(runs) >= NETS:
        print(f"accuracy {accuracy_of(content, runs):.4f}")
    else:
        path = Path(f"boosted_lenet4_{len(runs) + 1}.json")
        path.write_bytes(boost(content, runs).canonical)
        print(path)
    content.close()


def boost(content: Content, runs: Sequence[Path]) -> Manifest:
    """The manifest of the net that follows those of `runs`; its records go to the store."""
    document: dict[str, Any] = json.loads((runs[0] / "manifest.json").read_bytes())
    source = document["data"]["train"]
    records = load_arrays(content, ContentPath.parse(source["path"]))
    weight = weights(added(runs, records["image"]), records["label"])
    cid = add_arrays(content, {**records, "weight": weight}).cid
    source["path"], source["weight"] = f"ipfs://{cid}", "weight"
    source["features"]["weight"] = {"dtype": "float32", "shape": []}
    document["training"]["seed"] += len(runs)
    return Manifest.of(document)


def weights(outputs: Floats, labels: npt.NDArray[Any]) -> Floats:
    """Half of all weight lies on every record alike, half on those that are taken for others."""
    right = outputs[np.arange(len(labels)), labels] / outputs.sum(axis=1)
    wrong = (1 - right) / (1 - right).mean()
    weight = np.minimum(0.5 + 0.5 * wrong, MOST)
    return np.asarray(weight / weight.mean(), np.float32)


def accuracy_of(content: Content, runs: Sequence[Path]) -> float:
    """The share of the test records that all nets together get right."""
    document = json.loads((runs[0] / "manifest.json").read_bytes())
    records = load_arrays(content, ContentPath.parse(document["data"]["test"]["path"]))
    found = added(runs, records["image"]).argmax(axis=1)
    return float((found == records["label"]).mean())


def added(runs: Sequence[Path], images: npt.NDArray[Any]) -> Floats:
    """The nets' outputs, as probabilities, added up."""
    import keras

    models = [keras.saving.load_model(run / "model.keras") for run in runs]
    parts = [
        sum(np.asarray(keras.ops.softmax(model(images[start : start + BATCH]))) for model in models)
        for start in range(0, len(images), BATCH)
    ]
    return np.concatenate(parts)


if __name__ == "__main__":
    main()
