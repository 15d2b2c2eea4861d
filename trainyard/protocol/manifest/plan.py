"""How long a run is and which states each of its segments is computed from, before it starts."""

from collections.abc import Container
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True)
class Plan:
    """A chain of segments, each from the state before it. Early stopping may end it sooner."""

    train_records: int
    held_out: int
    batch: int
    steps: int
    steps_per_segment: int

    @property
    def segments(self) -> int:
        return -(-self.steps // self.steps_per_segment)

    def bounds(self, segment: int) -> tuple[int, int]:
        """The steps [first, last) of `segment`; the last segment may be a short one."""
        self._check(segment)
        first = segment * self.steps_per_segment
        return first, min(first + self.steps_per_segment, self.steps)

    def inputs_of(self, segment: int, absent: Container[int] = ()) -> tuple[int, ...]:
        """The numbers of the states that `segment` is computed from.

        `absent` are the numbers of states that say only that a worker was not there.
        """
        self._check(segment)
        return (segment,)

    def title(self, segment: int) -> str:
        """What people call the segment."""
        return f"segment {segment}"

    def _check(self, segment: int) -> None:
        if not 0 <= segment < self.segments:
            raise IndexError(f"segment {segment} of a plan of {self.segments}")


@dataclass(frozen=True, slots=True)
class PredictPlan(Plan):
    """One pass over the records from `first` on, of which the last batch may be a short one.

    Every segment is computed from state 0, which has the weights; every other state has what the
    model makes of the records of one segment. So each segment is a function of the manifest alone.
    """

    first: int

    def inputs_of(self, segment: int, absent: Container[int] = ()) -> tuple[int, ...]:
        self._check(segment)
        return (0,)

    def records(self, step: int) -> tuple[int, int]:
        """The records [start, stop) of the batch of a step."""
        start = step * self.batch
        return self.first + start, self.first + min(start + self.batch, self.train_records)

    def rows(self, segment: int) -> int:
        """For how many records a segment predicts."""
        first, last = self.bounds(segment)
        return self.records(last - 1)[1] - self.records(first)[0]


@dataclass(frozen=True, slots=True)
class Local:
    """What one worker computes by itself in a round."""

    round: int
    slot: int


@dataclass(frozen=True, slots=True)
class Merge:
    """What all workers make of each other's parts at the end of a round."""

    round: int


@dataclass(frozen=True, slots=True)
class RoundsPlan(Plan):
    """Rounds of N workers: N + 1 segments each, the parts in the order of slots and their merge.

    State r * (N + 1) is the global one before round r; state r * (N + 1) + 1 + w is what worker w
    keeps of that round.
    """

    workers: int
    # Whether a part goes on from what its worker kept, and not from the global state alone.
    goes_on: bool = True

    @property
    def rounds(self) -> int:
        return -(-self.steps // self.steps_per_segment)

    @property
    def segments(self) -> int:
        return self.rounds * (self.workers + 1)

    def bounds(self, segment: int) -> tuple[int, int]:
        """The steps [first, last) of the round that `segment` is in."""
        first = self.part(segment).round * self.steps_per_segment
        return first, min(first + self.steps_per_segment, self.steps)

    def part(self, segment: int) -> Local | Merge:
        self._check(segment)
        number, place = divmod(segment, self.workers + 1)
        return Merge(number) if place == self.workers else Local(number, place)

    def segment(self, part: Local | Merge) -> int:
        place = self.workers if isinstance(part, Merge) else part.slot
        if not 0 <= place <= self.workers:
            raise IndexError(f"slot {place} of {self.workers} workers")
        segment = part.round * (self.workers + 1) + place
        self._check(segment)
        return segment

    def before(self, number: int) -> int:
        """The number of the global state before round `number`, or after the last one."""
        return number * (self.workers + 1)

    def inputs_of(self, segment: int, absent: Container[int] = ()) -> tuple[int, ...]:
        """A merge has the global state and all parts of its round.

        A part has the global state and, if it goes on from that, what its worker kept of the last
        round that it was in.
        """
        part = self.part(segment)
        before = self.before(part.round)
        if isinstance(part, Merge):
            return before, *range(before + 1, before + 1 + self.workers)
        if not self.goes_on:
            return (before,)
        own = range(segment - self.workers, 0, -self.workers - 1)
        return before, *islice((number for number in own if number not in absent), 1)

    def title(self, segment: int) -> str:
        match self.part(segment):
            case Local(number, slot):
                return f"segment {segment} (worker {slot} in round {number})"
            case Merge(number):
                return f"segment {segment} (merge of round {number})"
