"""Files in folders into which a stranger in a sandbox may write too.

A link there would lead to a file of ours, a pipe would have us wait, and a file under a name that
can be guessed may be there before us. So none of these is opened.
"""

import errno
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from trainyard.engine.errors import RunError, TooLargeError

# Of a link, a pipe that nobody reads, a folder.
_NOT_PLAIN = (errno.ELOOP, errno.ENXIO, errno.EISDIR)
# As a file is called while it is written.
_UNFINISHED = re.compile(r"\..+\.[0-9]+\.tmp")


def open_plain(path: Path) -> IO[bytes]:
    """A file to be read. Neither it nor its folder is a link."""
    with _folder(path.parent, may_be_link=False) as folder:
        return open(_checked(path, path.name, os.O_RDONLY, folder), "rb", buffering=0)


def descriptor(path: Path, flags: int) -> int:
    """A file, opened. Its folder was named by whoever runs this, and may be a link."""
    return _checked(path, path, flags)


def read_plain(path: Path, most_bytes: int) -> bytes:
    """All of a file, which is not read if it is larger than any of its kind."""
    with open(descriptor(path, os.O_RDONLY), "rb", buffering=0) as file:
        # One byte more than that, since it may grow meanwhile.
        data = file.read(min(os.fstat(file.fileno()).st_size, most_bytes) + 1)
    if len(data) > most_bytes:
        raise TooLargeError(f"{path} has more than {most_bytes} bytes: remove it")
    return data


@contextmanager
def written(path: Path, *, mode: int = 0o666, may_be_link: bool = False) -> Iterator[IO[bytes]]:
    """A file that is there whole or not at all, also after a loss of power.

    Its folder may be a link only if that is said.
    """
    with _folder(path.parent, may_be_link=may_be_link) as folder:
        unfinished = f".{path.name}.{secrets.randbits(63)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        found = os.open(unfinished, flags, mode, dir_fd=folder)
        try:
            with open(found, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(unfinished, dir_fd=folder)
            raise
        os.fsync(folder)


def remove_unfinished(folder: Path, *, may_be_link: bool = False) -> None:
    """Remove what was being written here by processes that were killed.

    INVARIANT: nobody is writing here, which whoever calls this holds a lock for.
    """
    with _folder(folder, may_be_link=may_be_link) as found:
        for name in os.listdir(found):
            if _UNFINISHED.fullmatch(name):
                # A folder of such a name is a stranger's, and in nobody's way.
                with suppress(FileNotFoundError, IsADirectoryError):
                    os.unlink(name, dir_fd=found)


def link_plain(source: Path, path: Path) -> None:
    """Give a file another name, in a folder that is no link."""
    with _folder(path.parent, may_be_link=False) as folder:
        with suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=folder)
        os.link(source, path.name, dst_dir_fd=folder, follow_symlinks=False)
        os.fsync(folder)


@contextmanager
def _folder(path: Path, *, may_be_link: bool) -> Iterator[int]:
    """A folder, opened. What happens there by this number happens in no other."""
    flags = os.O_RDONLY | os.O_DIRECTORY | (0 if may_be_link else os.O_NOFOLLOW)
    try:
        folder = os.open(path, flags)
    except NotADirectoryError as error:
        raise RunError(f"{path} is no plain folder: remove it") from error
    try:
        yield folder
    finally:
        os.close(folder)


def _checked(path: Path, name: str | Path, flags: int, folder: int | None = None) -> int:
    problem = f"{path} is no plain file: remove it"
    try:
        found = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666, dir_fd=folder)
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise RunError(problem) from error
        raise
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise RunError(problem)
    os.set_blocking(found, True)
    return found
