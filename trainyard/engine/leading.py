"""Runs the processes of an async run: its workers, and the one that leads them.

A worker that is lost is started anew while the others go on. With the leader the weights are lost:
all are then started anew, from the last state that was kept.
"""

import time

from trainyard.engine.crew import Crew, Lost
from trainyard.engine.errors import RunError
from trainyard.engine.events import Ended, Event, Failed, Finished, Joined, Restarted, Started, tell
from trainyard.engine.supervisor import MOST_LOSSES
from trainyard.engine.worker import Job


def lead(jobs: tuple[Job, ...]) -> None:
    """Run the leader's job, which is the last, to its end, and those of the workers until then."""
    yard = _Yard(jobs)
    while not yard.run_once():
        pass


class _Yard:
    def __init__(self, jobs: tuple[Job, ...]) -> None:
        self._jobs = jobs
        self._leader = len(jobs) - 1
        self._kept = 0
        # In a row, without a segment between.
        self._losses = [0] * len(jobs)
        self._lost_at: dict[int, tuple[float, str]] = {}

    def run_once(self) -> bool:
        """Whether the run came to its end, and not only its leader."""
        with Crew(self._jobs) as crew:
            for number in range(len(self._jobs)):
                crew.start(number)
            while True:
                for heard in crew.listen(None):
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

    def _hear(self, event: Event) -> None:
        if isinstance(event, Failed) and not event.lost_peer:
            raise RunError(event.reason)
        tell(event)
        match event:
            case Finished():
                self._kept = event.entry.number + 1
                self._losses = [0] * len(self._jobs)
            case Started():
                self._kept = event.resumed
                self._tell_back(self._leader, 0)
            case Joined():
                self._tell_back(event.slot, event.slot)

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
