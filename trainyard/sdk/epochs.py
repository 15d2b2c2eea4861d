"""Figures of a run in the order in which Keras tells them: batches, and epochs as they end.

Pure: points come from whoever tells of the run, and what comes out are calls for callbacks.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from trainyard.protocol.manifest import Plan

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
    step: int = 0
    _epoch: int = 0
    _is_begun: bool = False
    # Of an epoch, by slot and step: figures of whole segments, and those of single steps.
    _whole: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)
    _loose: dict[tuple[int, int], dict[str, float]] = field(default_factory=dict)
    _tried: dict[int, dict[str, float]] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """How many epochs there are, the last of them perhaps a short one."""
        return max(1, -(-self.plan.steps * self.plan.batch // self.plan.train_records))

    @property
    def batches(self) -> int:
        """Steps of one epoch, the usual number."""
        return -(-self.plan.train_records // self.plan.batch)

    def take(self, points: Iterable[Point]) -> Iterator[Told]:
        """What there is to tell, now that these points are known too."""
        for point in sorted(points, key=lambda one: (one.step, one.slot)):
            tried = {n: v for n, v in point.values.items() if n.startswith(_TRIED)}
            if tried and point.step:
                ended = point.step * self.plan.batch // self.plan.train_records - 1
                self._tried.setdefault(ended, {}).update(tried)
            logs = {
                name: value
                for name, value in point.values.items()
                if name in self.watched and name not in tried
            }
            if not point.step or not logs:
                continue
            yield from self._until(self._epoch_of(point.step))
            yield from self._begin()
            self._add(point, logs)
            if point.step > self.step:
                self.step = point.step
                batch = point.step - self._first_step(self._epoch) - 1
                yield BatchDone(self._epoch, max(0, batch), point.step, logs)

    def finish(self, steps: int | None = None) -> Iterator[Told]:
        """All that is left to tell, when the run is over; it may have stopped early."""
        last = self._epoch_of(steps or self.plan.steps)
        yield from self._until(last)
        if self._epoch == last:
            yield from self._begin()
            yield self._end()

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


def _means(weighed: Iterable[tuple[int, Mapping[str, float]]]) -> dict[str, float]:
    sums: dict[str, tuple[float, int]] = {}
    for weight, logs in weighed:
        for name, value in logs.items():
            total, count = sums.get(name, (0.0, 0))
            sums[name] = total + value * weight, count + weight
    return {name: total / count for name, (total, count) in sums.items()}
