"""Arrays as the command line names them."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard.cli.failing import WrongUseError

if TYPE_CHECKING:
    import numpy.typing as npt


def open_arrays(sources: Iterable[str]) -> dict[str, "npt.NDArray[Any]"]:
    """`NAME=FILE.npy`, memory-mapped, or `FILE.npz`, all of whose arrays are loaded."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    for source in sources:
        name, separator, file = source.partition("=")
        if separator:
            found = {name: _load(Path(file))}
        elif source.endswith(".npz"):
            found = dict(_load(Path(source)))
        else:
            raise WrongUseError(f"{source!r} is neither NAME=FILE.npy nor FILE.npz")
        if twice := sorted(found.keys() & arrays.keys()):
            raise WrongUseError(f"there are two arrays named {twice[0]!r}")
        arrays |= found
    return arrays


def _load(file: Path) -> Any:
    import numpy as np

    if not file.is_file():
        raise WrongUseError(f"{file} is no file")
    try:
        return np.load(file, mmap_mode="r" if file.suffix == ".npy" else None, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise WrongUseError(f"{file} holds no plain arrays: {error}") from error
