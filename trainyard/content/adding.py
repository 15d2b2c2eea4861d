"""Files and folders of this machine as content."""

import io
import os
import stat as file_modes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trainyard.content.build import build_directory, build_file
from trainyard.content.chunking import Chunker
from trainyard.content.errors import InvalidPathError
from trainyard.content.nodes import Built, Put


def add_path(
    path: Path, put: Put, chunker: Chunker | None, advance: Callable[[int], None]
) -> Built:
    """Cut the file, or all files of the folder, into blocks; errors name what cannot be read."""
    with _naming(path):
        mode = path.lstat().st_mode
    if file_modes.S_ISREG(mode):
        with _naming(path):
            file = _NamedFile(path)
        with file:
            return build_file(file, put, chunker, advance)
    if file_modes.S_ISDIR(mode):
        with _naming(path):
            children = sorted(path.iterdir())
        return build_directory(
            ((child.name, add_path(child, put, chunker, advance)) for child in children), put
        )
    raise InvalidPathError(
        f"{path} is neither a file nor a directory; copy what it points to, or leave it out"
    )


def bytes_in(path: Path) -> int | None:
    """How many bytes there are to add; None where not all of it can be looked at."""
    try:
        if path.is_file():
            return path.stat().st_size
        return sum(child.stat().st_size for child in path.rglob("*") if child.is_file())
    except OSError:
        return None


class _NamedFile(io.FileIO):
    def __init__(self, path: Path) -> None:
        super().__init__(os.fspath(path))
        self._path = path

    def read(self, size: int | None = -1, /) -> bytes:
        # Here and not around the whole: writing the blocks fails in other ways.
        with _naming(self._path):
            return super().read(-1 if size is None else size)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InvalidPathError(f"cannot read {path}: {why}") from error
