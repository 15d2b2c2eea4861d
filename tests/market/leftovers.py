"""What tests must not leave behind: processes, ports, control groups, mounts and files."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from worker_agent.cgroups import Group, find_tree

# What was killed takes a moment to be gone.
_PATIENCE_S = 10.0
_POLL_S = 0.05
_SCRATCH = "tmp"


@contextmanager
def leaving_nothing(folder: Path, patience_s: float = _PATIENCE_S) -> Iterator[None]:
    """Fails if anything that has to do with `folder` is there after the block, or if a child is.

    What is started in the block puts its temporary files into the folder: by that it is known
    whose they are, and whose a process is, wherever it hangs by then.
    """
    scratch = folder / _SCRATCH
    scratch.mkdir()
    before = _children(), _groups(), _mounts(), _ports({psutil.Process().pid})
    with temporary_files_in(scratch):
        yield
    deadline = time.monotonic() + patience_s
    while (left := _left(folder, *before)) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if left:
        raise AssertionError(f"left behind: {left}")


@contextmanager
def temporary_files_in(scratch: Path) -> Iterator[None]:
    """For processes that are started in the block; this one has chosen its place before."""
    tempfile.gettempdir()
    before = os.environ.get("TMPDIR")
    os.environ["TMPDIR"] = str(scratch)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TMPDIR"]
        else:
            os.environ["TMPDIR"] = before


def _left(
    folder: Path, children: set[int], groups: set[Path], mounts: set[str], ports: set[str]
) -> list[str]:
    mine = (_children() - children) | _users(folder)
    found = [f"process {pid}: {_told(pid)}" for pid in sorted(mine)]
    found += [f"port {port}" for port in _ports({psutil.Process().pid, *mine}) - ports]
    found += [f"control group {group}" for group in _groups() - groups if not _lives(group)]
    found += [f"mount {mount}" for mount in _mounts() - mounts if str(folder) in mount]
    found += [f"temporary file {path}" for path in sorted((folder / _SCRATCH).iterdir())]
    return found


def _children() -> set[int]:
    return {child.pid for child in psutil.Process().children(recursive=True)}


def _users(folder: Path) -> set[int]:
    """Processes that were started with something of the folder, wherever they hang by now."""
    found = set()
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            known = [*process.cmdline(), process.cwd(), process.environ().get("TMPDIR", "")]
            is_user = any(str(folder) in word for word in known)
            if is_user and process.status() != psutil.STATUS_ZOMBIE:
                found.add(process.pid)
    return found - {psutil.Process().pid}


def _ports(pids: set[int]) -> set[str]:
    """Where these processes listen for others."""
    found = set()
    for pid in pids:
        with suppress(psutil.Error):
            for one in psutil.Process(pid).net_connections("tcp"):
                if one.status == psutil.CONN_LISTEN:
                    found.add(f"{one.laddr.ip}:{one.laddr.port} of process {pid}")
    return found


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
