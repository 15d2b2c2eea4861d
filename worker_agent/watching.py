"""What the processes of a sandbox hold right now, seen from outside.

The kernel keeps no limit on the sum of files, and without control groups none on the sum of memory.
So whoever runs a task looks now and then.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

_PROC = Path("/proc")
_BLOCK_BYTES = 512
# What a file takes at least, so that empty ones are not free.
_LEAST_BYTES = 4096
_KIB = 1 << 10
# A folder that cannot be looked into, or that lies deeper than any of ours, is there to hide
# something, and counts for more than there is.
_DEEPEST = 32
_ENDLESS = 1 << 62
_NOWHERE = (-1, -1)


def size_of(folder: Path) -> int:
    """The bytes that a folder and all in it take on disk. Links are not followed."""
    return _taken(_found(folder))


def disk_of(folders: Iterable[Path], pids: Iterable[int]) -> int:
    """What folders take, and files without a name that a process keeps open."""
    found: dict[tuple[int, int], int] = {}
    for folder in folders:
        found |= _found(folder)
    for pid in pids:
        found |= _unnamed(pid)
    return _taken(found)


def memory_of(pids: Iterable[int]) -> int:
    """The memory that processes have of their own or share, without that of files."""
    return sum(_held(pid) for pid in pids)


def descendants_of(pid: int) -> list[int]:
    """All processes below one; in a sandbox none can leave the tree of its first one."""
    found, unseen = [], [pid]
    while unseen:
        children = list(_children_of(unseen.pop()))
        found += children
        unseen += children
    return found


def _children_of(pid: int) -> Iterator[int]:
    for file in (_PROC / str(pid) / "task").glob("*/children"):
        with contextlib.suppress(OSError):
            yield from map(int, file.read_text().split())


def _held(pid: int) -> int:
    total = 0
    with contextlib.suppress(OSError):
        for line in (_PROC / str(pid) / "status").read_text().splitlines():
            if line.startswith(("RssAnon:", "RssShmem:")):
                total += int(line.split()[1]) * _KIB
    return total


def _found(folder: Path) -> dict[tuple[int, int], int]:
    """The sizes of files, each once however many names it has."""
    found: dict[tuple[int, int], int] = {}
    unseen = [(folder, 0)]
    while unseen:
        place, depth = unseen.pop()
        try:
            with os.scandir(place) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    found |= _one(status)
                    if stat.S_ISDIR(status.st_mode):
                        unseen.append((Path(entry.path), depth + 1))
        except (FileNotFoundError, NotADirectoryError):
            # What goes away while we look takes nothing.
            continue
        except OSError:
            return {_NOWHERE: _ENDLESS}
        if depth > _DEEPEST:
            return {_NOWHERE: _ENDLESS}
    return found


def _unnamed(pid: int) -> dict[tuple[int, int], int]:
    """Files that a process holds open and that no folder has any more."""
    found: dict[tuple[int, int], int] = {}
    with contextlib.suppress(OSError):
        for link in (_PROC / str(pid) / "fd").iterdir():
            with contextlib.suppress(OSError):
                status = link.stat()
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 0:
                    found |= _one(status)
    return found


def _one(status: os.stat_result) -> dict[tuple[int, int], int]:
    size = max(status.st_blocks * _BLOCK_BYTES, _LEAST_BYTES)
    return {(status.st_dev, status.st_ino): size}


def _taken(found: dict[tuple[int, int], int]) -> int:
    return sum(found.values())
