"""Who is in a round. No I/O, no clock."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from trainyard.engine.leaves import Absence


@dataclass(frozen=True, slots=True)
class Deadline:
    """How long after the first offer of a round the others are waited for."""

    # None for however long it takes.
    least_s: float | None = None
    # As a multiple of the longest time that anybody needed so far, if that is more.
    times: float = 0.0
    # Before anybody is known to have done a round.
    first_s: float = 0.0

    def after(self, longest_s: float | None) -> float | None:
        if self.least_s is None:
            return None
        if longest_s is None:
            return max(self.least_s, self.first_s)
        return max(self.least_s, self.times * longest_s)


@dataclass(frozen=True, slots=True)
class Standing:
    """A round as it stands: who has offered a part, and who is there and so is waited for."""

    workers: int
    offered: AbstractSet[int]
    there: AbstractSet[int]
    # How many parts make a round.
    quorum: int = 1
    # Whether the deadline, counted from the first offer, has passed.
    overdue: bool = False


def decide(standing: Standing) -> dict[int, Absence] | None:
    """Those that the round goes on without, by slot; None to wait.

    With fewer parts than the quorum it is no round: however late it is, they are waited for.
    """
    missing = standing.there - standing.offered
    if len(standing.offered) < standing.quorum or (missing and not standing.overdue):
        return None
    return {
        slot: Absence.LATE if slot in missing else Absence.AWAY
        for slot in range(standing.workers)
        if slot not in standing.offered
    }
