"""Recomputes segments of somebody's run: `python -m trainyard.engine.auditor JOB`.

One process does any number of them, since TensorFlow takes longer to start than most segments to
compute. It is told the states before the segments and never those after: it cannot but compute.
"""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict

from trainyard.engine.causes import lasting_cause
from trainyard.engine.errors import StateError
from trainyard.engine.events import Failed, tell
from trainyard.engine.leaves import Absence
from trainyard.engine.scoring import Score, score_of
from trainyard.engine.state import State
from trainyard.engine.worker import (
    EXIT_FAILED,
    Job,
    initial_weights,
    open_predicting,
    open_training,
    try_out,
)
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.predicting import Predicting
    from trainyard.engine.training import Training


class Inputs(BaseModel):
    """The files that a segment is computed from: states, and the deltas that a merge is of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    states: tuple[Path, ...]
    deltas: tuple[Path, ...] = ()
    # What no computation tells: that the worker of the segment was away, or late.
    absence: Absence | None = None
    # Why they are none that a run can have, where that is known before anything is computed.
    nonsense: str = ""


class AuditJob(BaseModel):
    """Segments to compute, each with what it is computed from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    job: Job
    segments: dict[int, Inputs]
    # Whether the segments are told later, in one line on the standard input.
    waits: bool = False
    # Where to keep the states that were found, to look into what differs.
    states: Path | None = None
    # The state to score, of a run that cannot be replayed.
    scored: Path | None = None


class Told(BaseModel):
    """What an auditor is told that waits."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    segments: dict[int, Inputs]


class Start(BaseModel):
    """The state that the manifest begins with, whatever the run says."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: Literal["start"] = "start"
    state: str


class Answer(BaseModel):
    """What a segment came to; no state if what it starts from is none that a run can have."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    event: Literal["answer"] = "answer"
    segment: int
    state: str | None
    seconds: float
    reason: str = ""


class Rescored(BaseModel):
    """The score of a state; none if it is no state that a run can have."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    event: Literal["rescored"] = "rescored"
    score: Score | None
    seconds: float
    reason: str = ""


def main() -> None:
    audit = AuditJob.model_validate_json(Path(sys.argv[1]).read_bytes())
    try:
        answer(audit)
    except TrainyardError as error:
        tell(Failed(reason=str(error)))
        sys.exit(EXIT_FAILED)
    except Exception as error:
        reason = lasting_cause(error)
        if reason is None:
            raise
        tell(Failed(reason=reason))
        sys.exit(EXIT_FAILED)


def answer(audit: AuditJob) -> None:
    manifest = Manifest.parse(audit.job.manifest.read_bytes())
    if audit.scored is not None:
        scored = open_training(audit.job, manifest)
        _say(_rescore(audit.job, manifest, scored, audit.scored))
        return
    opened = open_predicting if manifest.training.predicts else open_training
    training = opened(audit.job, manifest)
    # INVARIANT: nobody is asked for the first state, so nobody can begin with another.
    first = training.start(initial_weights(audit.job))
    if audit.states is not None:
        first.save(first_file(audit.states))
    _say(Start(state=first.hash.hex()))
    segments = _wait() if audit.waits else audit.segments
    for segment, inputs in sorted(segments.items()):
        began = time.perf_counter()
        try:
            if inputs.nonsense:
                raise StateError(inputs.nonsense)
            states = tuple(State.load(path) for path in inputs.states)
            if manifest.plan.inputs_of(segment)[0] == 0:
                states = (first, *states[1:])
            state = _compute(training, segment, states, inputs)
        except StateError as error:
            # The bytes are those of the trace: who committed to them has committed to nonsense.
            seconds = time.perf_counter() - began
            _say(Answer(segment=segment, state=None, seconds=seconds, reason=str(error)))
            continue
        seconds = time.perf_counter() - began
        if audit.states is not None:
            state.save(state_file(audit.states, segment))
        _say(Answer(segment=segment, state=state.hash.hex(), seconds=seconds))


def _wait() -> dict[int, Inputs]:
    """What is told; nothing, if whoever could tell it is gone."""
    line = sys.stdin.buffer.readline()
    return Told.model_validate_json(line).segments if line.endswith(b"\n") else {}


def _rescore(job: Job, manifest: Manifest, training: "Training", path: Path) -> Rescored:
    began = time.perf_counter()
    try:
        state = State.load(path)
        tested = try_out(job, manifest, training, state)
        score = score_of(manifest, training, state, tested)
    except StateError as error:
        return Rescored(score=None, seconds=time.perf_counter() - began, reason=str(error))
    return Rescored(score=score, seconds=time.perf_counter() - began)


def first_file(folder: Path) -> Path:
    """Where the state is kept that the manifest begins with."""
    return state_file(folder, -1)


def state_file(folder: Path, segment: int) -> Path:
    """Where the state that `segment` came to is kept."""
    return folder / f"{segment + 1:06}.safetensors"


def _say(found: Start | Answer | Rescored) -> None:
    sys.stdout.write(found.model_dump_json() + "\n")
    sys.stdout.flush()


def _compute(
    training: "Training | Predicting",
    segment: int,
    states: tuple[State, ...],
    inputs: Inputs,
) -> State:
    from trainyard.engine.rounds import RoundsTraining

    if not isinstance(training, RoundsTraining):
        return training.run(segment, states[0]).state
    deltas = {delta.hash: delta for delta in map(State.load, inputs.deltas)}
    return training.recompute(segment, states, deltas, inputs.absence)


if __name__ == "__main__":
    main()
