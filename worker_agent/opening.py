"""What settings lead to: the content plane and the sandbox of an agent."""

import math
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from trainyard.content.bounded import BoundedContent, BoundedKeepingContent
from trainyard.content.content import Content
from trainyard.content.gateways import ask_workers
from trainyard.content.settings import ContentSettings, open_content
from worker_agent.finding import look
from worker_agent.jobs import AnswerJob, CardsJob, LookJob
from worker_agent.sandbox import Sandbox
from worker_agent.settings import Home, Settings, limits_of

# So much of the disk stays free, whatever strangers' data takes: without it nothing is journaled.
_RESERVED_BYTES, _RESERVED_PART = 1 << 30, 20


def open_agent_content(home: Home, settings: Settings) -> Content:
    places = settings.content
    return open_content(
        ContentSettings(
            store=places.store or home.content_store,
            kubo=places.kubo,
            gateways=",".join(dict.fromkeys((*places.gateways, *places.boards))),
        )
    )


@contextmanager
def within_bounds(
    content: Content, settings: Settings, folder: Path, *, keep: bool = False
) -> Iterator[Content]:
    """The same content, as much of it as one task may have of the disk; what is too much fails.

    What an earlier try left in `folder` takes no more of it. With `keep` all that is fetched stays
    in our store too, and so is here twice.
    """
    copies, kind = (2, BoundedKeepingContent) if keep else (1, BoundedContent)
    folder.mkdir(parents=True, exist_ok=True)
    disk = shutil.disk_usage(folder)
    free = max(0, disk.free - min(_RESERVED_BYTES, disk.total // _RESERVED_PART))
    allowed = min(settings.policy.max_disk_bytes, settings.sandbox.disk_bytes)
    bounded = kind.of(
        content,
        min(allowed // copies, free // copies + bytes_in(folder)),
        "make room on the disk, or raise policy.max_disk_bytes and sandbox.disk_bytes",
    )
    try:
        yield bounded
    finally:
        bounded.fetcher.close()


def bytes_in(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def ask_holders(job: AnswerJob | CardsJob | LookJob, settings: Settings, content: Content) -> None:
    """Ask the workers of a task as well: what they have to show may be nowhere else."""
    profiles = map(bytes.fromhex, job.profiles)
    ask_workers(content, profiles, allow_private=settings.content.allow_private)


def open_sandbox(
    settings: Settings, wall_s: float | None = None, *, is_tried: bool = True
) -> Sandbox:
    """Where the code of strangers runs, with the limits that the operator set, and for `wall_s`.

    One is tried before, so that it can be said what is missing; without, what is run in it fails.
    """
    return Sandbox(
        replace(
            limits_of(settings.sandbox),
            # No process can use more in that time: it ends also one that nobody watches any more.
            # How much all use together at a time, control groups see to.
            cpu_s=None if wall_s is None else math.ceil(wall_s * len(os.sched_getaffinity(0))) + 1,
        ),
        None if is_tried else look(),
        until=None if wall_s is None else time.monotonic() + wall_s,
    )
