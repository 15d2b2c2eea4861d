"""Probes in sandboxes, for tests."""

import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from worker_agent.sandbox import Sandbox


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe said and how it ended."""

    output: str
    log: str
    status: int
    reason: str | None


def probe(
    sandbox: Sandbox,
    program: str,
    *arguments: str,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
) -> Probed:
    """Run a program of Python in a sandbox to its end."""
    with (
        tempfile.TemporaryFile() as log,
        sandbox.running(
            [sys.executable, "-c", program, *arguments],
            readable=readable,
            writable=writable,
            log=log,
        ) as process,
    ):
        assert process.stdout is not None
        output = process.stdout.read().decode()
        status = process.wait()
        log.seek(0)
        said = log.read().decode()
        reason = process.reason(status, said.strip().splitlines()[-1] if said.strip() else "")
    return Probed(output, said, status, reason)


def processes_with(marker: str) -> list[int]:
    """Of all processes of this machine, those that have a word on their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes()
        except OSError:
            continue
        if marker.encode() in words and int(path.parent.name) != os.getpid():
            found.append(int(path.parent.name))
    return found


def groups_of(sandbox: Sandbox) -> list[Path]:
    """The control groups that this process has made and that are there."""
    mine = f"trainyard-{os.getpid()}-*"
    return [group for place in sandbox.report.tree.places for group in place.glob(mine)]
