"""The worker of the engine, in its sandbox: started, heard, and ended."""

import asyncio
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trainyard.engine.confining import Confined, Confinement, reach_of
from trainyard.engine.events import Event, Failed, read_event
from trainyard.engine.journal import write_whole
from trainyard.engine.logs import last_line, open_own
from trainyard.engine.supervisor import Jobs
from trainyard.engine.worker import EXIT_LOST_PEER, Job
from trainyard.protocol.errors import PermanentError, TransientError

_LOG, _JOB = "worker.log", "job.json"
_LOOK_EVERY_S = 2.0
_MOST_LINE_BYTES = 1 << 20
_NONSENSE = "the worker said what no worker says"


class LostPeerError(TransientError):
    """The worker ended, since another one was gone or for no reason that it could name."""


class LostWorkerError(LostPeerError):
    """The worker was ended, and did not say that another one was gone."""


class WorkerFailedError(PermanentError):
    """The worker cannot go on, and says why."""


@dataclass(frozen=True, slots=True)
class Worker:
    """One worker of a run. `prefix` is a command that runs it, `shared` a folder of that.

    Of an async run it may be who leads, and then has the worker `beside` it in its sandbox.
    """

    job: Job
    sandbox: Confinement
    prefix: Sequence[str] = ()
    shared: Path | None = None
    module: str = "trainyard.engine.worker"
    beside: Job | None = None

    async def run(self, hear: Callable[[Event], None]) -> None:
        """Run it to its end. Whoever cancels this ends it."""
        job = self.job
        job.folder.mkdir(parents=True, exist_ok=True)
        # What ran here before could have left links: neither of the two files follows one.
        path = job.folder / _JOB
        module = self.module
        if self.beside is None:
            write_whole(path, job.model_dump_json().encode())
        else:
            module = "trainyard.engine.leading"
            write_whole(path, Jobs(jobs=(self.beside, job)).model_dump_json().encode())
        command = [*self.prefix, sys.executable, "-m", module, str(path)]
        reach = reach_of(job, writable=() if self.shared is None else (self.shared,))
        with open_own(job.folder / _LOG) as log:
            since = log.tell()
            with self.sandbox.running(
                command,
                readable=reach.readable,
                writable=reach.writable,
                environment=reach.environment,
                log=log,
            ) as process:
                failed = await _follow(process, hear)
                status = await asyncio.to_thread(process.wait)
                said = last_line(job.folder / _LOG, since)
                _judge(process, status, failed, said)


def _judge(process: Confined, status: int, failed: Failed | None, said: str) -> None:
    """Raise why it ended, if that was not its end."""
    if status == 0 and failed is None:
        return
    limit = process.reason(status, said)
    if limit is not None:
        raise WorkerFailedError(limit)
    if failed is not None and not failed.lost_peer:
        raise WorkerFailedError(failed.reason)
    if status == EXIT_LOST_PEER or failed is not None:
        raise LostPeerError("" if failed is None else failed.reason)
    raise LostWorkerError(f"the worker ended with status {status}" + (f": {said}" if said else ""))


async def _follow(process: Confined, hear: Callable[[Event], None]) -> Failed | None:
    """Hear all that it says, and end it when it is over a limit."""
    if process.stdout is None:
        raise TypeError("a worker's output is a pipe")
    looking = asyncio.create_task(_look(process))
    try:
        return await _listen(process.stdout, hear)
    finally:
        looking.cancel()


async def _look(process: Confined) -> None:
    while process.breach() is None:
        await asyncio.sleep(_LOOK_EVERY_S)
    process.kill()


async def _listen(output: IO[bytes], hear: Callable[[Event], None]) -> Failed | None:
    reader = asyncio.StreamReader(limit=_MOST_LINE_BYTES)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), output
    )
    failed = None
    try:
        while (line := await _line(reader)).endswith(b"\n"):
            event = _event(line)
            if isinstance(event, Failed):
                failed = event
            hear(event)
    finally:
        transport.close()
    return failed


async def _line(reader: asyncio.StreamReader) -> bytes:
    """A line, or what there is of one if the worker was ended while it spoke."""
    try:
        return await reader.readline()
    except ValueError as error:
        raise WorkerFailedError(_NONSENSE) from error


def _event(line: bytes) -> Event:
    try:
        return read_event(line)
    except ValueError as error:
        raise WorkerFailedError(_NONSENSE) from error
