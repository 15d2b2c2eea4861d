"""Figures of a run in the order in which Keras tells them: batches, and epochs as they end.

Pure: points come from whoever tells of the run, and what comes out are calls for callbacks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trainyard.protocol.manifest import Plan, RoundsPlan

_TRIED = "val_"


@dataclass(frozen=True, slots=True)
class Point:
    """Figures that a worker told after so many steps."""

    slot: int
    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class EpochBegun:
    epoch: int


@dataclass(frozen=True, slots=True)
class BatchDone:
    epoch: int
    # Within the epoch, from zero on.
    batch: int
    step: int
    logs: dict[str, float]


@dataclass(frozen=True, slots=True)
class EpochDone:
    epoch: int
    logs: dict[str, float]


Told = EpochBegun | BatchDone | EpochDone


@dataclass(slots=True)
class Epochs:
    """Sorts points into epochs. `watched` are the names that a run reports."""

    plan: Plan
    watched: tuple[str, ...]
    # How many are asked for, where the manifest counts in epochs: the last batch of those may
    # reach beyond them, which makes no further epoch.
    asked: int | None = None
    step: int = 0
    _epoch: int = 0
    _is_begun: bool = False
    # Of an epoch, by slot and step: figures of whole segments, and those of single steps.
    _whole: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)
    _loose: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)
    _tried: dict[int, dict[str, float]] = field(default_factory=dict)
    # Points of a later epoch than the one whose figures of validation are still to come.
    _held: list[Point] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many epochs there are, the last of them perhaps a short one."""
        found = max(1, -(-self.plan.steps * self.plan.batch // self.plan.train_records))
        return found if self.asked is None else min(found, self.asked)

    @property
    def batches(self) -> int:
        """Steps of one epoch, the usual number."""
        return -(-self.plan.train_records // self.plan.batch)

    def take(self, points: Iterable[Point]) -> Iterator[Told]:
        """What there is to tell, now that these points are known too."""
        given = sorted((*self._held, *points), key=lambda one: (one.step, one.slot))
        self._held = []
        for point in given:
            self._note_tried(point)
        newest = max((one.step for one in given), default=0)
        for place, point in enumerate(given):
            if self._awaits_figures(point, newest):
                self._held = given[place:]
                return
            yield from self._tell(point)

    def finish(
        self, steps: int | None = None, tried: Mapping[int, Mapping[str, float]] | None = None
    ) -> Iterator[Told]:
        """All that is left to tell, when the run is over; it may have stopped early.

        `tried` are figures of validation by epoch, for those of which nobody told any.
        """
        for epoch, figures in (tried or {}).items():
            self._tried[epoch] = {**figures, **self._tried.get(epoch, {})}
        for point in self._held:
            yield from self._tell(point)
        last = self._epoch_of(steps or self.plan.steps)
        yield from self._until(last)
        if self._epoch == last:
            yield from self._begin()
            yield self._end()

    def untried(self, steps: int) -> list[int]:
        """Epochs of a run of so many steps that have not ended here, and have no validation yet."""
        left = range(self._epoch, self._epoch_of(steps) + 1)
        return [epoch for epoch in left if epoch not in self._tried]

    def _note_tried(self, point: Point) -> None:
        tried = {n: v for n, v in point.values.items() if n.startswith(_TRIED)}
        if tried and point.step:
            ended = point.step * self.plan.batch // self.plan.train_records - 1
            self._tried.setdefault(ended, {}).update(tried)

    def _awaits_figures(self, point: Point, newest: int) -> bool:
        """Whether a point would end an epoch before its validation is told.

        Workers tell that with the whole segment in which the epoch ends: when they are beyond that,
        nothing more will come.
        """
        is_tried = any(name.startswith(_TRIED) for name in self.watched)
        if not is_tried or self._epoch in self._tried or not self._logs_of(point):
            return False
        if self._epoch_of(point.step) <= self._epoch:
            return False
        length = self.plan.steps_per_segment
        return newest <= -(-steps_of(self.plan, self._epoch) // length) * length

    def _logs_of(self, point: Point) -> dict[str, float]:
        return {
            name: value
            for name, value in point.values.items()
            if name in self.watched and not name.startswith(_TRIED)
        }

    def _tell(self, point: Point) -> Iterator[Told]:
        logs = self._logs_of(point)
        if not point.step or not logs:
            return
        epoch = self._epoch_of(point.step)
        if epoch < self._epoch:
            # Of a slower worker: that epoch is told already.
            return
        yield from self._until(epoch)
        yield from self._begin()
        self._add(point, logs)
        if point.step > self.step:
            self.step = point.step
            batch = point.step - self._first_step(self._epoch) - 1
            yield BatchDone(self._epoch, max(0, batch), point.step, logs)

    def _until(self, epoch: int) -> Iterator[Told]:
        while self._epoch < epoch:
            yield from self._begin()
            yield self._end()

    def _begin(self) -> Iterator[Told]:
        if not self._is_begun:
            self._is_begun = True
            yield EpochBegun(self._epoch)

    def _end(self) -> EpochDone:
        """Means over whole segments, if there were any; else over what was told."""
        found = _means((1, logs) for logs in self._loose.values())
        length = self.plan.steps_per_segment
        found |= _means(((step - 1) % length + 1, logs) for (_, step), logs in self._whole.items())
        logs = {name: found[name] for name in self.watched if name in found}
        logs |= self._tried.pop(self._epoch, {})
        told = EpochDone(self._epoch, logs)
        self._epoch, self._is_begun = self._epoch + 1, False
        self._whole, self._loose = {}, {}
        return told

    def _add(self, point: Point, logs: dict[str, float]) -> None:
        is_whole = point.step % self.plan.steps_per_segment == 0 or point.step == self.plan.steps
        # Told twice, it counts once: the last step of a segment is told before the whole of it.
        (self._whole if is_whole else self._loose)[point.slot, point.step] = logs

    def _epoch_of(self, step: int) -> int:
        """The epoch that most of step number `step`, counted from one, belongs to."""
        epoch = (step * self.plan.batch - 1) // self.plan.train_records
        return min(epoch, self.count - 1)

    def _first_step(self, epoch: int) -> int:
        return epoch * self.plan.train_records // self.plan.batch


def steps_of(plan: Plan, epoch: int) -> int:
    """After how many steps of the run the last record of an epoch is used."""
    return -(-(epoch + 1) * plan.train_records // plan.batch)


def states_at_ends(plan: Plan, epochs: Iterable[int], steps: int) -> dict[int, int]:
    """For epochs of a run of so many steps, the number of the state at the end of each.

    There is one where a segment ends with the epoch. In rounds it is that of the merge after it,
    for the last epoch that ends in a round, as workers validate there. The last epoch of a run
    ends with the run.
    """
    found = {}
    for epoch in epochs:
        ended = steps_of(plan, epoch)
        if ended >= steps:
            found[epoch] = plan.segments
            continue
        whole, rest = divmod(ended, plan.steps_per_segment)
        if isinstance(plan, RoundsPlan):
            number = whole + (1 if rest else 0)
            last = min(number * plan.steps_per_segment, plan.steps)
            if last * plan.batch // plan.train_records - 1 == epoch:
                found[epoch] = plan.before(number)
        elif not rest:
            found[epoch] = whole
    return found


def _means(weighed: Iterable[tuple[int, Mapping[str, float]]]) -> dict[str, float]:
    sums: dict[str, tuple[float, int]] = {}
    for weight, logs in weighed:
        for name, value in logs.items():
            total, count = sums.get(name, (0.0, 0))
            sums[name] = total + value * weight, count + weight
    return {name: total / count for name, (total, count) in sums.items()}
