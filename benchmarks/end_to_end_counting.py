"""The processor time of a command and of all that it ever starts.

    python -m benchmarks.end_to_end_counting COUNTED GRACE_S [--alone] -- COMMAND ...

With `--alone` the command has a network of its own, in which nothing but the loopback address
exists. What it leaves behind has so many seconds to end, and is ended then.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from benchmarks.end_to_end_accounts import LOOK_S, Accounts, adopt
from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.seclusion import seclude

_ROOT = Path(__file__).resolve().parent.parent
_ORPHANS_S = 0.25
_TAIL = 3000


def counted(
    command: Sequence[str],
    folder: Path,
    *,
    alone: bool = False,
    environment: Mapping[str, str] | None = None,
    grace_s: float = 20.0,
) -> float:
    """Run a command to its end, and say how many seconds of processors it took."""
    told, log = folder / "counted.json", folder / "log"
    with log.open("w") as out:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.end_to_end_counting", str(told)),
                str(grace_s),
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


def main() -> int:
    told, grace_s, *rest = sys.argv[1:]
    split = rest.index("--")
    adopt()
    if "--alone" in rest[:split]:
        seclude()
    # Looked at from here, since a thread would have to be there before it.
    accounts = Accounts([os.getpid()])
    command = subprocess.Popen(rest[split + 1 :], preexec_fn=dying_with_parent())
    while True:
        accounts.look()
        try:
            command.wait(LOOK_S)
            break
        except subprocess.TimeoutExpired:
            continue
    _wait_for_orphans(accounts, float(grace_s))
    Path(told).write_text(json.dumps({"cpu_s": accounts.work_s()[os.getpid()]}))
    return command.returncode


def _wait_for_orphans(accounts: Accounts, grace_s: float) -> None:
    deadline = time.monotonic() + grace_s
    while True:
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended:
            continue
        accounts.look()
        if time.monotonic() > deadline:
            for child in psutil.Process().children(recursive=True):
                # One that ends meanwhile needs no killing.
                with suppress(psutil.Error):
                    child.send_signal(signal.SIGKILL)
        time.sleep(_ORPHANS_S)


if __name__ == "__main__":
    sys.exit(main())
