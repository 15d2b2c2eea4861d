"""What the processes of a run tell each other and whoever watches: one JSON document a line."""

import sys
from threading import Lock
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from trainyard.engine.journal import MOST, Entry, Measured, Validated

_Count: TypeAlias = Annotated[int, Field(ge=0, lt=MOST)]
_Hash: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")

    slot: _Count = 0


class Started(_Event):
    """A worker computes from now on; `resumed` states were there already.

    In mode rounds, where nobody keeps all states, `start` is the first state if nobody had it yet.
    """

    event: Literal["started"] = "started"
    resumed: _Count = 0
    steps: _Count
    segments: _Count
    start: _Hash | None = None


class Stepped(_Event):
    """A worker has taken a step; only some are told."""

    event: Literal["stepped"] = "stepped"
    step: _Count
    loss: float
    examples_per_s: float


class Joined(_Event):
    """A worker of an async run is there, to be sent what it computes."""

    event: Literal["joined"] = "joined"


class Finished(_Event):
    """A state of the trace is complete and kept."""

    event: Literal["finished"] = "finished"
    entry: Entry


class Offered(_Event):
    """A worker has done its part of a round."""

    event: Literal["offered"] = "offered"
    round: _Count


class Merged(_Event):
    """A worker has merged a round by itself, and has tried the outcome if that ended an epoch."""

    event: Literal["merged"] = "merged"
    round: _Count
    state: _Hash
    validated: tuple[Validated, ...] = ()


class LeftOut(_Event):
    """A round goes on without a worker."""

    event: Literal["left_out"] = "left_out"
    round: _Count
    reason: str


class Ended(_Event):
    """A worker has computed all segments; one has tried the model on the test records."""

    event: Literal["ended"] = "ended"
    root: _Hash
    tested: Measured | None = None


class Failed(_Event):
    """A worker cannot go on. One that lost a peer may, in a new cluster."""

    event: Literal["failed"] = "failed"
    reason: str
    lost_peer: bool = False


class Restarted(_Event):
    """All workers start anew from the last segment that all of them have.

    Or one did `alone`, while the others went on.
    """

    event: Literal["restarted"] = "restarted"
    reason: str
    kept: _Count
    lost_s: float = Field(ge=0, allow_inf_nan=False)
    alone: bool = False


Event: TypeAlias = Annotated[
    Started | Joined | Stepped | Finished | Offered | Merged | LeftOut | Ended | Failed | Restarted,
    Field(discriminator="event"),
]
_ADAPTER: TypeAdapter[Event] = TypeAdapter(Event)
_TELLING = Lock()


def read_event(line: bytes | str) -> Event:
    return _ADAPTER.validate_json(line)


def tell(event: Event) -> None:
    """Say it to the process that started this one; from any thread."""
    line = event.model_dump_json() + "\n"
    with _TELLING:
        sys.stdout.write(line)
        sys.stdout.flush()
