"""One piece of work for a task, as a process of its own: `python -m worker_agent.work JOB`.

It has no key. What it is to do stands in its job, what it did in the task's folder, and why it
could not on its standard output.
"""

import json
import select
import signal
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from trainyard.content.content import Content
from trainyard.engine.auditing import Recomputed, recompute
from trainyard.engine.auditor import Inputs
from trainyard.engine.material import Files, fetch_files
from trainyard.engine.standby import Standby, standing_by
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest
from worker_agent.answering import answer
from worker_agent.behind import look_behind
from worker_agent.fetching import fetch, fetch_cards, manifest_of
from worker_agent.forgetting import forget
from worker_agent.jobs import (
    AnswerJob,
    CardsJob,
    FetchJob,
    ForgetJob,
    Job,
    LookJob,
    SealJob,
    StandbyJob,
    read_job,
)
from worker_agent.opening import ask_holders, open_agent_content, open_sandbox, within_bounds
from worker_agent.progress import (
    DATA,
    Shelf,
)
from worker_agent.recomputing import Recompute
from worker_agent.settings import Home, Settings, read_settings
from worker_agent.vouching import seal_run

_LOOK_S = 1.0


def main() -> None:
    # In order: what runs in the sandbox has folders and control groups that are to be removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    job = read_job(Path(sys.argv[1]))
    home = Home(job.home)
    shelf = Shelf(home.task(job.task))
    settings = read_settings(home)
    content = open_agent_content(home, settings)
    try:
        match job:
            case FetchJob():
                fetch(job, home, settings, shelf, content)
            case CardsJob():
                ask_holders(job, settings, content)
                fetch_cards(job, content)
            case LookJob():
                ask_holders(job, settings, content)
                look_behind(job, settings, shelf, content)
            case ForgetJob():
                forget(job, home, settings, content)
            case StandbyJob():
                _stand_by(job, settings, shelf, content)
            case SealJob() | AnswerJob():
                again = partial(_recompute_afresh, settings, job.wall_s)
                _check_or_answer(job, settings, shelf, content, again)
    except TrainyardError as error:
        print(json.dumps({"reason": str(error)}), flush=True)
        sys.exit(1)
    finally:
        content.close()


def _stand_by(job: StandbyJob, settings: Settings, shelf: Shelf, content: Content) -> None:
    with ExitStack() as parts:
        ready: Standby | None = None
        if job.inputs is not None:
            manifest = manifest_of(job.manifest, shelf, content)
            with within_bounds(content, settings, shelf.path(DATA)) as bounded:
                files = fetch_files(manifest, bounded, shelf.path(DATA))
            folder = shelf.path(job.inputs).absolute()
            folder.mkdir(parents=True, exist_ok=True)
            sandbox = open_sandbox(settings, job.wall_s, is_tried=False)
            ready = parts.enter_context(standing_by(manifest, files, sandbox, [folder]))
        told = _told(ready)
        if not isinstance(told, SealJob | AnswerJob):
            return
        if ready is None:
            again: Recompute = partial(_recompute_afresh, settings, told.wall_s)
        else:
            again = partial(_recompute_by, ready)
        _check_or_answer(told, settings, shelf, content, again)


def _told(ready: Standby | None) -> Job | None:
    """What is to be done; None if whoever could say it is gone."""
    while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
        if ready is not None:
            ready.look()
    path = sys.stdin.readline().strip()
    return read_job(Path(path)) if path else None


def _recompute_afresh(
    settings: Settings,
    wall_s: float | None,
    manifest: Manifest,
    files: Files,
    segments: Mapping[int, Inputs],
) -> Recomputed:
    return recompute(manifest, files, segments, confinement=open_sandbox(settings, wall_s))


def _recompute_by(
    ready: Standby, manifest: Manifest, files: Files, segments: Mapping[int, Inputs]
) -> Recomputed:
    return ready.recompute(segments)


def _check_or_answer(
    job: SealJob | AnswerJob, settings: Settings, shelf: Shelf, content: Content, again: Recompute
) -> None:
    if isinstance(job, SealJob):
        seal_run(job, settings, shelf, content, again)
    else:
        ask_holders(job, settings, content)
        answer(job, settings, shelf, content, again)


if __name__ == "__main__":
    main()
