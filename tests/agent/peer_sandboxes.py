"""Processes in a network of their own, as a worker's sandbox has it, with the inner carrier."""

import asyncio
import contextlib
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from worker_agent.peers.inner import Config, sync_ports

ROOT = Path(__file__).resolve().parents[2]
INNER = [sys.executable, "-m", "worker_agent.peers.inner"]


def secluded(folder: Path) -> list[str]:
    """A network that has only its loopback address, and the files of this machine to read."""
    return [
        *("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--bind", str(folder), str(folder), "--unshare-net", "--unshare-pid"),
        *("--setenv", "TMPDIR", str(folder), "--die-with-parent"),
    ]


@contextlib.asynccontextmanager
async def inside(
    folder: Path,
    slot: int,
    command: Sequence[str],
    workers: int = 2,
    ports: Sequence[Sequence[int]] | None = None,
) -> AsyncIterator[Process]:
    """The command of worker `slot`, whose sockets are in `folder / "doors"`."""
    doors = folder / "doors"
    doors.mkdir(exist_ok=True)
    Config(str(doors), slot, ports or sync_ports(workers)).write(folder / "inner.json")
    process = await asyncio.create_subprocess_exec(
        *(*secluded(folder), *INNER, str(folder / "inner.json"), "--", *command),
        cwd=ROOT,
        # gRPC would look for a proxy even on the way to itself.
        env={name: value for name, value in os.environ.items() if "proxy" not in name.lower()},
        stdin=PIPE,
        stdout=PIPE,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
