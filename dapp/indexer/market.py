"""The market as events tell it, with what the ledger leaves out: times, and who put in what."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from trainyard.protocol.ledger import Book, Event, apply
from trainyard.protocol.market import BURN_ADDRESS, OWN_PANEL
from trainyard.protocol.telling import task_of

# Arguments of events that name somebody.
_WHO = ("requester", "worker", "account", "member", "accuser", "by")
_ENDS = ("TaskSettled", "TaskFailed", "TaskCancelled")


@dataclass(frozen=True, slots=True)
class Timed:
    """An event, its place, and the time of its block."""

    event: Event
    block: int
    place: int
    time: int


@dataclass(slots=True)
class Part:
    """What somebody put into a task, got from it, and lost of its bonds."""

    roles: list[str] = field(default_factory=list)
    put_in: int = 0
    credited: int = 0
    slashed: int = 0

    def add_role(self, role: str) -> None:
        if role not in self.roles:
            self.roles.append(role)

    @property
    def works(self) -> bool:
        return any(role != "requester" for role in self.roles)


@dataclass(slots=True)
class Notes:
    """What is known of a task from when its events came."""

    posted_at: int
    updated_at: int
    ended_at: int | None = None
    refunded: int = 0


@dataclass(slots=True)
class Market:
    book: Book = field(default_factory=Book)
    notes: dict[int, Notes] = field(default_factory=dict)
    # By task, and by address in it.
    parts: dict[int, dict[str, Part]] = field(default_factory=dict)
    # The tasks that an address has to do with.
    tasks_of: dict[str, set[int]] = field(default_factory=dict)

    def take(self, timed: Timed) -> None:
        event = timed.event
        apply(self.book, event)
        number = task_of(event)
        if number is None:
            return
        if event.name == "TaskPosted":
            self.notes[number] = Notes(timed.time, timed.time)
            self.parts[number] = {}
        notes = self.notes[number]
        notes.updated_at = timed.time
        if event.name in _ENDS:
            notes.ended_at = timed.time
            notes.refunded = event.args["refunded"]
        self._note_part(number, event.name, event.args)

    def _note_part(self, number: int, name: str, args: Mapping[str, Any]) -> None:
        terms = self.book.tasks[number].terms
        match name:
            case "TaskPosted":
                part = self._part(number, args["requester"], "requester")
                part.put_in += terms.escrow
            case "SlotJoined":
                self._part(number, args["worker"], "worker").put_in += terms.stake
            case "SeatDrawn":
                role = "auditor" if args["segment"] == OWN_PANEL else "referee"
                self._part(number, args["member"], role)
            case "SeatClosed":
                self._part(number, args["member"], None).slashed += args["slashed"]
            case "SegmentChallenged":
                self._part(number, args["accuser"], "accuser").put_in += args["bond"]
            case "Credited" if args["account"] != BURN_ADDRESS:
                self._part(number, args["account"], None).credited += args["amount"]
            case _:
                pass

    def _part(self, number: int, who: str, role: str | None) -> Part:
        part = self.parts[number].setdefault(who, Part())
        self.tasks_of.setdefault(who, set()).add(number)
        if role is not None:
            part.add_role(role)
        return part


@dataclass(slots=True)
class Touched:
    """What events are about: the rows that have to be written anew."""

    tasks: set[int] = field(default_factory=set)
    people: set[str] = field(default_factory=set)
    params: bool = False

    @classmethod
    def of(cls, events: Iterable[Event]) -> "Touched":
        touched = cls()
        for event in events:
            number = task_of(event)
            if number is not None:
                touched.tasks.add(number)
            touched.people.update(event.args[name] for name in _WHO if name in event.args)
            touched.params |= event.name == "ParamsSet"
        return touched


class MarketView:
    """The market now, and as it was `depth` blocks ago, from which a reorg finds its way back."""

    def __init__(self, depth: int) -> None:
        self.market = Market()
        self._depth, self._base, self._since = depth, Market(), list[Timed]()

    def take(self, events: Iterable[Timed], to: int) -> None:
        """All events up to block `to`."""
        new = list(events)
        for timed in new:
            self.market.take(timed)
        self._since += new
        settled = 0
        for timed in self._since:
            if timed.block > to - self._depth:
                break
            self._base.take(timed)
            settled += 1
        del self._since[:settled]

    def go_back(self, to: int) -> None:
        self._since = [timed for timed in self._since if timed.block <= to]
        self.market = deepcopy(self._base)
        for timed in self._since:
            self.market.take(timed)
