"""A `.keras` file and an `.npz` file as what a manifest is made of, without TensorFlow here."""

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from pydantic import ValidationError

from trainyard.engine.asking import ask_confined
from trainyard.engine.confining import Confinement
from trainyard.engine.model_files import ReadJob
from trainyard.protocol.manifest import Model
from trainyard.protocol.manifest.model import Input
from trainyard.sdk.errors import RefusedError

_MODULE = "trainyard.engine.model_files"
# What a compiled model says of its training; all else is the requester's to say.
_TRAINING = ("optimizer", "loss", "metrics")
_USUAL_TARGETS = ("y", "label", "labels", "target")


def sections_of(path: Path, confinement: Confinement) -> tuple[Model, dict[str, Any]]:
    """The model of a `.keras` file and what it was compiled with, read in the sandbox."""
    with TemporaryDirectory(prefix="trainyard-model-") as name:
        folder = Path(name).resolve()
        # A copy: the sandbox must not be shown the folder of the user's own.
        source = folder / "model.keras"
        source.write_bytes(path.read_bytes())
        said = ask_confined(_MODULE, ReadJob(source=source), folder, confinement, readable=[source])
    return checked_sections(path, said)


def checked_sections(path: Path, said: dict[str, Any]) -> tuple[Model, dict[str, Any]]:
    """What the engine found in a stranger's file, of which nothing but these sections is taken."""
    training = said.get("training")
    if not isinstance(training, dict):
        raise RefusedError(f"{path}: {said.get('note') or 'the model is not compiled'}")
    kept = {name: training[name] for name in _TRAINING if name in training}
    try:
        return Model.model_validate_json(json.dumps(said["model"])), kept
    except (ValidationError, KeyError) as error:
        raise RefusedError(f"{path}: the engine found no model in it") from error


def arrays_of(path: Path, inputs: Sequence[Input], target: str | None) -> tuple[Any, Any]:
    """`x` and `y` of an `.npz` file: its arrays are named as the inputs, or there is only one."""
    try:
        # Without pickles: reading an array must not run what a stranger wrote.
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
    except (ValueError, EOFError) as error:
        raise RefusedError(f"{path} is no .npz file of arrays: {error}") from error
    known = f"it has {', '.join(map(repr, sorted(arrays)))}"
    if target is None:
        target = next((name for name in _USUAL_TARGETS if name in arrays), None)
    if target is None or target not in arrays:
        raise RefusedError(f"{path}: which array is the target? {known}; name it with --target")
    y = arrays.pop(target)
    if all(one.name in arrays for one in inputs):
        return {one.name: arrays[one.name] for one in inputs}, y
    if len(inputs) == len(arrays) == 1:
        return next(iter(arrays.values())), y
    names = ", ".join(repr(one.name) for one in inputs)
    raise RefusedError(f"{path}: the model reads {names}, and {known}: name the arrays so")
