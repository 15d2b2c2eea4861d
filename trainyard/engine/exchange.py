"""Where the workers of a round meet: a folder of documents, and of states by their hashes.

Everything here comes into being whole, under its own name, and is never changed. So a folder that
several processes share will do, and so will files that somebody carries from machine to machine.
A round is three documents: the *call* says what it starts from, the *offer* of each worker what it
has, and the *decision* who is in.
"""

import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from trainyard.engine.energy import Energy
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.journal import Measured, write_whole
from trainyard.engine.leaves import Absence
from trainyard.engine.plain_files import read_plain, remove_unfinished
from trainyard.engine.state import State

_STATES, _ROUNDS = "states", "rounds"
_POLL_S = 0.01
# A decision has the offers of all workers, each with its figures.
_MOST_DOCUMENT_BYTES = 8 << 20
_HASH = "[0-9a-f]{64}"
_Hash: TypeAlias = Annotated[str, Field(pattern=f"^{_HASH}$")]
# A century.
_LONGEST_S = 3.2e9
_NAME = re.compile(r"([0-9]{6}|[1-9][0-9]{6,})-(call|decision|end|offer-[0-9]+)\.json")
_UNFINISHED = re.compile(r"\..+\.json\.[0-9]+\.tmp")


class _Document(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    round: int = Field(ge=0, lt=1 << 63)


class Call(_Document):
    """The global state that a round starts from, and each worker's last leaf, if it has one."""

    globe: _Hash
    last: tuple[_Hash | None, ...]


class Offer(_Document):
    """What a worker has of a round: its leaf, and its delta or why there is none."""

    slot: int = Field(ge=0)
    globe: _Hash
    leaf: _Hash
    delta: _Hash | None = None
    delta_bytes: int = Field(default=0, ge=0, lt=1 << 40)
    absence: Absence | None = None
    trained: Measured | None = None
    train_s: float = Field(default=0.0, ge=0, le=_LONGEST_S)
    trace_s: float = Field(default=0.0, ge=0, le=_LONGEST_S)
    energy: Energy | None = None
    # By the worker's key, over all that the rest of the run depends on.
    signature: str = Field(default="", pattern="^([0-9a-f]{130})?$")

    @model_validator(mode="after")
    def _agrees(self) -> "Offer":
        if (self.delta is None) != (self.absence in (Absence.DIVERGED, Absence.OVER)):
            raise ValueError("an offer has a delta, or is of a worker that has none to send")
        return self


class Decision(_Document):
    """For each slot the offer that is merged, or why there is none.

    Offers are here as they were signed, so that everybody decides by the same ones.
    """

    offers: tuple[Offer | None, ...]
    absences: tuple[Absence | None, ...]

    @model_validator(mode="after")
    def _agrees(self) -> "Decision":
        pairs = list(zip(self.offers, self.absences, strict=True))
        if any((offer is None) == (why is None) for offer, why in pairs):
            raise ValueError("a worker has an offer, or is absent")
        return self

    @property
    def told(self) -> dict[int, Absence]:
        """Those that the round goes on without, by slot."""
        return {slot: why for slot, why in enumerate(self.absences) if why is not None}


class End(_Document):
    """All rounds are done: who makes the model of the last state, and the root of the trace."""

    slot: int = Field(ge=0)
    globe: _Hash
    root: _Hash


_D = TypeVar("_D", bound=_Document)


class Exchange:
    """A folder in which a run's workers meet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def prepare(self) -> None:
        """Make it ready for workers, none of which is there yet."""
        for name in (_STATES, _ROUNDS):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        remove_unfinished(self._folder / _STATES)

    def put(self, state: State) -> str:
        name = state.hash.hex()
        if not self.has(name):
            state.save(self.path_of(name))
        return name

    def get(self, name: str, most_bytes: int | None = None) -> State:
        """A state by its hash; one of more than `most_bytes` is not read."""
        if most_bytes is not None and self.has_more(name, most_bytes):
            raise StateError(f"{self.path_of(name)} is larger than a state of this run can be")
        state = State.load(self.path_of(name))
        if state.hash.hex() != name:
            raise StateError(f"{self.path_of(name)} is not the state that its name says")
        return state

    def has(self, name: str) -> bool:
        """Whether a state is here, whole."""
        try:
            self.get(name)
        except StateError:
            return False
        return True

    def has_more(self, name: str, size: int) -> bool:
        path = self.path_of(name)
        return path.is_file() and path.stat().st_size > size

    def path_of(self, name: str) -> Path:
        # A name can be a stranger's word, and must not lead out of the folder.
        if not is_hash(name):
            raise StateError(f"{name[:64]!r} cannot be the name of a state")
        return self._folder / _STATES / f"{name}.safetensors"

    def post(self, document: Call | Offer | Decision | End) -> None:
        write_whole(self._document(document), document.model_dump_json().encode())

    def call(self, number: int) -> Call | None:
        return _read(self._path(number, "call"), Call)

    def offer(self, number: int, slot: int) -> Offer | None:
        return _read(self._path(number, f"offer-{slot}"), Offer)

    def withdraw(self, number: int, slot: int) -> None:
        """Remove an offer that is none, so that its worker makes another."""
        _remove(self._path(number, f"offer-{slot}"))

    def decision(self, number: int) -> Decision | None:
        return _read(self._path(number, "decision"), Decision)

    def is_decided(self, number: int) -> bool:
        return self._path(number, "decision").exists()

    def forget(self, number: int) -> None:
        """Remove the documents of round `number` and of all later ones."""
        for path in (self._folder / _ROUNDS).iterdir():
            if _UNFINISHED.fullmatch(path.name):
                _remove(path)
        for found, _, path in self._named():
            if found >= number:
                _remove(path)

    def end(self, number: int) -> End | None:
        return _read(self._path(number, "end"), End)

    def latest_call(self) -> Call | None:
        numbers = [number for number, name, _ in self._named() if name == "call"]
        return self.call(max(numbers)) if numbers else None

    def _named(self) -> list[tuple[int, str, Path]]:
        """All documents, by round and name. Whatever else lies here is nobody's business."""
        paths = (self._folder / _ROUNDS).glob("*.json")
        found = [(_NAME.fullmatch(path.name), path) for path in paths]
        return [(int(name[1]), name[2], path) for name, path in found if name is not None]

    def _document(self, document: Call | Offer | Decision | End) -> Path:
        match document:
            case Offer():
                return self._path(document.round, f"offer-{document.slot}")
            case Call():
                return self._path(document.round, "call")
            case Decision():
                return self._path(document.round, "decision")
            case End():
                return self._path(document.round, "end")

    def _path(self, number: int, name: str) -> Path:
        return self._folder / _ROUNDS / f"{number:06}-{name}.json"


def is_hash(name: str) -> bool:
    return re.fullmatch(_HASH, name) is not None


def wait_for(look: Callable[[], _D | None]) -> _D:
    """What `look` finds, once it finds something. Who waits ends with its parent."""
    while (found := look()) is None:
        pause()
    return found


def pause() -> None:
    """The time between two looks at a folder."""
    time.sleep(_POLL_S)


def _read(path: Path, kind: type[_D]) -> _D | None:
    """A document, where a worker in a sandbox may have left a link or a pipe in its place."""
    try:
        return kind.model_validate_json(read_plain(path, _MOST_DOCUMENT_BYTES))
    except FileNotFoundError:
        return None
    except RunError as error:
        raise StateError(str(error)) from error
    except ValidationError as error:
        raise StateError(f"{path} is no document of a round: remove it") from error


def _remove(path: Path) -> None:
    """Whatever lies there: a worker in a sandbox may have made a folder of a document's name."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        shutil.rmtree(path)
