"""What an agent can do next. Each is safe to be decided upon again until it shows as done."""

from dataclasses import dataclass

from trainyard.chain.calls import Call


@dataclass(frozen=True, slots=True)
class Send:
    """Send a call once. `by` is the second of the chain's time from which it is in vain."""

    key: str
    call: Call
    by: int | None = None
    # The market would not refuse a second one, but do it once more: one that failed is tried again
    # only when no reorg can make it succeed.
    adds_up: bool = False
    # Whether it puts our money down, out of the purse or of the credit.
    stakes: bool = False


@dataclass(frozen=True, slots=True)
class Hurry:
    """Have what was sent with a key mined before `by`, from which second on it is in vain."""

    key: str
    by: int


@dataclass(frozen=True, slots=True)
class Fetch:
    """Fetch and check all that a task needs, before joining it."""

    task: int


@dataclass(frozen=True, slots=True)
class MakeCard:
    """Make and publish the peer card with which a task is joined."""

    task: int


@dataclass(frozen=True, slots=True)
class Train:
    """Train, or go on training, as the worker of a slot; at its end, be there for the others."""

    task: int
    slot: int


@dataclass(frozen=True, slots=True)
class Seal:
    """Name the finished run, serve the evidence of segments, and all of it once it is open."""

    task: int
    served: tuple[int, ...] = ()
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Recompute:
    """Find the answer of a seat: to a segment of a trace, or for the score of a result."""

    task: int
    # The panel by its segment and round, and the seat in it.
    panel: tuple[int, int]
    seat: int


@dataclass(frozen=True, slots=True)
class LookBehind:
    """Look at what ended a run, since the segment that was drawn lies after its end."""

    task: int
    segment: int


@dataclass(frozen=True, slots=True)
class Prepare:
    """Have a process ready for the next seal or answer; it is kept as long as this is decided."""

    task: int
    # Where in the task's folder it will find what segments are to be recomputed from; None if it
    # will not have to recompute any.
    inputs: str | None = None


@dataclass(frozen=True, slots=True)
class Stop:
    """End what runs for a task, since it cannot be finished or is over."""

    task: int
    reason: str
    # Work that goes on.
    spared: tuple[str, ...] = ()
    # What ends; all of it, if nothing is named.
    works: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Tell:
    """Say once what cannot be done any more, and why; also to the requester, if it is so said."""

    task: int
    reason: str
    is_notice: bool = False


@dataclass(frozen=True, slots=True)
class Forget:
    """Remove what tasks left here that are over for good."""

    tasks: tuple[int, ...]


Action = (
    Send
    | Hurry
    | Fetch
    | MakeCard
    | Train
    | Seal
    | Recompute
    | LookBehind
    | Prepare
    | Stop
    | Tell
    | Forget
)
