"""What a process that ended has left in its log."""

import os
from pathlib import Path
from typing import IO

from trainyard.engine.plain_files import descriptor

_READ_BYTES = 4096
_SHOWN = 300


def last_line(path: Path, since: int = 0) -> str:
    """The last line that was written after the first `since` bytes; nothing if there is none."""
    with open(descriptor(path, os.O_RDONLY), "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(since, size - _READ_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:_SHOWN] if lines else ""


def open_own(path: Path) -> IO[bytes]:
    """A log to be added to, which is made if it is not there."""
    return open(descriptor(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), "ab")
