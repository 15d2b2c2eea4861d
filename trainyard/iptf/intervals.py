"""Sets of byte ranges."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator


class Intervals:
    """Disjoint ranges [start, end), merged where they touch."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in ranges:
            self.add(start, end)

    def add(self, start: int, end: int) -> None:
        if start >= end:
            return
        first = bisect_left(self._ends, start)
        last = bisect_right(self._starts, end)
        if first < last:
            start = min(start, self._starts[first])
            end = max(end, self._ends[last - 1])
        self._starts[first:last] = [start]
        self._ends[first:last] = [end]

    def covered_until(self, start: int) -> int:
        """Where the range that `start` is in ends; `start` itself if it is in none."""
        at = bisect_right(self._starts, start) - 1
        return max(start, self._ends[at]) if at >= 0 else start

    def covers(self, start: int, end: int) -> bool:
        return self.covered_until(start) >= end

    def first_gap(self, size: int, start: int = 0) -> tuple[int, int] | None:
        """The first range within [start, size) that is missing."""
        begin = self.covered_until(start)
        if begin >= size:
            return None
        at = bisect_right(self._starts, begin)
        return begin, min(size, self._starts[at]) if at < len(self._starts) else size

    def within(self, start: int, end: int) -> "Intervals":
        """The part of it in [start, end)."""
        return Intervals((max(begin, start), min(stop, end)) for begin, stop in self)

    def end(self) -> int:
        """Where the last range ends; 0 if there is none."""
        return self._ends[-1] if self._ends else 0

    def total(self) -> int:
        return sum(self._ends) - sum(self._starts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._starts, self._ends, strict=True)
