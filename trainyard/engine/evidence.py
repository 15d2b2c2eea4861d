"""What a run shows of itself: published, or in a folder of this machine."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.content.content import Content, Report
from trainyard.content.errors import NotADirectoryContentError, NotFoundError
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import deltas_named, inputs_in, sources_of
from trainyard.engine.auditor import Inputs
from trainyard.engine.errors import RunError, StateError, TooLargeError
from trainyard.engine.journal import Journal
from trainyard.engine.limits import most_state_bytes, most_trace_bytes
from trainyard.engine.material import check_file
from trainyard.engine.offers import OFFERS
from trainyard.engine.scoring import MOST_SCORE_BYTES, SCORE, Score
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.trace import Trace

MANIFEST, TRACE, STATES, DELTAS = "manifest.json", "trace.json", "states", "deltas"
ENVIRONMENT = "environment.json"
_MOST_MANIFEST_BYTES = 1 << 20
_MOST_DOCUMENT_BYTES = 1 << 20


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


class MadeOn(BaseModel):
    """The environment class that a run says it was computed on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    environment_class: str = Field(pattern="^[0-9a-f]{64}$")


@dataclass(frozen=True, slots=True)
class Published:
    """A published run: all that it serves is checked against its trace before it is used."""

    content: Content
    result: ContentPath
    manifest: Manifest
    states: Sequence[str]
    folder: Path
    progress: Report | None

    @classmethod
    def open(
        cls, content: Content, result: ContentPath, folder: Path, progress: Report | None
    ) -> "Published":
        manifest = Manifest.parse(_read(content, result.child(MANIFEST), _MOST_MANIFEST_BYTES))
        trace = _read_trace(content, result, most_trace_bytes(manifest)).checked(manifest)
        states = [state.hex() for state in trace.states]
        return cls(content, result, manifest, states, folder, progress)

    def inputs(self, segment: int) -> Inputs:
        """All that `segment` is computed from, on this machine; or why nothing can be."""
        numbers, absence = sources_of(self.manifest, segment, self.states)
        try:
            states = tuple(self.state(number) for number in numbers)
            deltas = tuple(
                self._state(f"{DELTAS}/{name}", name)
                for name in deltas_named(self.manifest, segment, states)
            )
        except StateError as error:
            return _nonsense(error)
        return Inputs(states=states, deltas=deltas, absence=absence)

    def state(self, number: int) -> Path:
        """State `number`, on this machine."""
        return self._state(f"{STATES}/{number:06}", self.states[number])

    @property
    def score(self) -> Score:
        """The one that the run claims."""
        data = _read(self.content, self.result.child(SCORE), MOST_SCORE_BYTES)
        return Score.read(data, str(self.result))

    def offer(self, name: str) -> bytes | None:
        return self._read_if_there(self.result.child(OFFERS).child(name))

    @property
    def environment_class(self) -> str | None:
        """None also for a run that does not say it so that it can be read."""
        data = self._read_if_there(self.result.child(ENVIRONMENT))
        try:
            return MadeOn.model_validate_json(data or b"").environment_class
        except ValidationError:
            return None

    def _read_if_there(self, path: ContentPath) -> bytes | None:
        """A document that a run should have: without it, or with nonsense there, it has none."""
        try:
            return _read(self.content, path, _MOST_DOCUMENT_BYTES)
        except (NotFoundError, NotADirectoryContentError, RunError):
            return None

    def _state(self, name: str, digest: str) -> Path:
        path = self.folder / f"{digest}.safetensors"
        place = self.result
        for part in f"{name}.safetensors".split("/"):
            place = place.child(part)
        try:
            check_file(self.content, place, most_state_bytes(self.manifest))
        except TooLargeError as error:
            # Whatever its hash is: to know that, all of it would have to be fetched.
            raise _too_large(error) from error
        # INVARIANT: under its own name lies nothing but the state itself.
        fetched = path.with_name(f".{digest}.fetched")
        self.content.get(place, fetched, progress=self.progress)
        if _digest(fetched) != digest:
            fetched.unlink()
            raise RunError(f"the run serves another state as {name} than its trace names")
        fetched.replace(path)
        return path


class Kept:
    """A run in a folder of this machine, finished or not."""

    # It is taken to be this machine's own.
    environment_class: str | None = None

    def __init__(self, run: Path) -> None:
        self._journal = Journal.read(run)
        self.manifest = Manifest.parse(self._journal.manifest)
        self.states = [entry.state for entry in self._journal.entries]

    def inputs(self, segment: int) -> Inputs:
        numbers, _ = sources_of(self.manifest, segment, self.states)
        try:
            for number in numbers:
                self.state(number)
            found = inputs_in(self._journal, self.manifest, segment)
            for path in found.deltas:
                self._check(path, path.stem)
        except StateError as error:
            return _nonsense(error)
        return found

    def state(self, number: int) -> Path:
        path = self._journal.path_of(number)
        self._check(path, self.states[number])
        return path

    def _check(self, path: Path, digest: str) -> None:
        """By its bytes alone: a trace can name some that are no state."""
        if not path.is_file() or _digest(path) != digest:
            raise RunError(f"{path} is not the state that the journal names")
        size, most = path.stat().st_size, most_state_bytes(self.manifest)
        if size > most:
            raise _too_large(f"{path} has {size} bytes, and in this run it has at most {most}")

    @property
    def score(self) -> Score:
        return Score.load(self._journal.folder)

    def offer(self, name: str) -> bytes | None:
        path = self._journal.folder / OFFERS / name
        return path.read_bytes() if path.exists() else None


def _nonsense(error: StateError) -> Inputs:
    """The bytes are those of the trace: who committed to them is wrong, and not merely unread."""
    return Inputs(states=(), nonsense=str(error))


def _too_large(why: object) -> StateError:
    return StateError(f"too large for a state of this manifest: {why}")


def _read_trace(content: Content, result: ContentPath, most: int) -> TraceList:
    data = _read(content, result.child(TRACE), most)
    try:
        return TraceList.model_validate(json.loads(data))
    except (ValueError, ValidationError, RecursionError) as error:
        raise RunError(
            f"{result} has no readable trace: it is no run that was published"
        ) from error


def _read(content: Content, path: ContentPath, most: int) -> bytes:
    check_file(content, path, most)
    return b"".join(content.cat(path))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
