"""What `benchmarks.end_to_end` makes of what it measured: ratios, how audits grow, goals. Pure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.reporting import Figure

LONG_S = 1200.0
FIT, MIRRORED, FLOWER = "Keras fit", "MultiWorkerMirrored", "Flower FedAvg"
SINGLE, SYNC, ROUNDS = "single, Audit", "sync, Audit", "rounds, Audit"
REPLICATE, COARSE = "single, Replicate", "half of it, 4 segments"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way of training one network. Processor time is that of all processes together."""

    net: str
    way: str
    goal: float
    steps: int
    seconds: float
    accuracy: float
    cpu_s: float
    # The first weights that were good enough, since the call; None if none were.
    reached_s: float | None = None
    # From the last step until the weights are in hand: audits, settling, fetching.
    tail_s: float = 0.0
    # Between workers, and of content that somebody fetched from somebody else.
    peer_bytes: int = 0
    content_bytes: int = 0
    energy_j: float | None = None
    # On the market only.
    gas: int | None = None
    segments: int = 0
    # From the first step to the last.
    steps_s: float = 0.0
    # Of the workers' processes, without the agents that started them.
    training_cpu_s: float = 0.0
    # Of all who do the work once more.
    checking_cpu_s: float | None = None

    @property
    def sent_bytes(self) -> int:
        return self.peer_bytes + self.content_bytes

    @property
    def to_goal_s(self) -> float | None:
        """Until weights would have been in hand that are good enough, had training ended there.

        On the market they are in hand when they are settled, so what comes after the last step is
        added to the moment at which a run had them.
        """
        return None if self.reached_s is None else self.reached_s + self.tail_s

    @property
    def share(self) -> float | None:
        """Of checking, in that of training."""
        if self.checking_cpu_s is None:
            return None
        return self.checking_cpu_s / self.training_cpu_s


@dataclass(frozen=True, slots=True)
class Line:
    """y = fixed + each · x."""

    fixed: float
    each: float

    @classmethod
    def through(cls, points: Sequence[tuple[float, float]]) -> "Line":
        """By least squares; of two points, exactly."""
        if len({x for x, _ in points}) < 2:
            raise ValueError("a line needs two points that lie apart")
        mean_x = math.fsum(x for x, _ in points) / len(points)
        mean_y = math.fsum(y for _, y in points) / len(points)
        spread = math.fsum((x - mean_x) ** 2 for x, _ in points)
        each = math.fsum((x - mean_x) * (y - mean_y) for x, y in points) / spread
        return cls(mean_y - each * mean_x, each)

    def at(self, x: float) -> float:
        return self.fixed + self.each * x


@dataclass(frozen=True, slots=True)
class Scaling:
    """How processor time grows with a task under Audit.

    Training takes a start and so much a step. An audit takes a start, of a process with TensorFlow
    and the records, and so much for each step of its one segment.
    """

    training: Line
    audit: Line
    step_s: float

    @classmethod
    def of(cls, rows: Sequence[Row], audits: int) -> "Scaling":
        """Of tasks that differ in their length and in the length of their segments."""
        training = Line.through([(row.steps, row.training_cpu_s) for row in rows])
        audit = Line.through(
            [(row.steps / row.segments, (row.checking_cpu_s or 0.0) / audits) for row in rows]
        )
        longest = max(rows, key=lambda row: row.steps)
        return cls(training, audit, longest.steps_s / longest.steps)

    def share(self, seconds: float, *, segments: int, audits: int) -> float:
        """Of checking in training, for a task that trains so long.

        No number if what was measured says that more work takes less time: then it was noise.
        """
        if min(self.training.each, self.audit.each) <= 0:
            return math.nan
        steps = seconds / self.step_s
        return audits * self.audit.at(steps / segments) / self.training.at(steps)


def figures(
    rows: Sequence[Row], scalings: Iterable[Scaling], *, segments: int, audits: int
) -> list[Figure]:
    """What has a goal; of several networks, the worst counts."""
    nets = list(dict.fromkeys(row.net for row in rows))
    pairs = [(row_of(rows, net, SINGLE), row_of(rows, net, FIT)) for net in nets]
    met = [(row_of(rows, net, ROUNDS), row_of(rows, net, FLOWER)) for net in nets]
    long_share = _worst(one.share(LONG_S, segments=segments, audits=audits) for one in scalings)
    return [
        Figure(
            "market_over_fit_ratio",
            "single on the market ÷ Keras fit, from the first step to the last",
            max(market.steps_s / fit.seconds for market, fit in pairs),
            1.05,
        ),
        Figure(
            "fixed_cost_s",
            "all else of trainyard.fit: content, chain, start, audits, settling, s",
            max(market.seconds - market.steps_s for market, _ in pairs),
            15.0,
        ),
        Figure(
            "audit_cpu_share_at_20min",
            f"Audit's CPU ÷ training's, 20 minutes in {segments} segments, by the lines below",
            long_share,
            0.05,
        ),
        Figure(
            "rounds_over_flower_time",
            "rounds on the market ÷ Flower, time to accuracy",
            _worst(_time_ratio(rounds, flower) for rounds, flower in met),
            1.0,
        ),
        Figure(
            "rounds_over_flower_bytes",
            "rounds on the market ÷ Flower, bytes that passed from one party to another",
            max(rounds.sent_bytes / flower.sent_bytes for rounds, flower in met),
            1.0,
        ),
    ]


def beside(rows: Sequence[Row]) -> dict[str, float | None]:
    """What has no goal of its own, by its name in the line of JSON."""
    nets = list(dict.fromkeys(row.net for row in rows))
    singles = [row_of(rows, net, SINGLE) for net in nets]
    longest = max(singles, key=lambda row: row.training_cpu_s)
    replicated = [row.share for row in rows if row.way == REPLICATE and row.share is not None]
    met = [(row_of(rows, net, ROUNDS), row_of(rows, net, FLOWER)) for net in nets]
    return {
        "audit_cpu_share": longest.share,
        "replicate_cpu_share": max(replicated, default=None),
        "rounds_over_flower_peer_bytes": max(
            rounds.peer_bytes / flower.peer_bytes for rounds, flower in met
        ),
    }


def _worst(values: Iterable[float]) -> float:
    """The largest; no number if one of them is none."""
    found = list(values)
    return math.nan if any(map(math.isnan, found)) else max(found)


def row_of(rows: Iterable[Row], net: str, way: str) -> Row:
    """That of the middle, where a way was gone more than once."""
    found = sorted(
        (row for row in rows if (row.net, row.way) == (net, way)), key=lambda row: row.seconds
    )
    return found[len(found) // 2]


def _time_ratio(rounds: Row, flower: Row) -> float:
    """No number if the goal is not reached; that Flower does not makes it an upper bound."""
    if rounds.to_goal_s is None:
        return math.nan
    return rounds.to_goal_s / (flower.to_goal_s or flower.seconds)
