"""Which endpoint to ask: decided from what each did lately, without I/O and without a clock."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patience:
    """How much is put up with. Times in seconds."""

    # Further behind the best head than this is stale.
    lag_blocks: int = 3
    # A head that stood still for so long, while another moved, is stale too.
    still_s: float = 60.0
    first_wait_s: float = 1.0
    longest_wait_s: float = 60.0
    # How long what is known of the heads is good for.
    heads_s: float = 5.0

    def wait_s(self, failures: int) -> float:
        """Doubles with each failure in a row."""
        return min(self.first_wait_s * 2.0 ** min(failures - 1, 30), self.longest_wait_s)


@dataclass(slots=True)
class Health:
    """What is known of one endpoint."""

    failures: int = 0
    retry_at: float = 0.0
    why: str = ""
    # Checked at first, and again after each failure: who was away may come back as another chain.
    chain_checked: bool = False
    refused: bool = False
    head: int | None = None
    moved_at: float = 0.0

    def fail(self, why: str, now: float, patience: Patience, after_s: float | None = None) -> None:
        self.failures += 1
        wait_s = patience.wait_s(self.failures)
        if after_s is not None:
            # It said itself when; a day is not believed.
            wait_s = max(wait_s, min(after_s, patience.longest_wait_s))
        self.retry_at, self.why = now + wait_s, why
        # A head of which nothing is known now must make no other look stale.
        self.head, self.chain_checked = None, False

    def refuse(self, why: str) -> None:
        self.refused, self.why, self.head = True, why, None

    def succeed(self) -> None:
        self.failures, self.why = 0, ""

    def see_head(self, number: int, now: float) -> None:
        if number != self.head:
            self.head, self.moved_at = number, now

    def waits(self, now: float) -> bool:
        return self.refused or now < self.retry_at


def staleness(each: Sequence[Health], index: int, now: float, patience: Patience) -> str | None:
    """Why the endpoint is stale beside the others, or None if it is not."""
    one = each[index]
    known = [other for other in each if other.head is not None and not other.waits(now)]
    if one.head is None or not known:
        return None
    best = max(other.head or 0 for other in known)
    if best - one.head > patience.lag_blocks:
        return f"its head is block {one.head}, {best - one.head} behind the best"
    moved_at = max(other.moved_at for other in known)
    still_s = now - one.moved_at
    if best > one.head and moved_at > one.moved_at and still_s > patience.still_s:
        return f"its head is block {one.head} since {still_s:.0f} s, while others moved"
    return None
