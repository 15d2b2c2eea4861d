"""Runs the processes of an async run: its workers, and the one that leads them.

A worker that is lost is started anew while the others go on. With the leader the weights are lost:
all are then started anew, from the last state that was kept. So they are when the leader stands
still, as it does when a worker never gives back what it was sent.
"""

import signal
import sys
import time
from pathlib import Path

from trainyard.engine.crew import Crew, Lost
from trainyard.engine.errors import RunError
from trainyard.engine.events import (
    Ended,
    Event,
    Failed,
    Finished,
    Joined,
    Restarted,
    Started,
    Stepped,
    tell,
)
from trainyard.engine.supervisor import DEFAULT_STALL_S, MOST_LOSSES, Jobs
from trainyard.engine.worker import EXIT_FAILED, EXIT_LOST_PEER, Job
from trainyard.protocol.errors import TrainyardError


def main() -> None:
    """The processes of one machine of a run of several: who leads, and the worker beside it.

    Whoever starts this starts workers elsewhere. They have to begin anew with the leader, so when
    that is lost this ends, and is to be started again with them.
    """
    given = Jobs.model_validate_json(Path(sys.argv[1]).read_bytes())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        if not _Yard(given.jobs, given.stall_s).run_once():
            sys.exit(EXIT_LOST_PEER)
    except (TrainyardError, OSError) as error:
        tell(Failed(reason=str(error)))
        sys.exit(EXIT_FAILED)


def lead(jobs: tuple[Job, ...], stall_s: float = DEFAULT_STALL_S) -> None:
    """Run the leader's job, which is the last, to its end, and those of the workers until then."""
    yard = _Yard(jobs, stall_s)
    while not yard.run_once():
        pass


class _Stall:
    """How long the leader has said nothing. What its workers say does not count."""

    def __init__(self, stall_s: float) -> None:
        # Before the first step TensorFlow takes its time.
        self.limit_s = max(stall_s, DEFAULT_STALL_S)
        self._stall_s = stall_s
        self._heard_at = time.monotonic()

    def hear(self, event: Event) -> None:
        if isinstance(event, Stepped) or (isinstance(event, Finished) and event.entry.number > 0):
            self.limit_s = self._stall_s
        if isinstance(event, Started | Stepped | Finished):
            self._heard_at = time.monotonic()

    @property
    def left_s(self) -> float:
        return max(0.0, self._heard_at + self.limit_s - time.monotonic())


class _Yard:
    def __init__(self, jobs: tuple[Job, ...], stall_s: float) -> None:
        self._jobs = jobs
        self._stall_s = stall_s
        self._stall = _Stall(stall_s)
        self._leader = len(jobs) - 1
        self._kept = 0
        # In a row, without a segment between.
        self._losses = [0] * len(jobs)
        self._lost_at: dict[int, tuple[float, str]] = {}

    def run_once(self) -> bool:
        """Whether the run came to its end, and not only its leader."""
        self._stall = _Stall(self._stall_s)
        with Crew(self._jobs) as crew:
            for number in range(len(self._jobs)):
                crew.start(number)
            while True:
                for heard in crew.listen(self._stall.left_s):
                    if isinstance(heard, Ended):
                        tell(heard)
                        return True
                    if not isinstance(heard, Lost):
                        self._hear(heard)
                        continue
                    self._note(heard)
                    if heard.slot == self._leader:
                        return False
                    crew.start(heard.slot)
                if self._stall.left_s == 0:
                    self._note(self._still())
                    return False

    def _still(self) -> Lost:
        slot = self._jobs[self._leader].slot
        return Lost(self._leader, f"worker {slot} took no step for {self._stall.limit_s:.0f} s")

    def _hear(self, event: Event) -> None:
        if isinstance(event, Failed) and not event.lost_peer:
            raise RunError(event.reason)
        tell(event)
        self._stall.hear(event)
        match event:
            case Finished():
                self._kept = event.entry.number + 1
                self._losses = [0] * len(self._jobs)
            case Started():
                self._kept = event.resumed
                self._tell_back(self._leader, 0)
            case Joined():
                number = next(i for i, job in enumerate(self._jobs) if job.slot == event.slot)
                self._tell_back(number, event.slot)

    def _note(self, lost: Lost) -> None:
        reason = lost.reason
        if lost.slot == self._leader:
            reason = "the leader" + reason.removeprefix(f"worker {self._jobs[lost.slot].slot}")
            # All others are started anew with it, and need no words of their own.
            self._lost_at.clear()
        self._losses[lost.slot] += 1
        if self._losses[lost.slot] >= MOST_LOSSES:
            raise RunError(f"lost {MOST_LOSSES} times without a segment between: {reason}")
        self._lost_at[lost.slot] = time.monotonic(), reason

    def _tell_back(self, number: int, slot: int) -> None:
        if number not in self._lost_at:
            return
        since, reason = self._lost_at.pop(number)
        lost_s = time.monotonic() - since
        alone = number != self._leader
        tell(Restarted(slot=slot, reason=reason, kept=self._kept, lost_s=lost_s, alone=alone))


if __name__ == "__main__":
    main()
