"""A finished run as content: all that somebody needs who wants to check it."""

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.content.cid import Cid
from trainyard.content.content import Content, Report
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import Recomputed, recompute
from trainyard.engine.errors import RunError
from trainyard.engine.journal import Journal
from trainyard.engine.material import fetch_files
from trainyard.engine.state import State
from trainyard.engine.worker import MODEL
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.trace import Trace

_MANIFEST, _TRACE, _STATES = "manifest.json", "trace.json", "states"
_MOST_TRACE_BYTES = 128 << 20


class TraceList(BaseModel):
    """The hashes of all states, and the root that the worker commits to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: int = Field(default=1, ge=1, le=1)
    root: str = Field(pattern="^[0-9a-f]{64}$")
    states: tuple[str, ...] = Field(min_length=2)

    @classmethod
    def of(cls, trace: Trace) -> "TraceList":
        return cls(root=trace.root.hex(), states=tuple(state.hex() for state in trace.states))

    def checked(self, manifest: Manifest) -> Trace:
        """The trace, if it is one of the manifest's length and has the root that it says."""
        try:
            trace = Trace([bytes.fromhex(state) for state in self.states])
        except ValueError as error:
            raise RunError(f"the trace is malformed: {error}") from error
        if trace.segments != manifest.plan.segments:
            raise RunError(
                f"the trace has {trace.segments} segments, and the manifest asks for "
                f"{manifest.plan.segments}"
            )
        if trace.root.hex() != self.root:
            raise RunError("the trace does not have the root that it says")
        return trace


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a segment came to, beside what the run says."""

    segment: int
    claimed: str
    found: str
    seconds: float

    @property
    def agrees(self) -> bool:
        return self.claimed == self.found


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found of a run. To begin with another state than the manifest is a wrong too."""

    claimed_start: str
    found_start: str
    verdicts: tuple[Verdict, ...]

    @property
    def begins_right(self) -> bool:
        return self.claimed_start == self.found_start

    @property
    def agrees(self) -> bool:
        return self.begins_right and all(verdict.agrees for verdict in self.verdicts)


def publish(journal: Journal, content: Content, *, progress: Report | None = None) -> Cid:
    """Add a finished run to the content store: manifest, trace, states, and the trained model."""
    manifest = Manifest.parse(journal.manifest)
    if len(journal.entries) != manifest.plan.segments + 1:
        raise RunError(f"the run in {journal.folder} is not finished: run it to its end first")
    with tempfile.TemporaryDirectory(dir=journal.folder, prefix=".publish-") as name:
        folder = Path(name)
        (folder / _STATES).mkdir()
        (folder / _MANIFEST).write_bytes(journal.manifest)
        (folder / _TRACE).write_text(TraceList.of(journal.trace).model_dump_json())
        for number in range(len(journal.entries)):
            path = journal.path_of(number)
            os.link(path, folder / _STATES / path.name)
        if (journal.folder / MODEL).exists():
            os.link(journal.folder / MODEL, folder / MODEL)
        return content.add(folder, progress=progress).cid


def audit_result(
    content: Content,
    result: ContentPath,
    segments: Iterable[int],
    folder: Path,
    *,
    progress: Report | None = None,
) -> Audit:
    """Recompute segments of a published run; what is fetched for that is kept in `folder`."""
    manifest = Manifest.parse(_read(content, result.child(_MANIFEST), 1 << 20))
    trace = _read_trace(content, result).checked(manifest)
    wanted = sorted(set(segments))
    for segment in wanted:
        if not 0 <= segment < trace.segments:
            raise RunError(f"there is no segment {segment}: the run has {trace.segments}")
    files = fetch_files(manifest, content, folder, progress=progress)
    starts = {}
    for segment in wanted:
        path = folder / f"{trace.states[segment].hex()}.safetensors"
        name = f"{segment:06}.safetensors"
        content.get(result.child(_STATES).child(name), path, progress=progress)
        if State.load(path).hash != trace.states[segment]:
            path.unlink()
            raise RunError(
                f"the run serves another state before segment {segment} than its trace names"
            )
        starts[segment] = path
    return _audit([state.hex() for state in trace.states], recompute(manifest, files, starts))


def audit_folder(
    content: Content,
    run: Path,
    segments: Iterable[int],
    folder: Path,
    *,
    progress: Report | None = None,
) -> Audit:
    """The same for a run in a folder of this machine, finished or not."""
    journal = Journal.read(run)
    manifest = Manifest.parse(journal.manifest)
    files = fetch_files(manifest, content, folder, progress=progress)
    states = [entry.state for entry in journal.entries]
    wanted = sorted(set(segments))
    for segment in wanted:
        if segment + 1 >= len(states):
            raise RunError(f"segment {segment} is not computed yet: the run has {len(states) - 1}")
        journal.state(segment)
    starts = {one: journal.path_of(one) for one in wanted}
    return _audit(states, recompute(manifest, files, starts))


def _audit(states: Sequence[str], found: Recomputed) -> Audit:
    return Audit(
        claimed_start=states[0],
        found_start=found.start,
        verdicts=tuple(
            Verdict(one.segment, states[one.segment + 1], one.state, one.seconds)
            for one in found.answers
        ),
    )


def _read_trace(content: Content, result: ContentPath) -> TraceList:
    data = _read(content, result.child(_TRACE), _MOST_TRACE_BYTES)
    try:
        return TraceList.model_validate(json.loads(data))
    except (ValueError, ValidationError, RecursionError) as error:
        raise RunError(
            f"{result} has no readable trace: it is no run that was published"
        ) from error


def _read(content: Content, path: ContentPath, most: int) -> bytes:
    size = content.stat(path).size
    if size > most:
        raise RunError(f"{path} has {size} bytes, and at most {most} are read")
    return b"".join(content.cat(path))
