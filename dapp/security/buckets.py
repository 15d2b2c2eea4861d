"""How often somebody may ask: token buckets, of which only so many are remembered."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic


class Buckets:
    def __init__(
        self,
        per_s: float,
        burst: float,
        *,
        most: int = 20_000,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._per_s, self._burst, self._most, self._clock = per_s, burst, most, clock
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, who: str, cost: float = 1.0) -> float:
        """Zero if it may, else the seconds after which it may."""
        now = self._clock()
        level, at = self._levels.pop(who, (self._burst, now))
        level = min(self._burst, level + (now - at) * self._per_s)
        wait_s = 0.0 if level >= cost else (cost - level) / self._per_s
        if not wait_s:
            level -= cost
        self._levels[who] = (level, now)
        if len(self._levels) > self._most:
            # INVARIANT: memory is bounded however many addresses there are.
            self._levels.popitem(last=False)
        return wait_s
