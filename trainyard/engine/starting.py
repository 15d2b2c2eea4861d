"""A worker as a process: how it is started, heard and ended, and why it ended."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import IO

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.logs import last_line
from trainyard.engine.worker import EXIT_LOST_PEER, Job

_LOG = "worker.log"
_JOB = "job.json"
_GRACE_S = 10.0
READ_BYTES = 1 << 16


def reason_of(job: Job, status: int) -> str:
    """How a worker ended, and what it had to say."""
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
def started(job: Job) -> Iterator["subprocess.Popen[bytes]"]:
    job.folder.mkdir(parents=True, exist_ok=True)
    path = job.folder / _JOB
    path.write_text(job.model_dump_json())
    with (job.folder / _LOG).open("ab") as log:
        worker = subprocess.Popen(
            [sys.executable, "-m", "trainyard.engine.worker", str(path)],
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
