"""How long a task takes here: what it has to compute, by what this machine was measured to do."""

import json
import math
import statistics
import time
from pathlib import Path

from trainyard.engine.journal import write_whole
from trainyard.protocol.manifest import Manifest

# Of a step that trains, forwards and backwards.
_PASSES = 3
_START_S = 15.0
# Training comes to a part of what products of matrices do: reading and small layers take theirs.
_TRAINING_SHARE = 1.5
# Small models take longer to be called than to compute.
_LEAST_STEP_S = 0.002
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "Bidirectional")


def operations(manifest: Manifest) -> float:
    """Multiplications and additions of the whole run, of all its workers."""
    training = manifest.training
    per_record = sum(layer_operations(manifest))
    return _PASSES * per_record * training.batch * manifest.plan.steps


def layer_operations(manifest: Manifest) -> list[float]:
    """Of each layer, for one record: two for each weight, wherever it is applied."""
    model = manifest.model
    found = []
    for layer in model.layers:
        effect = model.effects[layer.name]
        if layer.type == "Embedding":
            # Looked up, not multiplied.
            continue
        positions = math.prod(effect.output.shape[:-1])
        given = model.effects[model.wiring[layer.name][0]].output
        if layer.type in _RECURRENT:
            positions = max(positions, given.shape[0])
        found.append(2.0 * effect.trainable * positions)
    return found


def estimate_hours(manifest: Manifest, operations_per_s: float) -> float:
    """For one worker, whose part is one of as many as there are workers."""
    workers = manifest.training.workers
    seconds = operations(manifest) / workers / operations_per_s
    least = manifest.plan.steps * _LEAST_STEP_S
    return (max(seconds, least) + _START_S) / 3600


def measured_speed(path: Path) -> float:
    """What this machine was measured to compute a second, measured now if it never was."""
    try:
        return float(json.loads(path.read_bytes())["operations_per_s"])
    except (FileNotFoundError, ValueError, KeyError):
        speed = measure_speed()
        write_whole(path, json.dumps({"operations_per_s": speed}).encode())
        return speed


def measure_speed(turns: int = 5) -> float:
    """Products of matrices as a dense layer has them, which is what training mostly is."""
    import numpy as np

    random = np.random.default_rng(1)
    size = 512
    one, other = (random.random((size, size), np.float32) for _ in range(2))
    taken = []
    for _ in range(turns):
        began = time.perf_counter()
        for _ in range(4):
            one @ other
        taken.append((time.perf_counter() - began) / 4)
    return 2.0 * size**3 / statistics.median(taken) / _TRAINING_SHARE
