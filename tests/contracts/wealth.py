"""What a dispute costs and earns, where bonds change hands as well as credits."""

from collections.abc import Sequence
from typing import Any

from tests.contracts.money import credits_of_all, fault_part, finder_part, requester_part
from tests.contracts.yard import BOND, FEE, Seat, Yard
from trainyard.protocol.market import BURN_ADDRESS


class Wealth:
    """Credit and bond of everybody at one moment."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        self._then = self._now()

    def gains(self) -> dict[str, int]:
        """What everybody has gained since; who has as much as then is left out."""
        now = self._now()
        return {who: now[who] - then for who, then in self._then.items() if now[who] != then}

    def _now(self) -> dict[str, int]:
        worker = self._yard.market.worker
        credits_ = credits_of_all(self._yard)
        return {who: credit + int(worker(who)["bond"]) for who, credit in credits_.items()}


def burned_part(slashed: int) -> int:
    """What the finder and the requester leave for the fire, rounding included."""
    return slashed - finder_part(slashed) - requester_part(slashed)


def split(slashed: int, finder: Any, requester: Any) -> list[tuple[Any, int]]:
    """Who gets what of slashed money; without a finder, its part burns too."""
    if finder is None:
        harmed = requester_part(slashed)
        return [(requester, harmed), (BURN_ADDRESS, slashed - harmed)]
    return [
        (finder, finder_part(slashed)),
        (requester, requester_part(slashed)),
        (BURN_ADDRESS, burned_part(slashed)),
    ]


def judged(seats: Sequence[Seat], votes: str) -> list[tuple[Any, int]]:
    """What each referee gains, and what of them is burned.

    T answered the truth, W something else or nothing after committing, and . never committed.
    """
    gains = {"T": FEE, "W": -BOND, ".": -fault_part(BOND)}
    members = [(seat.member, gains[vote]) for seat, vote in zip(seats, votes, strict=True)]
    return [*members, (BURN_ADDRESS, -sum(gain for _, gain in members if gain < 0))]
