"""Recomputation of segments of a run, in one process of TensorFlow for all of them."""

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from trainyard.engine.auditor import Answer, AuditJob, Start
from trainyard.engine.errors import RunError
from trainyard.engine.events import Failed, read_event
from trainyard.engine.journal import Journal
from trainyard.engine.launching import processes
from trainyard.engine.material import Files
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Recomputed:
    """The first state of a manifest, and what segments come to, in their order."""

    start: str
    answers: tuple[Answer, ...]


def audit(run: Path, files: Files, segments: Iterable[int]) -> Recomputed:
    """Recompute segments of the run in folder `run`, from the states that it kept."""
    journal = Journal.read(run)
    manifest = Manifest.parse(journal.manifest)
    return recompute(manifest, files, {segment: journal.path_of(segment) for segment in segments})


def recompute(manifest: Manifest, files: Files, starts: Mapping[int, Path]) -> Recomputed:
    """Compute segments, each from the state before it; the first from the manifest alone."""
    for segment in starts:
        if not 0 <= segment < manifest.plan.segments:
            raise RunError(f"there is no segment {segment}: the run has {manifest.plan.segments}")
    start, answers = "", []
    with tempfile.TemporaryDirectory(prefix="trainyard-audit-") as name:
        folder = Path(name)
        (folder / "manifest.json").write_bytes(manifest.canonical)
        job = Job(
            manifest=folder / "manifest.json",
            folder=folder,
            train=files.train.resolve(),
            validation=files.validation,
            initial_state=files.initial_state,
        )
        request = AuditJob(
            job=job, segments={segment: path.resolve() for segment, path in starts.items()}
        )
        (folder / "audit.json").write_text(request.model_dump_json())
        with processes("trainyard.engine.auditor", folder / "audit.json", folder / "log") as lines:
            for line in lines:
                if b'"event":"failed"' in line:
                    failure = read_event(line)
                    raise RunError(failure.reason if isinstance(failure, Failed) else "")
                if b'"event":"start"' in line:
                    start = Start.model_validate_json(line).state
                else:
                    answers.append(Answer.model_validate_json(line))
    return Recomputed(start, tuple(answers))
