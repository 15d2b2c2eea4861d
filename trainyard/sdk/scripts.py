"""A file of Python that defines `model` and `data`, as what a task is posted of.

The file is run in a sandbox, and what comes out of that is a stranger's: a document that is checked
like any other, and arrays that are read without running anything.
"""

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from pydantic import ValidationError

from trainyard.engine.asking import ask_confined
from trainyard.engine.confining import Confinement
from trainyard.engine.errors import RunError
from trainyard.engine.plain_files import open_plain
from trainyard.engine.script_files import Columns, ScriptJob, array_file
from trainyard.protocol.manifest import Model
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.model_sections import checked_sections

_MODULE = "trainyard.engine.script_files"
# Of all arrays together: more is for data that is content already.
_MOST_BYTES = 1 << 30
_HOW = (
    "it is run in a sandbox, where it has no network, no keys, no files but itself and those of "
    "--file, and not for ever"
)

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """Inputs in the model's order, targets, and weights if there are any."""

    inputs: tuple[Array, ...]
    y: Array
    weight: Array | None

    @property
    def x(self) -> Any:
        return self.inputs[0] if len(self.inputs) == 1 else list(self.inputs)


@dataclass(frozen=True, slots=True)
class Script:
    """What a file defines. Training begins with fresh weights."""

    model: Model
    training: dict[str, Any]
    train: Rows | None
    validation: Rows | None


def script_of(
    path: Path, confinement: Confinement, *, files: Sequence[Path] = (), has_data: bool = True
) -> Script:
    """What `path` defines, run in the sandbox with copies of `files` beside it.

    Without `has_data` nothing is asked of it but a model.
    """
    with TemporaryDirectory(prefix="trainyard-script-") as name:
        folder = Path(name).resolve()
        shown, made = folder / "script", folder / "made"
        shown.mkdir()
        made.mkdir()
        _lay_out([path, *files], shown)
        job = ScriptJob(source=shown / path.name, made=made, has_data=has_data)
        try:
            said = ask_confined(
                _MODULE, job, folder, confinement, readable=[shown], writable=[made]
            )
        except RunError as error:
            # The log goes away with the folder, so nobody is sent there.
            why = str(error).replace(f"; see {folder / 'log'}", "")
            raise RefusedError(f"{path}: {why} ({_HOW})") from error
        model, training = checked_sections(path, said)
        reader = _Reader(path, made)
        train = reader.rows(said, "train")
        if has_data and train is None:
            raise reader.nonsense()
        return Script(model, training, train, reader.rows(said, "validation"))


def _lay_out(files: Sequence[Path], folder: Path) -> None:
    for one in files:
        target = folder / one.name
        if target.exists():
            raise RefusedError(f"there are two files named {one.name}: the script would see one")
        shutil.copyfile(one, target)


class _Reader:
    """Reads the arrays that a script has left, of which all is possible."""

    def __init__(self, path: Path, folder: Path) -> None:
        self._path, self._folder = path, folder
        self._left = _MOST_BYTES

    def rows(self, said: dict[str, Any], part: str) -> Rows | None:
        if said.get(part) is None:
            return None
        try:
            found = Columns.model_validate(said[part])
        except ValidationError as error:
            raise self.nonsense() from error
        weight = None if found.weight is None else self._array(found.weight)
        inputs = tuple(self._array(number) for number in found.inputs)
        return Rows(inputs, self._array(found.target), weight)

    def _array(self, number: int) -> Array:
        try:
            # INVARIANT: no link is followed out of the folder that the script could write to.
            with open_plain(array_file(self._folder, number)) as file:
                return self._read(file)
        except RefusedError:
            raise
        except (RunError, OSError, ValueError, EOFError) as error:
            raise self.nonsense() from error

    def _read(self, file: IO[bytes]) -> Array:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }.get(version)
        if read is None:
            raise ValueError("an unknown version of .npy")
        shape, is_fortran, dtype = read(file)
        if dtype.hasobject or dtype.kind not in "biuf":
            raise ValueError("no array of numbers")
        size = math.prod(shape) * dtype.itemsize
        if size != os.fstat(file.fileno()).st_size - file.tell():
            raise ValueError("another size than the array says")
        self._left -= size
        if self._left < 0:
            raise RefusedError(
                f"{self._path}: its arrays take more than {_MOST_BYTES >> 30} GiB: add the data to "
                "content with 'trainyard content shard', and give its CID with --data"
            )
        values: Array = np.frombuffer(file.read(size), dtype)
        return values.reshape(shape, order="F" if is_fortran else "C")

    def nonsense(self) -> RefusedError:
        return RefusedError(f"{self._path}: what it left behind is no data of a script ({_HOW})")
