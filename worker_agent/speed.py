"""How long a task takes here: what it has to compute, by what this machine was measured to do."""

import fcntl
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from trainyard.engine.classes import cache_folder
from trainyard.engine.costs import evaluated_records
from trainyard.engine.energy import find_power
from trainyard.engine.journal import write_whole
from trainyard.engine.pacing import Paces, measure_paces, pacing_manifest
from trainyard.protocol.manifest import Manifest

# Of a step that trains: one forwards, and backwards what two take.
_PASSES = 3
# Starting the sandbox, tracing the network, and keeping states: a guess, beside what is measured.
_START_S = 10.0
# What each step of workers together waits for the others: a guess, since nobody has met them yet.
_EXCHANGE_S = 0.01
# What each further thread adds to the speed of one: a guess.
_THREAD_GAIN = 0.7
_RECURRENT = ("LSTM", "GRU", "SimpleRNN", "Bidirectional")
_KINDS = ("convolution", "product", "recurrence")
# Below it, a difference of two measurements is noise.
_LEAST_S = 1e-5
_NO_COUNTERS = Path("/nonexistent")


class Speed(BaseModel):
    """What was measured with one thread, and when."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    measured_at: float
    cores: int
    paces: Paces

    def gain(self, threads: int, cores: float | None = None) -> float:
        """How much quicker a task of so many threads computes: a guess.

        Where it is held to fewer `cores`, all its threads stand still for the rest of the time.
        """
        busy = min(threads, self.cores)
        return (1 + _THREAD_GAIN * (busy - 1)) * _part(busy, cores)


def operations(manifest: Manifest) -> dict[str, float]:
    """Multiplications and additions that one record takes in a step, by the kind of layer."""
    found = dict.fromkeys(_KINDS, 0.0)
    passes = 1 if manifest.training.predicts else _PASSES
    for kind, count in _layers(manifest):
        found[kind] += passes * count
    return found


def estimate_hours(manifest: Manifest, speed: Speed, cores: float | None = None) -> float:
    """For one worker, whose part is one of as many as there are workers.

    `cores` are what a task is held to; None for all that there are.
    """
    training = manifest.training
    paces, gain = speed.paces, speed.gain(training.threads, cores)
    share, alone = training.batch / training.workers, _part(1, cores)
    least_s = paces.step_s["least"] / alone
    record_s = sum(
        per_record / (_speed(paces, kind) * gain)
        for kind, per_record in operations(manifest).items()
    )
    step_s = least_s + record_s * share
    if training.workers > 1:
        step_s += _EXCHANGE_S
    # Each worker evaluates all of it by itself.
    evaluated = evaluated_records(manifest)
    evaluating_s = evaluated * (record_s / _PASSES + least_s / manifest.evaluation_batch)
    ready_s = (paces.start_s + _START_S) / alone
    return (step_s * manifest.plan.steps + evaluating_s + ready_s) / 3600


def _part(busy: int, cores: float | None) -> float:
    """Of the time for which so many threads may run."""
    return 1.0 if cores is None else min(1.0, cores / busy)


def estimate_joules(hours: float, threads: float) -> float:
    """What so many cores take in that time, as they are known; zero for those that are not."""
    # Counters tell what was used, and not what will be.
    power = find_power(counters=_NO_COUNTERS)
    return 0.0 if power is None else hours * 3600 * threads * power.core_w


def measured_speed(path: Path) -> Speed:
    """What is known of this machine in `path`, else what another agent on it measured, else now."""
    known = read_speed(path)
    if known is not None:
        return known
    with _only_one():
        found = read_speed(_cache()) or _measure()
        write_whole(_cache(), found.model_dump_json().encode())
    write_whole(path, found.model_dump_json().encode())
    return found


def measure_speed(path: Path) -> Speed:
    """A short training now, kept with its time."""
    with _only_one():
        found = _measure()
        write_whole(_cache(), found.model_dump_json().encode())
    write_whole(path, found.model_dump_json().encode())
    return found


def read_speed(path: Path) -> Speed | None:
    try:
        return Speed.model_validate_json(path.read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def _measure() -> Speed:
    cores = len(os.sched_getaffinity(0))
    return Speed(measured_at=time.time(), cores=cores, paces=measure_paces(threads=1))


def _cache() -> Path:
    return cache_folder().with_name("speed.json")


@contextmanager
def _only_one() -> Iterator[None]:
    """Agents that measure at once would measure each other."""
    _cache().parent.mkdir(parents=True, exist_ok=True)
    with _cache().with_suffix(".lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


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
