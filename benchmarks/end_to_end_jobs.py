"""One way of training one network, as the process is told that does it, and what came of it.

Read in Flower's environment too, so there is nothing here but NumPy.
"""

import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

_JOB, _OUTCOME, _WEIGHTS, _MOMENTS = "job.json", "outcome.json", "weights.npz", "moments"
_PATHS = ("data", "model", "folder", "devnet")


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    # Folders `train` and `test` of arrays `image` and `label`.
    data: Path
    # A `.keras` file with the weights that everybody begins with.
    model: Path
    # Where what comes of it goes.
    folder: Path
    records: int
    epochs: int
    # What all workers together take in a step.
    batch: int
    rate: float
    seed: int = 1
    workers: int = 1
    # Of each worker, for one operation.
    threads: int = 1
    # Between two meetings of workers that train apart.
    local_steps: int = 1
    # On the market only.
    mode: str = "single"
    verify: str = "audit:2"
    # As `fit` cuts by itself if left out.
    steps_per_segment: int | None = None
    # More of `training.rounds` of the manifest, in mode rounds.
    rounds_wish: dict[str, Any] = field(default_factory=dict)
    devnet: Path | None = None

    @property
    def steps(self) -> int:
        return self.records * self.epochs // self.batch

    @property
    def rounds(self) -> int:
        return self.steps // self.local_steps

    def save(self) -> Path:
        self.folder.mkdir(parents=True)
        path = self.folder / _JOB
        path.write_text(json.dumps(asdict(self), default=str))
        return path

    @classmethod
    def load(cls, path: Path) -> "Job":
        document: dict[str, Any] = json.loads(path.read_text())
        given = {one.name: document[one.name] for one in fields(cls)}
        for name in _PATHS:
            given[name] = None if given[name] is None else Path(given[name])
        return cls(**given)

    def arrays(self, part: str = "train") -> tuple[Any, Any]:
        """Images and labels; of the train part as many as the job has records."""
        count = self.records if part == "train" else None
        folder = self.data / part
        return np.load(folder / "image.npy")[:count], np.load(folder / "label.npy")[:count]

    def order(self, epoch: int) -> Any:
        """The records of an epoch, the same for all who order them by hand."""
        return np.random.default_rng([self.seed, epoch]).permutation(self.records)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """From the call, or the launch, until the trained weights are in hand."""

    seconds: float
    sent_bytes: int = 0
    # The number of a task on the market, and the time of the clock at the call.
    task: int = 0
    began_at: float = 0.0

    @classmethod
    def load(cls, job: Job) -> "Outcome":
        return cls(**json.loads((job.folder / _OUTCOME).read_text()))

    def save(self, job: Job) -> None:
        (job.folder / _OUTCOME).write_text(json.dumps(asdict(self)))


@dataclass(frozen=True, slots=True)
class Moment:
    """Weights that a run had so many seconds after the call, or the launch."""

    at_s: float
    path: Path


class Moments:
    """Weights of a run that goes on, kept with their times to be tried when it is over."""

    def __init__(self, job: Job, began: float) -> None:
        """`began` is a time of `time.time`, which all processes of a way share."""
        self._folder, self._began, self._count = job.folder / _MOMENTS, began, 0
        self._folder.mkdir(exist_ok=True)

    def keep(self, weights: Sequence[Any]) -> None:
        at_ms = round((time.time() - self._began) * 1000)
        self._count += 1
        save_weights(self._folder / f"{self._count:06}-{at_ms}.npz", weights)

    @staticmethod
    def of(job: Job) -> list[Moment]:
        found = sorted((job.folder / _MOMENTS).glob("*.npz"))
        return [Moment(int(path.stem.partition("-")[2]) / 1000, path) for path in found]


def given_job() -> Job:
    """The job that this process was started for."""
    return Job.load(Path(sys.argv[1]))


def weights_file(job: Job) -> Path:
    return job.folder / _WEIGHTS


def first_weights(model: Path) -> Path:
    """The weights in a `.keras` file once more, for who reads no such file."""
    return model.with_name("first.npz")


def save_weights(path: Path, weights: Sequence[Any]) -> None:
    np.savez(path, *weights)


def load_weights(path: Path) -> list[Any]:
    with np.load(path) as found:
        return [found[f"arr_{number}"] for number in range(len(found.files))]
