"""Who is to blame that a joint run begins anew without getting any further."""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

# Begun anew so often without a new state between, it is not bad luck.
MOST_LOSSES = 20


@dataclass(slots=True)
class Losses:
    """Counts them since the last new state, by slot: a peer's restarts are not our failure.

    Else one that goes on restarting, and answers when it is asked for a sign of life, would have
    the others give up, and pay for it.
    """

    clock: Callable[[], float] = time.monotonic
    # Those for which nobody else is to blame.
    own: int = 0
    # Of each peer how often, and since when.
    _peers: dict[int, int] = field(default_factory=dict)
    _since: dict[int, float] = field(default_factory=dict)
    _all: int = 0
    _states: int = -1

    def note(self, states: int, blamed: Collection[int], *, is_own: bool = False) -> int:
        """One more, with so many states here; how many there were in a row.

        `is_own` says that what ended is ours; but not by itself if somebody else left as well.
        """
        if states != self._states:
            self.forget()
            self._states = states
        for slot in blamed:
            self._peers[slot] = self._peers.get(slot, 0) + 1
            self._since.setdefault(slot, self.clock())
        self.own += is_own and not blamed
        self._all += 1
        return self._all

    @property
    def is_hopeless(self) -> bool:
        """Whether it is something of ours that is broken."""
        return self.own >= MOST_LOSSES

    @property
    def restless(self) -> dict[int, float]:
        """Peers that hold up the run as if they were silent, and since when."""
        return {slot: self._since[slot] for slot, n in self._peers.items() if n >= MOST_LOSSES}

    def leave(self, slot: int) -> None:
        """Somebody else has the slot now."""
        self._peers.pop(slot, None)
        self._since.pop(slot, None)

    def forget(self) -> None:
        """There is a new state."""
        self.own = self._all = 0
        self._peers.clear()
        self._since.clear()
