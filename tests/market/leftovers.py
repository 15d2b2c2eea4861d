"""What tests must not leave behind: processes, ports, control groups, mounts and files."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from worker_agent.cgroups import Group, find_tree

# What was killed takes a moment to be gone.
_PATIENCE_S = 10.0
_POLL_S = 0.05


@contextmanager
def leaving_nothing(folder: Path) -> Iterator[None]:
    """Fails if anything that has to do with `folder` is there after the block, or if a child is."""
    before = _children(), _groups(), _mounts()
    yield
    deadline = time.monotonic() + _PATIENCE_S
    while (left := _left(folder, *before)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    assert left == []


def _left(folder: Path, children: set[int], groups: set[Path], mounts: set[str]) -> list[str]:
    mine = _children() - children
    found = [f"process {pid}: {_told(pid)}" for pid in sorted(mine | _users(folder))]
    found += [f"control group {group}" for group in _groups() - groups if not _lives(group)]
    found += [f"mount {mount}" for mount in _mounts() - mounts if str(folder) in mount]
    return found


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _users(folder: Path) -> set[int]:
    """Processes that were started with something of the folder, wherever they hang by now."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            line, where = process.cmdline(), process.cwd()
            is_user = any(str(folder) in word for word in [*line, where])
            if is_user and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
    return found - {psutil.Process().pid}


def _told(pid: int) -> str:
    with suppress(psutil.Error):
        return " ".join(psutil.Process(pid).cmdline())
    return "it has ended since"


def _groups() -> set[Path]:
    """Those that are there when the next one has swept up behind agents that were killed."""
    Group(find_tree(), 1 << 30, 64).remove()
    return {group for place in find_tree().places for group in place.glob("trainyard-*")}


def _lives(group: Path) -> bool:
    return psutil.pid_exists(int(group.name.split("-")[1]))


def _mounts() -> set[str]:
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
