"""The task of a runner: what it was told, what it has, and where it keeps it."""

import os
from dataclasses import dataclass
from pathlib import Path

from trainyard.engine.confining import Confinement
from trainyard.engine.material import Files
from trainyard.engine.plain_files import descriptor
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Manifest
from worker_agent.progress import MANIFEST, RUN, Shelf
from worker_agent.runner.job import RunnerJob
from worker_agent.runner.live import Live
from worker_agent.settings import Settings

ENDED, SOCKETS = "ended", "sockets"


@dataclass(slots=True)
class Task:
    path: Path
    job: RunnerJob
    manifest: Manifest
    shelf: Shelf
    files: Files
    settings: Settings
    sandbox: Confinement
    live: Live
    _told_at: int = 0

    @property
    def module(self) -> str:
        """What computes."""
        return "trainyard.engine.worker"

    @property
    def run(self) -> Path:
        return self.shelf.path(RUN)

    @property
    def workers(self) -> int:
        return self.manifest.training.workers

    @property
    def has_ended(self) -> bool:
        return (self.run / ENDED).exists()

    def end(self) -> None:
        """Say that all segments are there; the agent goes on from here."""
        os.close(descriptor(self.run / ENDED, os.O_WRONLY | os.O_CREAT))
        self.live.enter("ended")

    def was_told_anew(self) -> bool:
        """Whether the agent has written the job anew since this was last asked."""
        written = os.stat(self.path).st_mtime_ns
        if written == self._told_at:
            return False
        self._told_at = written
        self.job = RunnerJob.read(self.path)
        return True

    def engine_job(self, peers: tuple[str, ...] = ()) -> Job:
        files = self.files
        return Job(
            manifest=self.shelf.path(MANIFEST).absolute(),
            folder=self.run.absolute(),
            train=files.train.absolute(),
            validation=files.validation and files.validation.absolute(),
            test=files.test and files.test.absolute(),
            initial_state=files.initial_state and files.initial_state.absolute(),
            slot=self.job.slot if peers else 0,
            peers=peers,
        )
