"""The processor time of a command and of all that it ever starts.

    python -m benchmarks.end_to_end_counting COUNTED [--alone] -- COMMAND ...

The kernel adds the time of a process to that of whoever waits for it. So this process makes itself
the one to which orphans are handed, waits for all of them, and writes what they took together.
With `--alone` they have a network of their own, in which nothing but the loopback address exists.
"""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.seclusion import seclude

_ROOT = Path(__file__).resolve().parent.parent
_PR_SET_CHILD_SUBREAPER = 36
# What a command leaves behind has so long to end by itself.
_GRACE_S = 20.0
_TAIL = 3000


def counted(
    command: Sequence[str],
    folder: Path,
    *,
    alone: bool = False,
    environment: Mapping[str, str] | None = None,
) -> float:
    """Run a command to its end, and say how many seconds of processors it took."""
    told, log = folder / "counted.json", folder / "log"
    with log.open("w") as out:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.end_to_end_counting", str(told)),
                *(("--alone",) if alone else ()),
                *("--", *command),
            ],
            cwd=_ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            preexec_fn=dying_with_parent(),
        )
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed: {log.read_text()[-_TAIL:]}")
    return float(json.loads(told.read_text())["cpu_s"])


def tree_cpu_s(pid: int) -> float:
    """What a process and its descendants took so far, those included that have ended.

    What has ended is in the account of whoever waited for it, and that one is alive or in the
    account of another, up to the first of them.
    """
    first = psutil.Process(pid)
    total = 0.0
    for process in (first, *first.children(recursive=True)):
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            # It has just ended; the next look finds it with its parent.
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def work_cpu_s(pid: int) -> float:
    """The same without the first of them: what an agent had done, and not that it was there."""
    own = psutil.Process(pid).cpu_times()
    return tree_cpu_s(pid) - own.user - own.system


# Kept when another program takes the process over.
_ADOPT = f"import ctypes, os, sys; ctypes.CDLL(None).prctl({_PR_SET_CHILD_SUBREAPER}, 1); "
_ADOPT += "os.execv(sys.argv[1], sys.argv[1:])"


def adopting(command: Sequence[str]) -> list[str]:
    """A command to which its orphans are handed, so that its tree has their time too.

    Sandboxes are killed with all that is in them, and then nobody is left who would wait for it.
    """
    return [sys.executable, "-c", _ADOPT, *command]


def main() -> int:
    told, *rest = sys.argv[1:]
    split = rest.index("--")
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1) != 0:
        raise OSError(ctypes.get_errno(), "orphans cannot be waited for on this system")
    if "--alone" in rest[:split]:
        seclude()
    code = subprocess.run(rest[split + 1 :], preexec_fn=dying_with_parent()).returncode
    _wait_for_orphans()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    Path(told).write_text(json.dumps({"cpu_s": used.ru_utime + used.ru_stime}))
    return code


def _wait_for_orphans() -> None:
    deadline = time.monotonic() + _GRACE_S
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended:
            continue
        if time.monotonic() > deadline:
            for child in psutil.Process().children(recursive=True):
                child.send_signal(signal.SIGKILL)
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main())
