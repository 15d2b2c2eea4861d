"""What a process that ended has left in its log."""

import errno
import os
import stat
from pathlib import Path
from typing import IO

from trainyard.engine.errors import RunError

_READ_BYTES = 4096
_SHOWN = 300
# Of a link, a pipe that nobody reads, a folder.
_NOT_PLAIN = (errno.ELOOP, errno.ENXIO, errno.EISDIR)


def last_line(path: Path, since: int = 0) -> str:
    """The last line that was written after the first `since` bytes; nothing if there is none."""
    with open(_descriptor(path, os.O_RDONLY), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(since, size - _READ_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:_SHOWN] if lines else ""


def open_own(path: Path) -> IO[bytes]:
    """A log to be added to, which is made if it is not there."""
    return open(_descriptor(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")


def _descriptor(path: Path, flags: int) -> int:
    """A plain file, opened. Who writes into this folder may be a stranger in a sandbox.

    A link there would lead to a file of ours, and a pipe would have us wait.
    """
    problem = f"{path} is no plain file: remove it"
    try:
        found = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise RunError(problem) from error
        raise
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise RunError(problem)
    os.set_blocking(found, True)
    return found
