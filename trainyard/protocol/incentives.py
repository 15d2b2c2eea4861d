"""What cheating gains and costs, in expectation.

With price P, compute cost C, stake S and a cheated fraction f of the segments, cheating saves f·C
and, when caught, loses P and S, less the finder's part r·S if it manages to accuse itself first.
Honesty pays if p·(P + (1-r)·S) > f·C, where p is the chance of being caught.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True, slots=True)
class Task:
    """Amounts in any one unit; `honest_pool` is the part of the pool that is not the cheat's."""

    price: float
    cost: float
    stake: float
    audits: int
    honest_pool: float = 1.0
    referees: int = 3
    finder_part: float = 0.5

    @property
    def loss(self) -> float:
        """What a caught cheat loses if it is quick enough to accuse itself."""
        return self.price + (1 - self.finder_part) * self.stake


def detection_theory(fraction: float, audits: int) -> float:
    """Chance that independent audits hit a cheated segment."""
    return float(1 - (1 - fraction) ** audits)


def detection(cheated: Sequence[bool], audits: int, honest_pool: float = 1.0) -> float:
    """Chance that a draw asks an honest auditor about a cheated segment.

    Exact: counts the ways to draw `audits` segments of the ring, no two of them neighbours, by how
    many of them are cheated.
    """
    ways = _draws_by_hits(cheated, audits)
    missed = sum(count * (1 - honest_pool) ** hits for hits, count in enumerate(ways))
    return float(1 - missed / sum(ways))


def verdict(task: Task) -> float:
    """Chance that referees uphold a true accusation against a cheat that owns part of the pool.

    The cheat's own referees all vote for it, and the honest ones all for the truth, so a committee
    of an odd size always has a majority and there is no escalation.
    """
    honest, size = task.honest_pool, task.referees
    return sum(
        comb(size, k) * honest**k * (1 - honest) ** (size - k)
        for k in range(size // 2 + 1, size + 1)
    )


def gain_from_cheating(task: Task, cheated: Sequence[bool]) -> float:
    """Expected profit of cheating minus that of honest work; negative where honesty pays."""
    fraction = sum(cheated) / len(cheated)
    caught = detection(cheated, task.audits, task.honest_pool) * verdict(task)
    return fraction * task.cost - caught * task.loss


def stake_for_honesty(task: Task, cheated: Sequence[bool]) -> float:
    """The least stake at which cheating gains nothing; zero where none is needed."""
    fraction = sum(cheated) / len(cheated)
    caught = detection(cheated, task.audits, task.honest_pool) * verdict(task)
    if not caught:
        return float("inf")
    return max(0.0, fraction * task.cost / caught - task.price) / (1 - task.finder_part)


def spread(segments: int, fraction: float) -> list[bool]:
    """Cheated segments spread evenly: what a cheat that fears neighbours' audits would do."""
    count = max(1, round(segments * fraction))
    chosen = {round(i * segments / count) for i in range(count)}
    return [index in chosen for index in range(segments)]


def block(segments: int, fraction: float) -> list[bool]:
    """Cheated segments in one block: a worker that stops early and makes the rest up."""
    count = max(1, round(segments * fraction))
    return [index >= segments - count for index in range(segments)]


def _draws_by_hits(cheated: Sequence[bool], audits: int) -> list[int]:
    """Ways to draw `audits` segments, indexed by the number of cheated ones among them."""
    total = [0] * (audits + 1)
    length = len(cheated)
    if audits == 1:
        total[1], total[0] = sum(cheated), length - sum(cheated)
        return total
    for first_drawn in (False, True):
        # (drawn so far, hits, whether the last was drawn) -> ways
        start = (1, int(cheated[0]), True) if first_drawn else (0, 0, False)
        ways = {start: 1}
        for index in range(1, length):
            following: dict[tuple[int, int, bool], int] = {}
            for (drawn, hits, last), count in ways.items():
                skipped = (drawn, hits, False)
                following[skipped] = following.get(skipped, 0) + count
                closes_ring = index == length - 1 and first_drawn
                if not last and not closes_ring and drawn < audits:
                    taken = (drawn + 1, hits + int(cheated[index]), True)
                    following[taken] = following.get(taken, 0) + count
            ways = following
        for (drawn, hits, _), count in ways.items():
            if drawn == audits:
                total[hits] += count
    return total
