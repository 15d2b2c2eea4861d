"""Recomputation of segments of a run, in one process of TensorFlow for all of them."""

import json
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path

from trainyard.engine.auditor import Answer, AuditJob, Inputs, Rescored, Start
from trainyard.engine.classes import require_class
from trainyard.engine.confining import Confinement, absolute, reach_of_audit
from trainyard.engine.errors import RunError
from trainyard.engine.events import Failed, read_event
from trainyard.engine.exchange import Exchange
from trainyard.engine.journal import Journal
from trainyard.engine.launching import EXCHANGE, confined_processes, processes
from trainyard.engine.leaves import Absence, Absences, delta_of
from trainyard.engine.material import Files
from trainyard.engine.scoring import require_replayable, require_scored
from trainyard.engine.state import State
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Manifest, Merge, RoundsPlan


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The first state of a manifest, and what segments come to, in their order."""

    start: str
    answers: tuple[Answer, ...]


def audit(
    run: Path, files: Files, segments: Iterable[int], confinement: Confinement | None = None
) -> Recomputed:
    """Recompute segments of the run in folder `run`, from the states that it kept."""
    journal = Journal.read(run)
    manifest = Manifest.parse(journal.manifest)
    inputs = {segment: inputs_in(journal, manifest, segment) for segment in segments}
    return recompute(manifest, files, inputs, confinement=confinement)


def inputs_in(journal: Journal, manifest: Manifest, segment: int) -> Inputs:
    """What a segment of the run is computed from, among what the run kept."""
    check_segments(manifest, [segment])
    hashes = [entry.state for entry in journal.entries]
    numbers, absence = sources_of(manifest, segment, hashes)
    states = tuple(journal.path_of(number) for number in numbers)
    exchange = Exchange(journal.folder / EXCHANGE)
    deltas = tuple(exchange.path_of(name) for name in deltas_named(manifest, segment, states))
    return Inputs(states=states, deltas=deltas, absence=absence)


def sources_of(
    manifest: Manifest, segment: int, hashes: Sequence[str]
) -> tuple[tuple[int, ...], Absence | None]:
    """The numbers of the states that a segment of this trace is computed from.

    For the part of a worker that the trace says was away or late, that as well.
    """
    plan = manifest.plan
    if not isinstance(plan, RoundsPlan):
        return plan.inputs_of(segment), None
    absences = Absences(plan, hashes)
    why = absences.why(segment + 1)
    return plan.inputs_of(segment, absences), why if why is not None and why.is_told else None


def deltas_named(manifest: Manifest, segment: int, states: Sequence[Path]) -> list[str]:
    """The hashes of the deltas that a merge is of, as its workers' leaves name them."""
    plan = manifest.plan
    if not isinstance(plan, RoundsPlan) or not isinstance(plan.part(segment), Merge):
        return []
    digests = [delta_of(State.load(path)) for path in states[1:]]
    return [digest.hex() for digest in digests if digest is not None]


def recompute(
    manifest: Manifest,
    files: Files,
    segments: Mapping[int, Inputs],
    kept: Path | None = None,
    confinement: Confinement | None = None,
) -> Recomputed:
    """Compute segments, each from its inputs; the first state from the manifest alone.

    The states that they come to are kept in the folder `kept`, if there is one. With a
    `confinement` all of it is computed in there.
    """
    check_segments(manifest, segments)
    wanted = {segment: _resolved(one) for segment, one in segments.items()}
    said = _said(manifest, files, wanted, kept=kept, confinement=confinement)
    with closing(said) as lines:
        return recomputed(lines)


def recomputed(lines: Iterable[bytes]) -> Recomputed:
    """What an auditor says, read to its end."""
    start, answers = "", []
    for line in lines:
        if b'"event":"start"' in line:
            start = Start.model_validate_json(line).state
        else:
            answers.append(Answer.model_validate_json(line))
    return Recomputed(start, tuple(answers))


def rescore(
    manifest: Manifest, files: Files, state: Path, confinement: Confinement | None = None
) -> Rescored:
    """Compute the score of a state."""
    require_scored(manifest)
    [line] = _said(manifest, files, {}, state.resolve(), confinement=confinement)
    return Rescored.model_validate(json.loads(line))


def _said(
    manifest: Manifest,
    files: Files,
    segments: dict[int, Inputs],
    scored: Path | None = None,
    kept: Path | None = None,
    confinement: Confinement | None = None,
) -> Generator[bytes, None, None]:
    """What a process says that computes all that is wanted."""
    with tempfile.TemporaryDirectory(prefix="trainyard-audit-") as name:
        folder = Path(name)
        request = AuditJob(
            job=lay_out(manifest, files, folder),
            segments=segments,
            scored=scored,
            states=None if kept is None else kept.resolve(),
        )
        (folder / "audit.json").write_text(request.model_dump_json())
        with _auditor(request, manifest, folder, confinement) as lines:
            yield from unless_failed(lines)


def lay_out(manifest: Manifest, files: Files, folder: Path) -> Job:
    """The job of an auditor whose own folder is `folder`."""
    (folder / "manifest.json").write_bytes(manifest.canonical)
    return absolute(
        Job(
            manifest=folder / "manifest.json",
            folder=folder,
            train=files.train.resolve(),
            validation=files.validation,
            test=files.test,
            initial_state=files.initial_state,
        )
    )


def unless_failed(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The same lines; one that says why nothing comes of it is an error."""
    for line in lines:
        if b'"event":"failed"' in line:
            failure = read_event(line)
            raise RunError(failure.reason if isinstance(failure, Failed) else "")
        yield line


def _auditor(
    request: AuditJob, manifest: Manifest, folder: Path, confinement: Confinement | None
) -> AbstractContextManager[Iterator[bytes]]:
    module, job, log = "trainyard.engine.auditor", folder / "audit.json", folder / "log"
    if confinement is None:
        return processes(module, job, log)
    # In a sandbox nobody could find it out.
    require_class(manifest)
    return confined_processes(module, job, log, confinement, reach_of_audit(request))


def check_segments(manifest: Manifest, segments: Iterable[int]) -> None:
    require_replayable(manifest)
    for segment in segments:
        if not 0 <= segment < manifest.plan.segments:
            raise RunError(f"there is no segment {segment}: the run has {manifest.plan.segments}")


def _resolved(inputs: Inputs) -> Inputs:
    return inputs.model_copy(
        update={
            "states": tuple(path.resolve() for path in inputs.states),
            "deltas": tuple(path.resolve() for path in inputs.deltas),
        }
    )
