"""The processes of workers that come and go by themselves."""

import contextlib
import os
import selectors
from dataclasses import dataclass
from subprocess import Popen
from types import TracebackType
from typing import Protocol

from trainyard.engine.events import Event, read_event
from trainyard.engine.starting import READ_BYTES, output_of, reason_of, started, status_of
from trainyard.engine.worker import Job


@dataclass(frozen=True, slots=True)
class Lost:
    """A worker's process has ended without having been told to."""

    slot: int
    reason: str


class Members(Protocol):
    """The workers of a run, wherever they are, as whoever leads them needs them."""

    @property
    def slots(self) -> set[int]: ...

    def start(self, slot: int) -> None: ...

    def listen(self, timeout_s: float | None) -> list[Event | Lost]: ...

    def dismiss(self, slot: int) -> None: ...


@dataclass(slots=True)
class _Member:
    process: "Popen[bytes]"
    ending: contextlib.ExitStack
    unfinished: bytes = b""


class Crew:
    """Starts workers, hears them, and ends them all when it is left."""

    def __init__(self, jobs: tuple[Job, ...]) -> None:
        self._jobs = jobs
        self._members: dict[int, _Member] = {}
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> "Crew":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for slot in list(self._members):
            self.dismiss(slot)
        self._selector.close()

    @property
    def slots(self) -> set[int]:
        """Those whose processes run."""
        return set(self._members)

    def start(self, slot: int) -> None:
        ending = contextlib.ExitStack()
        process = ending.enter_context(started(self._jobs[slot]))
        self._members[slot] = _Member(process, ending)
        self._selector.register(output_of(process), selectors.EVENT_READ, slot)

    def listen(self, timeout_s: float | None) -> list[Event | Lost]:
        """What workers say, and who is lost; nothing if nobody says anything in that time."""
        heard: list[Event | Lost] = []
        for key, _ in self._selector.select(timeout_s):
            member = self._members[key.data]
            data = os.read(key.fd, READ_BYTES)
            *lines, member.unfinished = (member.unfinished + data).split(b"\n")
            try:
                heard += [_event(self._jobs[key.data].slot, line) for line in lines]
            except ValueError:
                self.dismiss(key.data)
                slot = self._jobs[key.data].slot
                heard.append(Lost(key.data, f"worker {slot} said what no worker says"))
                continue
            if not data:
                status = status_of(member.process)
                self.dismiss(key.data)
                heard.append(Lost(key.data, reason_of(self._jobs[key.data], status)))
        return heard

    def dismiss(self, slot: int) -> None:
        """End a worker's process, if it runs."""
        member = self._members.pop(slot, None)
        if member is None:
            return
        self._selector.unregister(output_of(member.process))
        member.ending.close()


def _event(slot: int, line: bytes) -> Event:
    event = read_event(line)
    if event.slot != slot:
        raise ValueError(f"worker {slot} speaks for worker {event.slot}")
    return event
