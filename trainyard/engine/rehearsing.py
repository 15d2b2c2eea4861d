"""A few steps of a manifest before anybody pays: does it train, and how long does a step take."""

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.content.content import Content
from trainyard.engine.confining import Confinement, absolute, reach_of
from trainyard.engine.costs import evaluated_records
from trainyard.engine.errors import RunError
from trainyard.engine.events import Failed, Finished, read_event
from trainyard.engine.launching import confined_processes
from trainyard.engine.material import fetch_files
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Manifest, PredictPlan

_STEPS = 3
# A step goes forwards and backwards, which is twice as much; what is evaluated goes only forwards.
_PASSES = 3


@dataclass(frozen=True, slots=True)
class Rehearsal:
    seconds_per_step: float
    first_loss: float | None

    def train_s(self, manifest: Manifest) -> float:
        """What the whole run takes a worker, by its steps and by all that is evaluated."""
        evaluated = evaluated_records(manifest) / (_PASSES * _share_of(manifest))
        return self.seconds_per_step * (manifest.plan.steps + evaluated)


def rehearse(
    manifest: Manifest, content: Content, confinement: Confinement, scratch: Path | None = None
) -> Rehearsal:
    """A few steps of one worker's share, in the sandbox; RunError with what went wrong.

    What is fetched for that lies in a folder of its own in `scratch`, and goes away again.
    """
    with tempfile.TemporaryDirectory(prefix="trainyard-rehearsal-", dir=scratch) as name:
        folder = Path(name).resolve()
        return run_prepared(prepare(manifest, content, folder), folder, confinement)


def prepare(manifest: Manifest, content: Content, folder: Path) -> Job:
    """A rehearsal in `folder`, with all that it reads fetched there."""
    short = shortened(manifest)
    files = fetch_files(short, content, folder / "data")
    run = folder / "run"
    run.mkdir()
    path = folder / "manifest.json"
    path.write_bytes(short.canonical)
    return absolute(
        Job(manifest=path, folder=run, train=files.train, initial_state=files.initial_state)
    )


def shortened(manifest: Manifest) -> Manifest:
    """The same network on the same records, alone and for a few steps."""
    document: dict[str, Any] = json.loads(manifest.canonical)
    training = document["training"]
    plan = manifest.plan
    if isinstance(plan, PredictPlan):
        records = min(plan.train_records, _STEPS * plan.batch)
        training |= {"part": {"first": plan.first, "records": records}, "steps_per_segment": 1}
        document.pop("environment", None)
        return Manifest.of(document)
    training |= {
        "mode": "single",
        "workers": 1,
        "batch": _share_of(manifest),
        "until": {"steps": _STEPS},
        "steps_per_segment": 1,
    }
    for name in ("rounds", "validation", "early_stopping"):
        training.pop(name, None)
    document.pop("environment", None)
    document["data"].pop("test", None)
    return Manifest.of(document)


def _share_of(manifest: Manifest) -> int:
    """The records of one worker in a step."""
    training = manifest.training
    workers = 1 if training.mode == "async" else training.workers
    return max(1, training.batch // workers)


def run_prepared(job: Job, folder: Path, confinement: Confinement) -> Rehearsal:
    """What `prepare` has made ready in `folder`, in the sandbox."""
    path = folder / "job.json"
    path.write_text(job.model_dump_json())
    times: list[float] = []
    loss: float | None = None
    reach = reach_of(job, [path])
    module = "trainyard.engine.worker"
    with confined_processes(module, path, folder / "log", confinement, reach) as lines:
        for line in lines:
            try:
                event = read_event(line)
            except ValueError as error:
                raise RunError("the process of the run said what no such process says") from error
            if isinstance(event, Failed):
                raise RunError(event.reason)
            if isinstance(event, Finished) and event.entry.number:
                times.append(event.entry.train_s)
                if loss is None and event.entry.trained is not None:
                    loss = event.entry.trained.loss
    if not times:
        raise RunError("no step was finished")
    # The first one includes that TensorFlow looks at the program.
    return Rehearsal(min(times[1:] or times), loss)
