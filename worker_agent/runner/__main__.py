"""Trains one slot of one task, as a process without a key: `python -m worker_agent.runner JOB`."""

import asyncio
import json
import signal
import sys
from pathlib import Path

from trainyard.engine.material import fetch_files
from trainyard.protocol.errors import PermanentError, TrainyardError
from trainyard.protocol.manifest import Manifest
from worker_agent.faults import Dying
from worker_agent.opening import open_agent_content, open_sandbox
from worker_agent.progress import DATA, MANIFEST, Shelf
from worker_agent.runner.asynchronous import run_async
from worker_agent.runner.child import Worker
from worker_agent.runner.job import RunnerJob
from worker_agent.runner.live import Live
from worker_agent.runner.rounds import run_rounds
from worker_agent.runner.sync import run_sync
from worker_agent.runner.task import Task
from worker_agent.settings import Home, read_settings


def main(kind: type[Task] = Task) -> None:
    path = Path(sys.argv[1])
    try:
        asyncio.run(_until_told(path, kind))
    except TrainyardError as error:
        said = {"reason": str(error), "is_permanent": isinstance(error, PermanentError)}
        print(json.dumps(said), flush=True)
        sys.exit(1)


async def _until_told(path: Path, kind: type[Task]) -> None:
    """Run it; a request to stop ends all of it in order."""
    running = asyncio.create_task(_run(path, kind))
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, running.cancel)
    try:
        await running
    except asyncio.CancelledError:
        sys.exit(128 + signal.SIGTERM)


async def _run(path: Path, kind: type[Task]) -> None:
    job = RunnerJob.read(path)
    home = Home(job.home)
    settings = read_settings(home)
    shelf = Shelf(home.task(job.task))
    manifest = Manifest.parse(shelf.path(MANIFEST).read_bytes())
    if manifest.digest.hex() != job.manifest:
        raise PermanentError("the manifest here is of another task; nothing is trained")
    content = open_agent_content(home, settings)
    try:
        # All of it is here already: whoever joins has fetched it before.
        files = fetch_files(manifest, content, shelf.path(DATA))
    finally:
        content.close()
    task = kind(
        path=path,
        job=job,
        manifest=manifest,
        shelf=shelf,
        files=files,
        settings=settings,
        sandbox=open_sandbox(settings, job.wall_s),
        live=Live(shelf, reach=Dying.by_environment()),
    )
    match manifest.training.mode:
        case "single" | "predict":
            await _run_single(task)
        case "sync":
            await run_sync(task)
        case "rounds":
            await run_rounds(task)
        case "async":
            await run_async(task)


async def _run_single(task: Task) -> None:
    task.live.enter("training")
    await Worker(task.engine_job(), task.sandbox, module=task.module).run(task.live.take)
    task.end()


if __name__ == "__main__":
    main()
