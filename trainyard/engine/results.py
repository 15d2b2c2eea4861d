"""A finished run as content: all that somebody needs who wants to check it."""

import json
import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.content.cid import Cid
from trainyard.content.content import Content, Report
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import Recomputed, deltas_named, inputs_in, recompute, sources_of
from trainyard.engine.auditor import Inputs
from trainyard.engine.errors import RunError
from trainyard.engine.journal import Journal
from trainyard.engine.material import fetch_files
from trainyard.engine.worker import MODEL
from trainyard.protocol.manifest import Manifest, Merge, RoundsPlan
from trainyard.protocol.trace import Trace

_MANIFEST, _TRACE, _STATES, _DELTAS = "manifest.json", "trace.json", "states", "deltas"
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
    title: str
    claimed: str
    # None if what the segment starts from is no state that a run can have, with the reason.
    found: str | None
    seconds: float
    reason: str = ""

    @property
    def agrees(self) -> bool:
        return self.claimed == self.found


@dataclass(frozen=True, slots=True)
class Audit:
    """What was found of a run. To begin with another state than the manifest is a wrong too."""

    # What was audited, to be compared with what was asked for.
    manifest: str
    root: str
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
        _link_deltas(journal, manifest, folder / _DELTAS)
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
    wanted = set(segments)
    for segment in wanted:
        if not 0 <= segment < trace.segments:
            raise RunError(f"there is no segment {segment}: the run has {trace.segments}")
    wanted = with_end(manifest, [state.hex() for state in trace.states], wanted)
    files = fetch_files(manifest, content, folder, progress=progress)
    evidence = _Evidence(content, result, manifest, trace, folder, progress)
    inputs = {segment: evidence.fetch(segment) for segment in sorted(wanted)}
    states = [state.hex() for state in trace.states]
    return _audit(manifest, states, recompute(manifest, files, inputs))


@dataclass(frozen=True, slots=True)
class _Evidence:
    """What a published run serves of its states, each checked against its trace."""

    content: Content
    result: ContentPath
    manifest: Manifest
    trace: Trace
    folder: Path
    progress: Report | None

    def fetch(self, segment: int) -> Inputs:
        """All that `segment` is computed from."""
        hashes = [state.hex() for state in self.trace.states]
        numbers, absence = sources_of(self.manifest, segment, hashes)
        states = tuple(
            self._state(f"{_STATES}/{number:06}", self.trace.states[number].hex(), segment)
            for number in numbers
        )
        deltas = tuple(
            self._state(f"{_DELTAS}/{name}", name, segment)
            for name in deltas_named(self.manifest, segment, states)
        )
        return Inputs(states=states, deltas=deltas, absence=absence)

    def _state(self, name: str, digest: str, segment: int) -> Path:
        path = self.folder / f"{digest}.safetensors"
        place = self.result
        for part in f"{name}.safetensors".split("/"):
            place = place.child(part)
        self.content.get(place, path, progress=self.progress)
        if sha256(path.read_bytes()).hexdigest() != digest:
            path.unlink()
            raise RunError(
                f"the run serves another state before segment {segment} than its trace names"
            )
        return path


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
    wanted = set(segments)
    for segment in wanted:
        if segment + 1 >= len(states):
            raise RunError(f"segment {segment} is not computed yet: the run has {len(states) - 1}")
    wanted = with_end(manifest, states, wanted)
    for segment in wanted:
        numbers, _ = sources_of(manifest, segment, states)
        for number in numbers:
            journal.state(number)
    inputs = {one: inputs_in(journal, manifest, one) for one in wanted}
    return _audit(manifest, states, recompute(manifest, files, inputs))


def with_end(manifest: Manifest, states: Sequence[str], segments: set[int]) -> set[int]:
    """The segments, and the one that ended the run if one of them only repeats its end.

    Else one wrong segment, which says that the run was over, would make all after it right.
    """
    if isinstance(manifest.plan, RoundsPlan):
        return segments
    if not any(states[segment] == states[segment + 1] for segment in segments):
        return segments
    end = states.index(states[-1])
    return segments | {max(end - 1, 0)}


def _audit(manifest: Manifest, states: Sequence[str], found: Recomputed) -> Audit:
    return Audit(
        manifest=manifest.digest.hex(),
        root=Trace([bytes.fromhex(state) for state in states]).root.hex(),
        claimed_start=states[0],
        found_start=found.start,
        verdicts=tuple(
            Verdict(
                one.segment,
                manifest.plan.title(one.segment),
                states[one.segment + 1],
                one.state,
                one.seconds,
                one.reason,
            )
            for one in found.answers
        ),
    )


def _link_deltas(journal: Journal, manifest: Manifest, folder: Path) -> None:
    """The deltas that the merges of rounds are of, by their hashes."""
    if not isinstance(manifest.plan, RoundsPlan):
        return
    folder.mkdir()
    for number in range(manifest.plan.rounds):
        segment = manifest.plan.segment(Merge(number))
        for path in inputs_in(journal, manifest, segment).deltas:
            if not (folder / path.name).exists():
                os.link(path, folder / path.name)


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
