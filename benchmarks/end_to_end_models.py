"""The models that all begin with, and what became of them: the two things that need TensorFlow.

python -m benchmarks.end_to_end_models make EXAMPLE RATE MODEL
python -m benchmarks.end_to_end_models try MODEL TEST WEIGHTS ...     accuracies, as JSON
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.end_to_end_jobs import first_weights, load_weights, save_weights
from trainyard.protocol.manifest import Manifest

_ROOT = Path(__file__).resolve().parent.parent


def make(example: str, rate: float, model: Path) -> None:
    """An example's model as a `.keras` file, compiled with Adam at one rate for all."""
    _ask("make", example, str(rate), str(model))


def try_out(model: Path, test: Path, weights: Sequence[Path]) -> list[float]:
    """The accuracy of each on the test images, all in one process after all is over."""
    said = _ask("try", str(model), str(test), *map(str, weights))
    return [float(one) for one in json.loads(said.splitlines()[-1])]


def _ask(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.end_to_end_models", *arguments],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise SystemExit(f"{arguments[0]} failed: {done.stderr[-2000:]}")
    return done.stdout


def main() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    command, *arguments = sys.argv[1:]
    if command == "make":
        _make(*arguments)
    else:
        _try(*arguments)


def _make(example: str, rate: str, path: str) -> None:
    import keras

    from trainyard.engine.program import build_model

    manifest = Manifest.parse((_ROOT / "examples" / f"{example}.json").read_bytes())
    model = build_model(manifest.model, manifest.training.seed)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(float(rate)), loss)
    model.save(path)
    save_weights(first_weights(Path(path)), model.get_weights())


def _try(path: str, test: str, *weights: str) -> None:
    import keras
    import numpy as np

    model = keras.saving.load_model(path)
    images, labels = (np.load(Path(test) / f"{name}.npy") for name in ("image", "label"))
    found = []
    for one in weights:
        model.set_weights(load_weights(Path(one)))
        right = model.predict(images, batch_size=1000, verbose=0).argmax(axis=1) == labels
        found.append(float(right.mean()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
