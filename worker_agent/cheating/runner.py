"""Trains one slot of one task as a cheat does: `python -m worker_agent.cheating.runner JOB`."""

import sys
from pathlib import Path

from trainyard.engine import round_log
from trainyard.engine.journal import write_whole
from trainyard.engine.merging import merge_round
from trainyard.engine.worker import Job
from worker_agent.cheating.forging import fewer_records, noise, other_rate, reordered, spoil
from worker_agent.cheating.plan import PLAN, Cheat, Plan
from worker_agent.cheating.tampering import tampered_merges
from worker_agent.runner.__main__ import main
from worker_agent.runner.job import RunnerJob
from worker_agent.runner.rounds import WORKER
from worker_agent.runner.task import Task

_FORGED, _MERGE = "forged", "merge_round"
# Computed by the engine's worker, but not as the manifest says.
_COMPUTED_OTHERWISE = (Cheat.LAZY, Cheat.SKIP, Cheat.DELTA, Cheat.MERGE)


class CheatingTask(Task):
    """Gives the engine another job than the honest one, or changes what came of it."""

    @property
    def plan(self) -> Plan:
        return Plan.read(self.job.home)

    @property
    def module(self) -> str:
        # Not in `super()`, which a class with slots does not have.
        is_computed = self.plan.cheat not in _COMPUTED_OTHERWISE
        return "trainyard.engine.worker" if is_computed else "worker_agent.cheating.engine"

    def engine_job(self, peers: tuple[str, ...] = ()) -> Job:
        job = Task.engine_job(self, peers)
        # Where the engine's worker finds it from within its sandbox.
        for folder in (self.run, self.shelf.path(WORKER)):
            folder.mkdir(parents=True, exist_ok=True)
            write_whole(folder / PLAN, (self.job.home / PLAN).read_bytes())
        match self.plan.cheat:
            case Cheat.LR:
                manifest = self._forged("manifest.json")
                write_whole(manifest, other_rate(self.manifest))
                return job.model_copy(update={"manifest": manifest})
            case Cheat.DATA:
                train = fewer_records(job.train, self._forged("train"))
                return job.model_copy(update={"train": train})
            case Cheat.ORDER:
                train = reordered(job.train, self._forged("train"))
                return job.model_copy(update={"train": train})
            case Cheat.GARBAGE if peers:
                inputs = tuple(self.manifest.data.train.inputs)
                train = noise(job.train, self._forged("train"), inputs)
                return job.model_copy(update={"train": train})
            case _:
                return job

    def end(self) -> None:
        if self.plan.cheat is Cheat.LR:
            write_whole(self.run / "manifest.json", self.manifest.canonical)
        if self.plan.cheat is Cheat.GARBAGE and self.workers == 1:
            spoil(self.run, self.plan.seed)
        Task.end(self)

    def _forged(self, name: str) -> Path:
        path = self.shelf.path(_FORGED, name).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        return path


def _tamper() -> None:
    """Have the run's own log merge as the worker does, or the two would not agree."""
    plan = Plan.read(RunnerJob.read(Path(sys.argv[1])).home)
    if plan.cheat is Cheat.MERGE:
        setattr(round_log, _MERGE, tampered_merges(plan, merge_round))


if __name__ == "__main__":
    _tamper()
    main(CheatingTask)
