"""What this machine has, as far as settings start from it."""

import os
from pathlib import Path

# As a container is shown the limits of its own group, by either version of control groups.
_LIMITS = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
_LEAST_BYTES = 1 << 30
_UNIT_BYTES = 1 << 20


def cores_here() -> float:
    """Those that this process may use."""
    return float(len(os.sched_getaffinity(0)))


def memory_for_tasks() -> int:
    """Three quarters of the memory, in whole MiB: the rest is for the agent and all else."""
    return max(memory_bytes() * 3 // 4 // _UNIT_BYTES * _UNIT_BYTES, _LEAST_BYTES)


def memory_bytes(limits: tuple[Path, ...] = _LIMITS) -> int:
    """Of this machine, or of the container that this is."""
    found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in limits:
        try:
            found = min(found, int(path.read_text()))
        except (OSError, ValueError):
            # It is not there, or says "max".
            continue
    return found
