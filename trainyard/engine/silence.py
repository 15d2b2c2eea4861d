"""Who says nothing although it has something to do. No I/O; the clock is given."""

from collections.abc import Set as AbstractSet


class Silence:
    """How long each worker has been silent while it was its turn.

    Before its first step TensorFlow takes its time, and then nobody is silent for less than
    `first_s`. Without `limit_s` anybody may be silent for ever.
    """

    def __init__(self, limit_s: float | None, first_s: float) -> None:
        self._limit_s, self._first_s = limit_s, max(first_s, limit_s or 0.0)
        # When it last said something, or its turn began; and who has taken a step since its start.
        self._since: dict[int, float] = {}
        self._moving: set[int] = set()

    def start(self, slot: int, now: float) -> None:
        self._since[slot] = now
        self._moving.discard(slot)

    def hear(self, slot: int, now: float, *, is_step: bool) -> None:
        self._since[slot] = now
        if is_step:
            self._moving.add(slot)

    def left_s(self, awaited: AbstractSet[int], now: float) -> float | None:
        """Until the first of `awaited` has been silent for too long; None for never.

        It is the turn of nobody else, whose silence begins with its next turn.
        """
        for slot in self._since.keys() - awaited:
            self._since[slot] = now
        if self._limit_s is None or not awaited:
            return None
        return max(0.0, min(self._ends_at(slot, now) for slot in awaited) - now)

    def over(self, awaited: AbstractSet[int], now: float) -> dict[int, float]:
        """Those of `awaited` that were silent for too long, and for how long."""
        if self._limit_s is None:
            return {}
        return {
            slot: now - self._since[slot]
            for slot in sorted(awaited)
            if slot in self._since and now >= self._ends_at(slot, now)
        }

    def _ends_at(self, slot: int, now: float) -> float:
        limit_s = self._limit_s if slot in self._moving else self._first_s
        return self._since.setdefault(slot, now) + (limit_s or 0.0)
