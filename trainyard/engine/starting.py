"""A worker as a process: how it is started, heard and ended, and why it ended."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.confining import Confined, Confinement, absolute, reach_of
from trainyard.engine.logs import last_line, open_own
from trainyard.engine.worker import EXIT_LOST_PEER, Job

_LOG = "worker.log"
_JOB = "job.json"
_GRACE_S = 10.0
_SHELL_SIGNALS = 128
READ_BYTES = 1 << 16


def reason_of(job: Job, status: int) -> str:
    """How a worker ended, and what it had to say."""
    status = plain_status(status)
    if status == -signal.SIGKILL:
        return f"worker {job.slot} was killed by SIGKILL"
    if status == EXIT_LOST_PEER:
        return f"worker {job.slot} lost another one"
    ending = f"ended with status {status}"
    if status < 0:
        ending = f"was killed by {signal.Signals(-status).name}"
    said = last_line(job.folder / _LOG)
    return f"worker {job.slot} {ending}" + (f": {said}" if said else "")


@contextlib.contextmanager
def started(
    job: Job, confinement: Confinement | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """A worker of its own, in a sandbox if there is one."""
    if confinement is not None:
        with confined(job, confinement) as one:
            yield one
        return
    path = _written(job)
    with _opened_log(job) as log:
        worker = subprocess.Popen(
            _command(path),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            preexec_fn=dying_with_parent(),
        )
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()
        output_of(worker).close()


@contextlib.contextmanager
def confined(
    job: Job,
    confinement: Confinement,
    *,
    before: Sequence[str] = (),
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
) -> Iterator[Confined]:
    """A worker in a sandbox, which reaches the files of its job and those named here.

    `before` is a command that runs in the sandbox and is given the worker's as its last arguments.
    If the manifest names a class of machine, ours has to be known before (`find_class`).
    """
    job = absolute(job)
    path = _written(job)
    reach = reach_of(job, readable, writable)
    with (
        _opened_log(job) as log,
        confinement.running(
            [*before, *_command(path)],
            readable=reach.readable,
            writable=reach.writable,
            environment=reach.environment,
            log=log,
        ) as worker,
    ):
        yield worker


def _command(job: Path) -> list[str]:
    return [sys.executable, "-m", "trainyard.engine.worker", str(job)]


def _written(job: Job) -> Path:
    """The job in its file. What an earlier worker left at that place is replaced, not followed."""
    job.folder.mkdir(parents=True, exist_ok=True)
    if job.exchange is not None:
        job.exchange.mkdir(parents=True, exist_ok=True)
    path = job.folder / _JOB
    path.unlink(missing_ok=True)
    with path.open("x") as file:
        file.write(job.model_dump_json())
    return path


def _opened_log(job: Job) -> IO[bytes]:
    """The log, to be added to. A worker before may have left a link to a file of ours there."""
    return open_own(job.folder / _LOG)


def plain_status(status: int) -> int:
    """The status of a worker as it would be without a sandbox, which says 128 + n for signal n."""
    return _SHELL_SIGNALS - status if status > _SHELL_SIGNALS else status


def status_of(worker: "subprocess.Popen[bytes]") -> int:
    """How a worker ended that has closed its output. One that does not end at that is killed."""
    try:
        return worker.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        worker.kill()
        return worker.wait()


def output_of(worker: "subprocess.Popen[bytes]") -> IO[bytes]:
    if worker.stdout is None:
        raise TypeError("a worker's output is a pipe")
    return worker.stdout
