"""Bringing what was written to disk, so that it is there after a crash."""

import ctypes
import os
import tempfile
from pathlib import Path

_libc = ctypes.CDLL(None, use_errno=True)


def sync_file_system(folder: Path) -> None:
    """Bring all that was written below `folder` to disk: one call, however many files."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        if _libc.syncfs(handle) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
    finally:
        os.close(handle)


def write_durably(path: Path, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
