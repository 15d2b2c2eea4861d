"""The models that all begin with, and what became of them: the two things that need TensorFlow.

python -m benchmarks.end_to_end_models make EXAMPLE RATE MODEL
python -m benchmarks.end_to_end_models try MODEL TEST TRIALS     accuracies and times, as JSON
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.end_to_end_jobs import Moment, first_weights, load_weights, save_weights
from trainyard.protocol.manifest import Manifest

_ROOT = Path(__file__).resolve().parent.parent


def make(example: str, rate: float, model: Path) -> None:
    """An example's model as a `.keras` file, compiled with Adam at one rate for all."""
    _ask("make", example, str(rate), str(model))


@dataclass(frozen=True, slots=True)
class Trial:
    """What is to be tried of a way: its last weights, and those that it had before."""

    weights: Path
    goal: float
    moments: Sequence[Moment]
    # Where they are states of a run, its manifest.
    manifest: Path | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    accuracy: float
    # The first moment whose weights reach the goal.
    reached_s: float | None


def try_out(model: Path, test: Path, trials: Sequence[Trial], most: int) -> list[Tried]:
    """Each on `most` of the test images at first, all in one process after all is over."""
    told = [
        {
            "weights": str(one.weights),
            "goal": one.goal,
            "moments": [[moment.at_s, str(moment.path)] for moment in one.moments],
            "manifest": None if one.manifest is None else str(one.manifest),
        }
        for one in trials
    ]
    path = test.with_name("trials.json")
    path.write_text(json.dumps({"most": most, "trials": told}))
    said = _ask("try", str(model), str(test), str(path))
    return [Tried(*one) for one in json.loads(said.splitlines()[-1])]


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


def _try(path: str, test: str, trials: str) -> None:
    import keras
    import numpy as np

    from trainyard.engine.program import build_network
    from trainyard.engine.state import WEIGHTS, State
    from trainyard.engine.variables import assign, named_weights

    told = json.loads(Path(trials).read_text())
    model = keras.saving.load_model(path, compile=False)
    images, labels = (
        np.load(Path(test) / f"{name}.npy")[: told["most"]] for name in ("image", "label")
    )

    def accuracy(tried: Any) -> float:
        found = tried.predict(images, batch_size=1000, verbose=0).argmax(axis=1)
        return float((found == labels).mean())

    def of_weights(one: str) -> float:
        model.set_weights(load_weights(Path(one)))
        return accuracy(model)

    def of_states(manifest: str) -> Callable[[str], float]:
        network = build_network(Manifest.parse(Path(manifest).read_bytes()))
        variables = named_weights(network)

        def of_state(one: str) -> float:
            assign(variables, State.load(Path(one)), WEIGHTS)
            return accuracy(network.model)

        return of_state

    found: list[tuple[float, float | None]] = []
    for trial in told["trials"]:
        take = of_weights if trial["manifest"] is None else of_states(trial["manifest"])
        good = (at_s for at_s, one in trial["moments"] if take(one) >= trial["goal"])
        reached = next(good, None)
        found.append((of_weights(trial["weights"]), reached))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
