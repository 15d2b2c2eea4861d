"""One way of training one network, as the process is told that does it, and what came of it.

Read in Flower's environment too, so there is nothing here but NumPy.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

_JOB, _OUTCOME, _WEIGHTS = "job.json", "outcome.json", "weights.npz"
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
    steps_per_segment: int = 1
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
    # The number of a task on the market.
    task: int = 0

    @classmethod
    def load(cls, job: Job) -> "Outcome":
        return cls(**json.loads((job.folder / _OUTCOME).read_text()))

    def save(self, job: Job) -> None:
        (job.folder / _OUTCOME).write_text(json.dumps(asdict(self)))


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
