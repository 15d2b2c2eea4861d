"""A file of Python that defines a model and its data, read in a process of its own:
`python -m trainyard.engine.script_files JOB`.

Whatever stands in the file is run, so whoever starts this puts it into a sandbox, and believes
nothing of what it says and writes. What it says is one line of JSON; arrays are files.
"""

import json
import os
import runpy
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from pydantic import BaseModel, ConfigDict

from trainyard.engine.errors import RunError
from trainyard.protocol.errors import TrainyardError

# No '__main__': what a file does only when it is run itself is not to be done here.
_NAME = "trainyard_script"
_LONGEST = 500
# Read by TensorFlow and Keras when they are imported.
_SETTINGS = {
    "CUDA_VISIBLE_DEVICES": "-1",
    "KERAS_BACKEND": "tensorflow",
    "TF_CPP_MIN_LOG_LEVEL": "2",
}
_DATA = "data = (x, y), or data = {'x': x, 'y': y, 'validation_data': (x, y)}"
_KEYS = ("x", "y", "sample_weight", "validation_data")


class ScriptJob(BaseModel):
    """The file, in the folder that it finds its own files in, and where arrays are to be put."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    source: Path
    made: Path
    has_data: bool = True


class Columns(BaseModel):
    """Arrays by the numbers of their files; those of the inputs in the model's order."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    inputs: tuple[int, ...]
    target: int
    weight: int | None = None


def array_file(folder: Path, number: int) -> Path:
    return folder / f"{number:04}.npy"


def main() -> NoReturn:
    # Not as for a run, whose random operations are refused without a seed: nothing is trained here.
    os.environ |= _SETTINGS
    job = ScriptJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    answer = os.dup(1)
    # What the file prints is for nobody: here it would be taken for the answer.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    try:
        said = _read(job)
    except TrainyardError as error:
        said = {"error": str(error)[:_LONGEST]}
    with open(answer, "wb") as out:
        out.write(json.dumps(said).encode() + b"\n")
    # Without waiting for threads that the file may have started.
    os._exit(0)


def _read(job: ScriptJob) -> dict[str, Any]:
    found = _run(job.source)
    model = found.get("model")
    if model is None:
        raise RunError("it defines no 'model': name your compiled Keras model so")
    from trainyard.engine.importing import model_of, training_of

    section = model_of(_checked(model))
    document: dict[str, Any] = {
        "model": section.model_dump(mode="json", by_alias=True, exclude_none=True),
        "training": training_of(model),
        "train": None,
        "validation": None,
    }
    if not job.has_data:
        return document
    if found.get("data") is None:
        raise RunError(f"it defines no 'data': say {_DATA}")
    writer = _Writer(job.made, [one.name for one in section.inputs])
    train, validation = _parts(found["data"])
    document["train"] = writer.columns(*train, where="data").model_dump()
    if validation is not None:
        kept = writer.columns(*validation, where="validation_data")
        document["validation"] = kept.model_dump()
    return document


def _checked(model: Any) -> Any:
    import keras

    if not isinstance(model, keras.Model):
        raise RunError(f"its 'model' is a {type(model).__name__}, and no keras.Model")
    return model


def _run(source: Path) -> dict[str, Any]:
    """What the file defines."""
    os.chdir(source.parent)
    sys.path.insert(0, str(source.parent))
    try:
        return runpy.run_path(str(source), run_name=_NAME)
    except BaseException as error:
        # Whatever somebody's code raises, an exit among it.
        raise RunError(_reason(error, source)) from error


def _reason(error: BaseException, source: Path) -> str:
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(source)
    ]
    if isinstance(error, SyntaxError) and error.filename == str(source):
        lines = [error.lineno]
    where = f"line {lines[-1]}: " if lines else ""
    what = traceback.format_exception_only(error)[-1].strip()
    return f"it does not run: {where}{what}"


def _parts(data: Any) -> tuple[Sequence[Any], Sequence[Any] | None]:
    """Inputs, targets and perhaps weights: of training, and of validation if there is any."""
    if isinstance(data, Mapping):
        unknown = [repr(key) for key in data if key not in _KEYS]
        if unknown or "x" not in data or "y" not in data:
            raise RunError(
                f"its 'data' has {', '.join(map(repr, data)) or 'nothing'}, and there are "
                f"{', '.join(map(repr, _KEYS))}: say {_DATA}"
            )
        train = (data["x"], data["y"], data.get("sample_weight"))
        tried = data.get("validation_data")
        return train, None if tried is None else _row(tried, "validation_data")
    return _row(data, "data"), None


def _row(given: Any, where: str) -> Sequence[Any]:
    if not isinstance(given, tuple | list) or len(given) not in (2, 3):
        raise RunError(
            f"its {where!r} is a {type(given).__name__}, and no (x, y) of arrays: say {_DATA}; a "
            "data set or a generator is for trainyard.fit"
        )
    return given


class _Writer:
    """Puts arrays into files, one after the other."""

    def __init__(self, folder: Path, inputs: Sequence[str]) -> None:
        self._folder, self._inputs = folder, inputs
        self._count = 0

    def columns(self, x: Any, y: Any, weight: Any = None, *, where: str) -> Columns:
        inputs = tuple(self._put(one, f"x of {where!r}") for one in self._given(x, where))
        return Columns(
            inputs=inputs,
            target=self._put(y, f"y of {where!r}"),
            weight=None if weight is None else self._put(weight, f"the weights of {where!r}"),
        )

    def _given(self, x: Any, where: str) -> list[Any]:
        names = self._inputs
        if isinstance(x, Mapping):
            missing = [name for name in names if name not in x]
            if missing:
                raise RunError(f"x of {where!r} has no {missing[0]!r}, which the model reads")
            return [x[name] for name in names]
        if len(names) == 1:
            return [x]
        if not isinstance(x, tuple | list) or len(x) != len(names):
            raise RunError(
                f"the model reads {len(names)} inputs ({', '.join(names)}): x of {where!r} has to "
                "be a list of as many arrays, or a dict by their names"
            )
        return list(x)

    def _put(self, values: Any, what: str) -> int:
        import numpy as np

        try:
            array = np.asarray(values)
        except (TypeError, ValueError) as error:
            raise RunError(f"{what} is no array: {error}") from error
        if array.dtype.kind not in "biuf":
            raise RunError(f"{what} has values of {array.dtype}; make numbers of them first")
        number, self._count = self._count, self._count + 1
        np.save(array_file(self._folder, number), array, allow_pickle=False)
        return number


if __name__ == "__main__":
    main()
