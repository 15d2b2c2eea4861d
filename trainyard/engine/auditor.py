"""Recomputes segments of somebody's run: `python -m trainyard.engine.auditor JOB`.

One process does any number of them, since TensorFlow takes longer to start than most segments to
compute. It is told the states before the segments and never those after: it cannot but compute.
"""

import sys
import time
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from trainyard.engine.events import Failed, tell
from trainyard.engine.state import State
from trainyard.engine.worker import EXIT_FAILED, Job, initial_weights, open_training
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest


class AuditJob(BaseModel):
    """Segments to compute, each with the file of the state before it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: Job
    segments: dict[int, Path]
    # Where to keep the states that were found, to look into what differs.
    states: Path | None = None


class Start(BaseModel):
    """The state that the manifest begins with, whatever the run says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: Literal["start"] = "start"
    state: str


class Answer(BaseModel):
    """What a segment came to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: Literal["answer"] = "answer"
    segment: int
    state: str
    seconds: float


def main() -> None:
    audit = AuditJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    try:
        answer(audit)
    except TrainyardError as error:
        tell(Failed(reason=str(error)))
        sys.exit(EXIT_FAILED)


def answer(audit: AuditJob) -> None:
    manifest = Manifest.parse(audit.job.manifest.read_bytes())
    training = open_training(audit.job, manifest)
    # INVARIANT: nobody is asked for the first state, so nobody can begin with another.
    first = training.start(initial_weights(audit.job))
    _say(Start(state=first.hash.hex()))
    for segment, path in sorted(audit.segments.items()):
        start = first if segment == 0 else State.load(path)
        began = time.perf_counter()
        outcome = training.run(segment, start)
        seconds = time.perf_counter() - began
        if audit.states is not None:
            outcome.state.save(audit.states / f"{segment + 1:06}.safetensors")
        _say(Answer(segment=segment, state=outcome.state.hash.hex(), seconds=seconds))


def _say(found: Start | Answer) -> None:
    sys.stdout.write(found.model_dump_json() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
