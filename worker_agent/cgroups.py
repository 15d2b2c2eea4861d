"""Control groups: limits that the kernel keeps for all processes of a task together.

Both versions are known. They are used where this process may make groups, which is so for root, and
for a user whose session was handed a part of the tree. Elsewhere there are limits for each process.
"""

import contextlib
import errno
import itertools
import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_OWN = Path("/proc/self")
_PREFIX = "trainyard-"
_CONTROLLERS = ("memory", "pids")
# Used where it is there; a task without it has as many cores as it likes.
_CPU = "cpu"
# What it is told to, in version 1 and in version 2.
_QUOTA, _MOST = "cpu.cfs_quota_us", "cpu.max"
# Of so many microseconds a group gets its part.
_PERIOD_US = 100_000
# Where the agent itself goes, in a group that it was handed.
_SEAT = f"{_PREFIX}agent"
_END_S = 10.0
_POLL_S = 0.01
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Tree:
    """Where groups can be made: a folder for each controller, in version 2 the same for all."""

    version: int
    parents: Mapping[str, Path]

    @property
    def places(self) -> list[Path]:
        return list(dict.fromkeys(self.parents.values()))


def find_tree(own: Path = _OWN) -> Tree:
    """The places in which this process may make groups; none at all is a normal case."""
    groups = _own_groups((own / "cgroup").read_text())
    found: dict[str, Path] = {}
    for root, mount, kind, options in _mounts((own / "mountinfo").read_text()):
        if kind == "cgroup2" and "" in groups:
            below = _below(mount, root, groups[""])
            place = None if below is None else _delegated(mount, below)
            if place is not None:
                handed_on = (place / "cgroup.subtree_control").read_text().split()
                more = (_CPU,) if _CPU in handed_on and _has_quota(place) else ()
                return Tree(2, dict.fromkeys((*_CONTROLLERS, *more), place))
        for controller in set(options) & {*_CONTROLLERS, _CPU} & groups.keys():
            below = _below(mount, root, groups[controller])
            if kind != "cgroup" or below is None or not os.access(below, os.W_OK | os.X_OK):
                continue
            # Kernels may be built without, and then nobody is to say that it is kept.
            if controller != _CPU or (below / _QUOTA).exists():
                found[controller] = below
    return Tree(1, found)


def _has_quota(place: Path) -> bool:
    """Whether groups in a folder of version 2 can be held to cores: the root itself cannot."""
    return any((group / _MOST).exists() for group in place.iterdir() if group.is_dir())


def make_room(own: Path = _OWN, controllers: Sequence[str] = _CONTROLLERS) -> str | None:
    """Let groups be made below the one that this process was handed, as by a service's `Delegate`.

    In version 2 a group has processes or limited groups in it, so this process moves into one of
    its own. To be called before it starts any other. Why there will be no groups, or None.
    """
    group = _own_groups((own / "cgroup").read_text()).get("")
    for root, mount, kind, _ in _mounts((own / "mountinfo").read_text()):
        place = None if kind != "cgroup2" or group is None else _below(mount, root, group)
        if place is None:
            continue
        there_are = (place / "cgroup.controllers").read_text().split()
        if not set(controllers) <= set(there_are) or not _is_writable(place):
            return f"{place} is not handed to this user with {' and '.join(controllers)}"
        # Nobody else's processes are moved about.
        if (place / "cgroup.procs").read_text().split() != [str(os.getpid())]:
            return f"{place} has other processes than the agent in it"
        more = [_CPU] if _CPU in there_are and _CPU not in controllers else []
        return _divide(place, [*controllers, *more])
    return "no control groups are to be seen"


def _divide(place: Path, controllers: Sequence[str]) -> str | None:
    seat = place / _SEAT
    try:
        seat.mkdir(exist_ok=True)
        (seat / "cgroup.procs").write_text("0")
        handed_on = " ".join(f"+{controller}" for controller in controllers)
        (place / "cgroup.subtree_control").write_text(handed_on)
    except OSError as error:
        return f"{place} cannot be divided: {error.strerror}"
    return None


def _own_groups(text: str) -> dict[str, str]:
    """The group of this process for each controller; under no name that of version 2."""
    groups: dict[str, str] = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        groups |= dict.fromkeys(controllers.split(","), path)
    return groups


def _mounts(text: str) -> list[tuple[str, Path, str, list[str]]]:
    found = []
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        root, mount = before.split()[3:5]
        kind, _, options = after.split(" ", 2)
        found.append((root, Path(mount), kind, options.split(",")))
    return found


def _below(mount: Path, root: str, group: str) -> Path | None:
    """Where a group is in a mount, which may show only a part of the tree."""
    if root != "/" and group != root and not group.startswith(f"{root}/"):
        return None
    place = mount / group.removeprefix(root if root != "/" else "").lstrip("/")
    return place if place.is_dir() else None


def _delegated(mount: Path, own: Path) -> Path | None:
    """The nearest folder above that hands on both controllers, and that we may write.

    It is not the own one unless that is the root: in version 2 a group has processes or groups.
    """
    for place in (own, *own.parents):
        handed_on = (place / "cgroup.subtree_control").read_text().split()
        if set(_CONTROLLERS) <= set(handed_on):
            # Who moves a process has to be allowed to in what its old and new group share.
            return place if _is_writable(place) else None
        if place == mount:
            break
    return None


def _is_writable(place: Path) -> bool:
    return os.access(place, os.W_OK | os.X_OK) and os.access(place / "cgroup.procs", os.W_OK)


class Group:
    """One group for one task, in all trees that there are. Gone when it is left, with all in it."""

    def __init__(
        self, tree: Tree, memory_bytes: int, processes: int, cores: float | None = None
    ) -> None:
        self._version = tree.version
        name = f"{_PREFIX}{os.getpid()}-{next(_numbers)}"
        self._folders = {controller: place / name for controller, place in tree.parents.items()}
        for place in tree.places:
            _sweep(place)
            (place / name).mkdir()
        if "memory" in self._folders:
            self._limit_memory(memory_bytes)
        if "pids" in self._folders:
            # Bubblewrap has two processes of its own.
            (self._folders["pids"] / "pids.max").write_text(str(processes + 2))
        if _CPU in self._folders and cores is not None:
            self._limit_cpu(self._folders[_CPU], cores)

    def _limit_cpu(self, folder: Path, cores: float) -> None:
        part_us = max(1_000, int(cores * _PERIOD_US))
        if self._version == 2:
            (folder / _MOST).write_text(f"{part_us} {_PERIOD_US}")
            return
        (folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
        try:
            (folder / _QUOTA).write_text(str(part_us))
        except OSError as error:
            # So says version 1 where less is given to what is above, and then that is the limit.
            if error.errno != errno.EINVAL:
                raise

    def _limit_memory(self, size: int) -> None:
        folder = self._folders["memory"]
        if self._version == 1:
            (folder / "memory.limit_in_bytes").write_text(str(size))
            swap, most = folder / "memory.memsw.limit_in_bytes", size
        else:
            (folder / "memory.max").write_text(str(size))
            swap, most = folder / "memory.swap.max", 0
        # Else what does not fit goes to the disk. Not all kernels count that.
        if swap.exists():
            swap.write_text(str(most))

    def join(self) -> None:
        """Put this process, and its children from now on, into the group."""
        for folder in set(self._folders.values()):
            (folder / "cgroup.procs").write_text("0")

    @property
    def out_of_memory(self) -> bool:
        name = "memory.oom_control" if self._version == 1 else "memory.events"
        return self._count("memory", name, "oom_kill") > 0

    @property
    def throttled(self) -> int:
        """In how many periods it had to wait for the next one."""
        return self._count(_CPU, "cpu.stat", "nr_throttled")

    @property
    def out_of_processes(self) -> bool:
        return self._count("pids", "pids.events", "max") > 0

    def _count(self, controller: str, file: str, name: str) -> int:
        if controller not in self._folders:
            return 0
        lines = (self._folders[controller] / file).read_text().splitlines()
        counts = dict(line.split() for line in lines)
        return int(counts.get(name, 0))

    def remove(self) -> None:
        """End all that is in it, and then the group itself."""
        until = time.monotonic() + _END_S
        for folder in set(self._folders.values()):
            while folder.exists():
                for pid in map(int, (folder / "cgroup.procs").read_text().split()):
                    # Of a process that has no number here the kernel says zero, which means us.
                    with contextlib.suppress(ProcessLookupError):
                        if pid > 0:
                            os.kill(pid, signal.SIGKILL)
                try:
                    folder.rmdir()
                except OSError:
                    # A process that was killed takes a moment to be gone.
                    if time.monotonic() > until:
                        raise
                    time.sleep(_POLL_S)


def _sweep(place: Path) -> None:
    """Remove what agents left here that were killed. A group with processes in it stays."""
    for folder in place.glob(f"{_PREFIX}*-*"):
        owner = folder.name.removeprefix(_PREFIX).partition("-")[0]
        if owner.isdecimal() and not Path("/proc", owner).exists():
            with contextlib.suppress(OSError):
                folder.rmdir()
