"""What a process that ended has left in its log."""

import os
from pathlib import Path

_READ_BYTES = 4096
_SHOWN = 300


def last_line(path: Path, since: int = 0) -> str:
    """The last line that was written after the first `since` bytes; nothing if there is none."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(since, size - _READ_BYTES))
        lines = file.read().decode(errors="replace").strip().splitlines()
    return lines[-1][:_SHOWN] if lines else ""
