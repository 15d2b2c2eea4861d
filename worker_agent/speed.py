"""How long a task takes here: what it has to compute, by what this machine was measured to do."""

import math
import os
import time
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from trainyard.engine.journal import write_whole
from trainyard.engine.pacing import Paces, measure_paces, pacing_manifest
from trainyard.protocol.manifest import Manifest

# Of a step that trains, forwards and backwards.
_PASSES = 3
# Starting the sandbox, tracing the network, and keeping states: a guess, beside what is measured.
_START_S = 10.0
# What each step of workers together waits for the others: a guess, since nobody has met them yet.
_EXCHANGE_S = 0.01
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "Bidirectional")
_KINDS = ("convolution", "product", "recurrence")
# Below it, a difference of two measurements is noise.
_LEAST_S = 1e-5


class Speed(BaseModel):
    """What was measured, and when; by the number of threads."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    measured_at: float
    paces: tuple[Paces, ...]

    def of(self, threads: int) -> Paces:
        """For a task of so many threads: the nearest number that was measured, from below."""
        fitting = [one for one in self.paces if one.threads <= threads]
        return max(fitting, key=lambda one: one.threads, default=self.paces[0])


def operations(manifest: Manifest) -> dict[str, float]:
    """Multiplications and additions that one record takes in a step, by the kind of layer."""
    found = dict.fromkeys(_KINDS, 0.0)
    for kind, count in _layers(manifest):
        found[kind] += _PASSES * count
    return found


def estimate_hours(manifest: Manifest, speed: Speed) -> float:
    """For one worker, whose part is one of as many as there are workers."""
    training = manifest.training
    paces = speed.of(training.threads)
    share = training.batch / training.workers
    step_s = paces.step_s["least"]
    for kind, per_record in operations(manifest).items():
        step_s += per_record * share / _speed(paces, kind)
    if training.workers > 1:
        step_s += _EXCHANGE_S
    return (step_s * manifest.plan.steps + paces.start_s + _START_S) / 3600


def measured_speed(path: Path) -> Speed:
    """What this machine was measured to do, measured now if it never was."""
    return read_speed(path) or measure_speed(path)


def read_speed(path: Path) -> Speed | None:
    try:
        return Speed.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def measure_speed(path: Path) -> Speed:
    """Short trainings, with one thread and with all cores; kept with their time."""
    cores = len(os.sched_getaffinity(0))
    speed = Speed(
        measured_at=time.time(),
        paces=tuple(measure_paces(threads) for threads in sorted({1, cores})),
    )
    write_whole(path, speed.model_dump_json().encode())
    return speed


def speeds(paces: Paces) -> dict[str, float]:
    """Operations a second, by the kind of layer."""
    return {kind: _speed(paces, kind) for kind in _KINDS}


def _speed(paces: Paces, kind: str) -> float:
    manifest = pacing_manifest(kind, paces.threads)
    done = operations(manifest)[kind] * manifest.training.batch
    return done / max(paces.step_s[kind] - paces.step_s["least"], _LEAST_S)


def _layers(manifest: Manifest) -> Iterator[tuple[str, float]]:
    """Of each layer, for one record: two for each weight, wherever it is applied."""
    model = manifest.model
    for layer in model.layers:
        effect = model.effects[layer.name]
        if layer.type == "Embedding":
            # Looked up, not multiplied.
            continue
        positions = math.prod(effect.output.shape[:-1])
        kind = "convolution" if "Conv" in layer.type else "product"
        if layer.type in _RECURRENT:
            given = model.effects[model.wiring[layer.name][0]].output
            positions, kind = max(positions, given.shape[0]), "recurrence"
        yield kind, 2.0 * effect.trainable * positions
