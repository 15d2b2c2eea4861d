"""Runs the workers of one run on this machine: `python -m trainyard.engine.supervisor JOBS`.

A worker that is lost takes its whole cluster down: TensorFlow cannot replace one of its peers. All
are then started anew, at ports that nobody of the cluster before knows, from the last segment that
any of them has, which gives the same bits.
"""

import contextlib
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from trainyard.engine.energy import find_power
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.events import (
    Ended,
    Event,
    Failed,
    Finished,
    Restarted,
    Started,
    Stepped,
    read_event,
    tell,
)
from trainyard.engine.journal import Journal, held
from trainyard.engine.seclusion import seclude
from trainyard.engine.starting import READ_BYTES, output_of, reason_of, started, status_of
from trainyard.engine.worker import EXIT_FAILED, EXIT_LOST_PEER, Job
from trainyard.protocol.errors import TrainyardError

# Lost workers in a row, without a segment between them, after which it is not bad luck.
MOST_LOSSES = 3
_WORD_S = 3.0
# So many clusters one after the other have ports of their own.
_CLUSTERS = 16
# Nobody says anything while a model is tried on many records, so it is long.
DEFAULT_STALL_S = 1800.0


class Jobs(BaseModel):
    """The jobs of all workers, in the order of slots."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    jobs: tuple[Job, ...]
    # For a run in rounds: where it is kept, and how long workers are waited for.
    run: Path | None = None
    deadline_s: float | None = None
    # After how long without a word a cluster is started anew, in mode async by its leader's silence
    # alone, and in rounds whoever says nothing.
    stall_s: float = DEFAULT_STALL_S


def main() -> None:
    given = Jobs.model_validate_json(Path(sys.argv[1]).read_bytes())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if len(given.jobs) > 1:
            seclude()
        power = find_power()
        jobs = tuple(job.model_copy(update={"power": power}) for job in given.jobs)
        if given.run is not None:
            from trainyard.engine.coordinator import coordinate

            coordinate(jobs, given.run, given.deadline_s, given.stall_s)
            return
        if jobs[-1].leads:
            from trainyard.engine.leading import lead

            lead(jobs, given.stall_s)
            return
        supervise(jobs, given.stall_s)
    except (TrainyardError, OSError) as error:
        tell(Failed(reason=str(error)))
        sys.exit(EXIT_FAILED)


@dataclass(slots=True)
class _Attempt:
    """How far the workers came since they were last started."""

    # How long they may take no step; None for however long it takes.
    stall_s: float | None = None
    is_moving: bool = False
    ended: dict[int, str] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    lost: str | None = None

    @property
    def patience_s(self) -> float | None:
        """How long to wait for a word. Before the first step TensorFlow takes its time."""
        if self.lost is not None:
            return _WORD_S
        if self.stall_s is None or self.is_moving:
            return self.stall_s
        return max(self.stall_s, DEFAULT_STALL_S)


class _Ledger:
    """The states that workers tell of, which must be the same for all of them."""

    def __init__(self) -> None:
        self._states: dict[int, str] = {}
        self.latest_at = time.monotonic()

    def take(self, slot: int, number: int, state: str) -> None:
        known = self._states.setdefault(number, state)
        if known != state:
            raise RunError(
                f"worker {slot} disagrees about state {number}: it has {state[:16]}…, and the "
                f"others {known[:16]}…. Its machine is faulty or of another class"
            )
        self.latest_at = time.monotonic()

    @property
    def count(self) -> int:
        return len(self._states)


def supervise(jobs: tuple[Job, ...], stall_s: float = DEFAULT_STALL_S) -> None:
    """Run all workers to the end, starting them anew when one is lost."""
    ledger = _Ledger()
    losses, known, lost_at, reason = 0, 0, None, ""
    for number in count():
        kept = align(jobs)
        attempt = _Attempt(stall_s if len(jobs) > 1 else None)
        after_loss = None if lost_at is None else (lost_at, reason, kept)
        _run_once(_at_other_ports(jobs, number), ledger, attempt, after_loss)
        if attempt.lost is None:
            return
        losses = losses + 1 if ledger.count == known else 1
        if losses >= MOST_LOSSES:
            raise RunError(
                f"workers were lost {losses} times without a segment between: {attempt.lost}"
            )
        known, lost_at, reason = ledger.count, ledger.latest_at, attempt.lost


def _at_other_ports(jobs: tuple[Job, ...], attempt: int) -> tuple[Job, ...]:
    """The cluster of an attempt: what may be left of one before speaks to nobody of this one."""
    shift = attempt % _CLUSTERS * len(jobs)
    addresses = [peer.rpartition(":") for peer in jobs[0].peers]
    peers = tuple(f"{host}:{int(port) + shift}" for host, _, port in addresses)
    return tuple(job.model_copy(update={"peers": peers}) for job in jobs)


def align(jobs: tuple[Job, ...]) -> int:
    """Bring all journals to the same states, and return how many those are.

    A worker that has fewer, such as one that came new or was lost first, takes the rest from the
    one that has most. Where two disagree, nobody knows who is right: from there all compute anew.
    """
    with contextlib.ExitStack() as stack:
        for job in jobs:
            stack.enter_context(held(job.folder))
        return _align([Journal.open(job.folder, job.manifest.read_bytes()) for job in jobs])


def _align(journals: list[Journal]) -> int:
    longest = max(journals, key=lambda one: len(one.entries))
    _rewind_all(journals, min(_agreed(one, longest) for one in journals))
    for journal in journals:
        # One that has lost a state in the midst is of use up to there.
        with contextlib.suppress(StateError):
            journal.adopt(longest)
    kept = min(len(one.entries) for one in journals)
    _rewind_all(journals, kept)
    return kept


def _agreed(journal: Journal, longest: Journal) -> int:
    """How many states of the longest journal another one does not contradict."""
    for ours, theirs in zip(journal.entries, longest.entries, strict=False):
        if ours.state != theirs.state:
            return ours.number
    return len(longest.entries)


def _rewind_all(journals: list[Journal], count: int) -> None:
    for journal in journals:
        if len(journal.entries) > count:
            journal.rewind(count)


def _run_once(
    jobs: tuple[Job, ...],
    ledger: _Ledger,
    attempt: _Attempt,
    after_loss: tuple[float, str, int] | None,
) -> None:
    with contextlib.ExitStack() as stack:
        workers = [stack.enter_context(started(job)) for job in jobs]
        for slot, line in _lines(workers, jobs, attempt):
            try:
                event = read_event(line)
            except ValueError:
                attempt.lost = f"worker {slot} said what no worker says"
                return
            _follow(event, ledger, attempt)
            if isinstance(event, Failed) and not event.lost_peer:
                raise RunError(event.reason)
            tell(event)
            if after_loss is not None and len(attempt.started) == len(jobs):
                since, reason, kept = after_loss
                lost_s = time.monotonic() - since
                tell(Restarted(slot=slot, reason=reason, kept=kept, lost_s=lost_s))
                after_loss = None
        if attempt.lost is None and len(attempt.ended) < len(jobs):
            raise RunError("a worker stopped without saying why")


def _follow(event: Event, ledger: _Ledger, attempt: _Attempt) -> None:
    match event:
        case Started():
            attempt.started.add(event.slot)
        case Stepped():
            attempt.is_moving = True
        case Finished():
            attempt.is_moving |= event.entry.number > 0
            ledger.take(event.slot, event.entry.number, event.entry.state)
        case Ended():
            attempt.ended[event.slot] = event.root
        case _:
            pass


def _lines(
    workers: list["subprocess.Popen[bytes]"], jobs: tuple[Job, ...], attempt: _Attempt
) -> Iterator[tuple[int, bytes]]:
    """What the workers say, until all have ended or one is lost.

    One that only says that it lost another leaves that one a moment to say why. Workers that wait
    for one that stalls say nothing at all.
    """
    with selectors.DefaultSelector() as selector:
        for slot, worker in enumerate(workers):
            selector.register(output_of(worker), selectors.EVENT_READ, slot)
        unfinished = [b""] * len(workers)
        while selector.get_map():
            patience_s = attempt.patience_s
            ready = selector.select(patience_s)
            if not ready:
                attempt.lost = attempt.lost or f"no worker took a step for {patience_s:.0f} s"
                return
            for key, _ in ready:
                slot = key.data
                data = os.read(key.fd, READ_BYTES)
                *lines, unfinished[slot] = (unfinished[slot] + data).split(b"\n")
                for line in lines:
                    yield slot, line
                if data:
                    continue
                selector.unregister(key.fileobj)
                status = status_of(workers[slot])
                if status == EXIT_LOST_PEER:
                    attempt.lost = attempt.lost or reason_of(jobs[slot], status)
                elif status != 0:
                    attempt.lost = reason_of(jobs[slot], status)
                    return


if __name__ == "__main__":
    main()
