"""Checkpoints of verified results: a `.keras` file each, and beside it what it came from."""

import json
import os
import re
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import keras

from trainyard.engine.importing import model_of
from trainyard.engine.journal import write_whole
from trainyard.engine.transplanting import is_same_network
from trainyard.sdk.errors import RefusedError

_NAME = re.compile(r"model\.(\d{1,18})\.json")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a model had come, in which task, and the hash of the state that was verified."""

    steps: int
    task: int
    state: str
    data: str
    # Of the `.keras` file.
    sha256: str


def make_folder(folder: Path) -> None:
    """A folder that checkpoints can be written to; RefusedError where there can be none."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=folder, prefix="."):
            pass
    except OSError as error:
        raise RefusedError(
            f"checkpoints cannot be written to {folder} ({error.strerror}): name another folder "
            "by set_checkpoint, or make this one writable"
        ) from error


def save(folder: Path, model: Any, *, steps: int, task: int, state: str, data: str) -> Checkpoint:
    """The model and its facts; there is a checkpoint only when both are there."""
    target = _model_file(folder, steps)
    unfinished = target.with_name(f".{os.getpid()}.{target.name}")
    model.save(unfinished)
    digest = sha256(unfinished.read_bytes()).hexdigest()
    unfinished.replace(target)
    found = Checkpoint(steps, task, state, data, digest)
    text = json.dumps(asdict(found), indent=1).encode() + b"\n"
    write_whole(folder / f"model.{steps}.json", text)
    return found


def load(folder: Path, model: Any, steps: int | None = None) -> Checkpoint:
    """Give `model` the weights of a checkpoint, of the last one if none is named."""
    known = sorted(int(name[1]) for name in map(_NAME.fullmatch, _entries(folder)) if name)
    if not known or (steps is not None and steps not in known):
        which = "no checkpoint" if steps is None else f"no checkpoint after {steps} steps"
        raise RefusedError(
            f"there is {which} in {folder}"
            + (f"; there are those after {', '.join(map(str, known))}" if known else "")
        )
    chosen = known[-1] if steps is None else steps
    file = _model_file(folder, chosen)
    try:
        found = Checkpoint(**json.loads((folder / f"model.{chosen}.json").read_bytes()))
        data = file.read_bytes()
    except (OSError, ValueError, TypeError) as error:
        raise RefusedError(f"the checkpoint {file} cannot be read: {error}") from error
    if found.steps != chosen or sha256(data).hexdigest() != found.sha256:
        raise RefusedError(f"the checkpoint {file} is not what was saved there: it is damaged")
    kept = keras.saving.load_model(file, compile=False)
    if not is_same_network(model_of(kept), model_of(model)):
        raise RefusedError(f"the checkpoint {file} is of another model than this one")
    model.set_weights(kept.get_weights())
    return found


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _model_file(folder: Path, steps: int) -> Path:
    return folder / f"model.{steps}.keras"
