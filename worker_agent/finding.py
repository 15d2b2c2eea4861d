"""Whether this machine can have a sandbox, what one would be made of, and what is missing."""

import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from trainyard.protocol.errors import PermanentError
from worker_agent.cgroups import Tree, find_tree
from worker_agent.seccomp import is_known

_LEAST_BWRAP = (0, 8)
# Since then each name space of users counts its processes by itself.
_LEAST_LINUX = (5, 14)
_SYSTEM = Path("/usr")
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# The loader's list of libraries; and where the number of cores and the sizes of caches are read.
_SINGLE = ("/etc/ld.so.cache", "/sys/devices/system/cpu")
_PACKAGES = ("trainyard", "worker_agent", "tensorflow")


class SandboxError(PermanentError):
    """There is no sandbox, or not this one; says what is missing, and how to get it."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}: {fix}")
        self.what, self.fix = what, fix


@dataclass(frozen=True, slots=True)
class SandboxReport:
    """What a sandbox of this machine is made of."""

    bwrap: Path
    version: str
    # Where control groups can be made.
    tree: Tree
    # Arguments that show interpreter and libraries, and where Python finds ours.
    own_paths: tuple[str, ...]
    import_path: tuple[str, ...]

    @property
    def groups_memory(self) -> bool:
        return "memory" in self.tree.parents

    @property
    def groups_processes(self) -> bool:
        return "pids" in self.tree.parents

    @property
    def cores(self) -> str:
        """How the cores that a task uses are limited, for people."""
        if "cpu" in self.tree.parents:
            return f"cgroup v{self.tree.version}, all processes of a task together"
        return "not at all: the agent may make no control groups with the controller cpu"

    @property
    def memory(self) -> str:
        """How memory is limited, for people."""
        if self.groups_memory:
            return f"cgroup v{self.tree.version}, all processes of a task together"
        return (
            "rlimits for each process, and a look at the sum now and then; start the agent with "
            "'systemd-run --user --scope' for a cgroup"
        )

    @property
    def processes(self) -> str:
        """How their number is limited, for people."""
        return f"cgroup v{self.tree.version}" if self.groups_processes else "rlimits"


def look() -> SandboxReport:
    """What a sandbox here would be made of; an error that names the fix if something is missing."""
    found = shutil.which("bwrap")
    if found is None:
        fix = "install bubblewrap, for instance with: apt install bubblewrap"
        raise SandboxError("bubblewrap is not installed", fix)
    if not is_known():
        what = f"the calls of {platform.machine()} are not known to the sandbox"
        raise SandboxError(what, "take a machine with x86-64 or AArch64")
    version = _version(found)
    shown, import_path = _own_paths()
    report = SandboxReport(Path(found), version, find_tree(), tuple(shown), tuple(import_path))
    if not report.groups_processes:
        _require_counting()
    return report


def refuse_wide(paths: Iterable[Path]) -> None:
    """Refuse what a task must never be shown: the home directory, or what that is in."""
    homes = {Path.home().absolute(), Path.home().resolve()}
    for path in paths:
        if any(home.is_relative_to(one) for home in homes for one in (path, path.resolve())):
            fix = "name a folder of its own for it"
            raise SandboxError(f"{path} would show a task the home directory", fix)


def _version(bwrap: str) -> str:
    said = subprocess.run([bwrap, "--version"], capture_output=True, text=True).stdout.split()
    version = said[-1] if said else "?"
    if _numbers(version) < _LEAST_BWRAP:
        least = ".".join(map(str, _LEAST_BWRAP))
        raise SandboxError(f"bubblewrap {version} is too old", f"install {least} or newer")
    return version


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])


def _require_counting() -> None:
    """Without control groups, the kernel has to count processes of each sandbox by itself."""
    what = "the number of a task's processes cannot be limited here"
    if os.getuid() == 0:
        fix = "run the agent as an ordinary user, or let root write to /sys/fs/cgroup"
        raise SandboxError(f"{what}, as root is exempt and no cgroup may be made", fix)
    if _numbers(platform.release()) < _LEAST_LINUX:
        fix = "use Linux 5.14 or newer, or start the agent with 'systemd-run --user --scope'"
        raise SandboxError(what, fix)


def _own_paths() -> tuple[list[str], list[str]]:
    """Arguments that show what Python and TensorFlow need, and the path for imports."""
    arguments = ["--ro-bind", str(_SYSTEM), str(_SYSTEM)]
    for name in _MERGED:
        path = Path("/") / name
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for single in _SINGLE:
        arguments += ["--ro-bind-try", single, single]
    interpreter = Path(sys.executable).resolve().parents[1]
    shown: list[Path] = []
    for folder in (Path(sys.prefix), Path(sys.base_prefix), interpreter):
        if not any(folder.is_relative_to(one) for one in (_SYSTEM, *shown)):
            shown.append(folder)
    import_path: list[str] = []
    for place in _packages():
        parent = place.parent
        if not any(place.is_relative_to(one) for one in (_SYSTEM, *shown)):
            # Of a checkout only the package; of installed ones also those that it needs.
            shown.append(parent if parent.name in ("site-packages", "dist-packages") else place)
            import_path += [] if str(parent) in import_path else [str(parent)]
    refuse_wide(shown)
    for folder in shown:
        arguments += ["--ro-bind", str(folder), str(folder)]
    return arguments, import_path


def _packages() -> list[Path]:
    """Where our packages are. Not every machine of an agent trains."""
    found = [importlib.util.find_spec(name) for name in _PACKAGES]
    places = [one.submodule_search_locations for one in found if one is not None]
    return [Path(place[0]).absolute() for place in places if place]
