"""One run on disk: its states, and a journal of finished segments that survives any crash.

A state is written whole before its line, and a line is written whole before the next state. So
whatever a crash leaves behind, the last readable line whose state has the hash that the line says
is where the run goes on.
"""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainyard.engine.counting import Stop
from trainyard.engine.energy import Energy
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.plain_files import (
    descriptor,
    link_plain,
    read_plain,
    remove_unfinished,
    written,
)
from trainyard.engine.state import State
from trainyard.protocol.trace import Trace

_MANIFEST, _JOURNAL, _STATES, _LOCK = "manifest.json", "journal.jsonl", "states", "lock"
# Held by whoever runs all workers, each of which holds the lock of its own folder.
RUN_LOCK = "run.lock"
# Over 2 KB for each state of the longest run that a manifest may ask for; what is larger was
# written by somebody else.
_MOST_BYTES = 256 << 20
_MOST_DIGITS = 20
# Entries may be a stranger's: a number that no counter holds is none.
MOST = 1 << 63


class Measured(BaseModel):
    """Figures, and on how many examples."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    loss: float
    metrics: dict[str, float] = {}
    examples: int = Field(ge=0, lt=MOST)


class Validated(Measured):
    """Figures of an evaluation at the end of an epoch."""

    epoch: int = Field(ge=0, lt=MOST)
    step: int = Field(ge=0, lt=MOST)


class Entry(BaseModel):
    """A state of the trace; number 0 is the one before the first step."""

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    number: int = Field(ge=0, lt=MOST)
    state: str = Field(pattern="^[0-9a-f]{64}$")
    step: int = Field(ge=0, lt=MOST)
    stop: Stop = Stop.NO
    trained: Measured | None = None
    validated: tuple[Validated, ...] = ()
    train_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    trace_s: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    # By this worker, to all others together.
    sent_bytes: int = Field(default=0, ge=0, lt=MOST)
    # By this worker's process, as far as that can be estimated.
    energy: Energy | None = None


class Journal:
    """The folder of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.entries: list[Entry] = []

    @classmethod
    def open(cls, folder: Path, manifest: bytes) -> "Journal":
        """The run of `manifest` in `folder`, as far as it has come, or a new one."""
        journal = cls(folder)
        if journal._states.is_symlink():
            raise RunError(f"{journal._states} is no plain folder: remove it")
        journal._states.mkdir(parents=True, exist_ok=True)
        remove_unfinished(folder, may_be_link=True)
        remove_unfinished(journal._states)
        kept = folder / _MANIFEST
        if not kept.exists():
            write_whole(kept, manifest)
        elif journal.manifest != manifest:
            raise RunError(
                f"{folder} holds a run of another manifest: name another folder, or remove this one"
            )
        journal.entries = journal._sound_entries()
        return journal

    @classmethod
    def read(cls, folder: Path) -> "Journal":
        """The run in `folder`, only to look at."""
        journal = cls(folder)
        if not (folder / _MANIFEST).exists():
            raise RunError(f"{folder} holds no run")
        journal.entries = [entry for entry, _ in journal._lines()]
        return journal

    @property
    def manifest(self) -> bytes:
        return read_plain(self.folder / _MANIFEST, _MOST_BYTES)

    def append(self, entry: Entry, state: State | Path) -> None:
        """Add a state, which may be in a file that is never changed."""
        if entry.number != len(self.entries):
            raise RunError(f"state {entry.number} does not follow state {len(self.entries) - 1}")
        path = self.path_of(entry.number)
        if isinstance(state, Path):
            link_plain(state, path)
        elif not self._repeat(entry):
            state.save(path)
        line = entry.model_dump_json().encode() + b"\n"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        with open(descriptor(self.folder / _JOURNAL, flags), "ab") as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())
        self.entries.append(entry)

    def rewind(self, count: int) -> None:
        """Forget all but the first `count` states."""
        lines = list(self._lines())
        self._cut(lines[count - 1][1] if count else 0)
        self.entries = self.entries[:count]

    def adopt(self, other: "Journal") -> None:
        """Take over what the journal of another worker of the same run has more than this one."""
        for entry in other.entries[len(self.entries) :]:
            self.append(entry, other.state(entry.number))

    def path_of(self, number: int) -> Path:
        return self._states / f"{number:06}.safetensors"

    def state(self, number: int) -> State:
        """State `number`, which must be the one that the journal says."""
        state = State.load(self.path_of(number))
        if state.hash.hex() != self.entries[number].state:
            raise StateError(f"{self.path_of(number)} is not the state that the journal names")
        return state

    @property
    def trace(self) -> Trace:
        return Trace([bytes.fromhex(entry.state) for entry in self.entries])

    @property
    def _states(self) -> Path:
        return self.folder / _STATES

    def _repeat(self, entry: Entry) -> bool:
        """Whether the state is the one before, as after a run's end, and now is in its file too."""
        if not self.entries or entry.state != self.entries[-1].state:
            return False
        try:
            link_plain(self.path_of(entry.number - 1), self.path_of(entry.number))
        except OSError:
            # A file has only so many names, and then there is another one.
            return False
        return True

    def _sound_entries(self) -> list[Entry]:
        """The entries up to the last whose state is there; what follows is cut off."""
        lines = list(self._lines())
        while lines:
            self.entries = [entry for entry, _ in lines]
            try:
                self.state(len(lines) - 1)
                break
            except StateError:
                lines.pop()
        self._cut(lines[-1][1] if lines else 0)
        return [entry for entry, _ in lines]

    def _cut(self, size: int) -> None:
        path = self.folder / _JOURNAL
        if path.exists():
            with open(descriptor(path, os.O_RDWR), "r+b") as file:
                file.truncate(size)
                os.fsync(file.fileno())

    def _lines(self) -> Iterator[tuple[Entry, int]]:
        """Each whole entry, and where its line ends. A line cut off by a crash ends the journal."""
        path = self.folder / _JOURNAL
        data = read_plain(path, _MOST_BYTES) if path.exists() else b""
        end = 0
        for number, line in enumerate(data.split(b"\n")[:-1]):
            end += len(line) + 1
            try:
                entry = Entry.model_validate(json.loads(line))
            except (ValueError, ValidationError):
                return
            if entry.number != number:
                return
            yield entry, end


@contextmanager
def held(folder: Path, name: str = _LOCK) -> Iterator[None]:
    """Keep other processes out of the run in `folder`.

    To be taken before the journal is opened, which cuts off what a crash left behind: of a run that
    somebody else is at, that would be the line that is being written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # Opened so that it stays as it is while somebody else has it.
    flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
    with open(descriptor(folder / name, flags), "a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.seek(0)
            said = lock.read(_MOST_DIGITS).strip()
            who = said if said.isdecimal() else "another"
            raise RunError(
                f"process {who} is at the run in {folder} already: wait for it, or end it"
            ) from error
        lock.truncate(0)
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        yield


def write_whole(path: Path, data: bytes, *, mode: int = 0o666) -> None:
    """Write a file that is there whole or not at all, also after a loss of power."""
    with written(path, mode=mode, may_be_link=True) as file:
        file.write(data)
