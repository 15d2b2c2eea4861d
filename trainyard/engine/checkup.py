"""What a machine has and lacks, for whoever wants to train or audit on it."""

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from trainyard.content.kubo_binary import KUBO_VERSION, find_kubo
from trainyard.content.limits import GIB
from trainyard.engine.classes import find_class
from trainyard.engine.environment import EnvironmentClass
from trainyard.engine.errors import RunError
from trainyard.engine.processor import processor_name

# A run of the smallest network takes about half of it, and states are kept of every segment.
_LEAST_MEMORY_BYTES = 2 * GIB
_LEAST_DISK_BYTES = 2 * GIB
_TRY_S = 30.0


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is missing. What is not `needed` can be done without."""

    what: str
    fix: str
    needed: bool = True


@dataclass(frozen=True, slots=True)
class Checkup:
    environment_class: EnvironmentClass | None
    processor: str
    cores: int
    memory_bytes: int
    free_disk_bytes: int
    own_network: bool
    kubo: Path | None
    problems: tuple[Problem, ...]

    @property
    def is_ill(self) -> bool:
        return any(problem.needed for problem in self.problems)


def examine(folder: Path, *, fresh: bool = False) -> Checkup:
    """Look at everything, also where the first thing is missing already."""
    problems = []
    known = None
    if importlib.util.find_spec("tensorflow") is None:
        fix = "install it with: pip install 'trainyard[tf]'"
        problems.append(Problem("TensorFlow is not installed", fix))
    else:
        try:
            known = find_class(fresh=fresh)
        except RunError as error:
            fix = "reinstall it with: pip install --force-reinstall 'trainyard[tf]'"
            problems.append(Problem(f"the calibration failed: {error}", fix))
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if memory < _LEAST_MEMORY_BYTES:
        problems.append(Problem("less than 2 GiB of memory", "take a larger machine"))
    disk = shutil.disk_usage(_existing(folder)).free
    if disk < _LEAST_DISK_BYTES:
        fix = "make room, or name a folder on another disk with --folder"
        problems.append(Problem(f"less than 2 GiB of free disk at {folder.resolve()}", fix))
    refusal = _network_refusal()
    if refusal:
        what, _, fix = refusal.partition(": ")
        problems.append(Problem(what, fix or "run as root"))
    kubo = find_kubo()
    if kubo is None:
        fix = f"put Kubo {KUBO_VERSION} on PATH, or run 'python -m trainyard.content.kubo_binary'"
        what = "no Kubo is here, so content is served from the embedded store alone"
        problems.append(Problem(what, fix, needed=False))
    return Checkup(
        environment_class=known,
        processor=processor_name(),
        cores=len(os.sched_getaffinity(0)),
        memory_bytes=memory,
        free_disk_bytes=disk,
        own_network=not refusal,
        kubo=kubo,
        problems=tuple(problems),
    )


def _network_refusal() -> str:
    """Why workers cannot have a network of their own; nothing if they can."""
    # In a child: whoever moves there does not come back.
    program = "from trainyard.engine.seclusion import seclude; seclude()"
    try:
        tried = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=_TRY_S
        )
    except subprocess.TimeoutExpired:
        return f"a network of its own is not there after {_TRY_S:.0f} s: try again with less load"
    if tried.returncode == 0:
        return ""
    said = tried.stderr.strip().splitlines()
    return said[-1].partition(": ")[2] if said else "the attempt at a network of its own ended"


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there already."""
    folder = folder.resolve()
    return next(path for path in (folder, *folder.parents) if path.exists())
