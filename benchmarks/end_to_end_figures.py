"""What `benchmarks.end_to_end` makes of what it measured: ratios, how audits grow, goals. Pure."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.reporting import Figure
from trainyard.sdk.composing import fewest_segments

LONG_S = 1200.0
FIT, MIRRORED, FLOWER = "Keras fit", "MultiWorkerMirrored", "Flower FedAvg"
SINGLE, SYNC, ROUNDS = "single, Audit", "sync, Audit", "rounds int8, Audit"
REPLICATE, COARSE = "single, Replicate", "half of it, 4 segments"
# What the quick form leaves out, and so cannot miss: it trains no tasks of two lengths.
QUICK_LACKS = ("audit_cpu_share_at_20min",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One way of training one network. Processor time is that of all processes together."""

    net: str
    way: str
    goal: float
    steps: int
    seconds: float
    cpu_s: float
    # Of the last weights; None until they are tried.
    accuracy: float | None = None
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
    # That the market waits for challengers; a part of `tail_s`.
    challenge_s: float = 0.0
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
    # How often each of the tasks was measured, at least.
    repeats: int

    @classmethod
    def of(cls, rows: Sequence[Row], audits: int) -> "Scaling | None":
        """Of tasks that differ in their length and in the length of their segments.

        None where those of one length did not come to an end.
        """
        if len({row.steps for row in rows}) < 2:
            return None
        training = Line.through([(row.steps, row.training_cpu_s) for row in rows])
        audit = Line.through(
            [(row.steps / row.segments, (row.checking_cpu_s or 0.0) / audits) for row in rows]
        )
        lengths = {row.steps: [one for one in rows if one.steps == row.steps] for row in rows}
        longest = _middle(lengths[max(lengths)], lambda row: row.steps_s)
        repeats = min(map(len, lengths.values()))
        return cls(training, audit, longest.steps_s / longest.steps, repeats)

    def share(self, seconds: float, *, audits: int) -> float:
        """Of checking in training, for a task that trains so long, in as few segments as may be.

        No number if what was measured says that more work takes less time: then it was noise.
        """
        if min(self.training.each, self.audit.each) <= 0:
            return math.nan
        steps = seconds / self.step_s
        segments = fewest_segments(int(steps))
        return audits * self.audit.at(steps / segments) / self.training.at(steps)


def figures(
    rows: Sequence[Row],
    scalings: Mapping[str, Scaling | None],
    *,
    audits: int,
    failed: Sequence[str] = (),
) -> list[Figure]:
    """What has a goal; of several networks, the worst counts. `scalings` are by network."""
    nets = list(scalings)
    long_share = _worst(
        math.nan if one is None else one.share(LONG_S, audits=audits) for one in scalings.values()
    )
    waited_s = max((row.challenge_s for row in rows), default=0.0)
    return [
        Figure("failed_ways", "ways that came to no end", len(failed), 0),
        Figure(
            "market_over_fit_ratio",
            "single on the market ÷ Keras fit, from the first step to the last",
            _over(rows, nets, (SINGLE, FIT), lambda market, fit: market.steps_s / fit.seconds),
            1.05,
        ),
        Figure(
            "fixed_cost_s",
            "all else of trainyard.fit: content but for records, which are there before, chain, "
            f"start, audits, settling, and {waited_s:g} s for challengers, s",
            _over(rows, nets, (SINGLE,), lambda market: market.seconds - market.steps_s),
            15.0,
        ),
        Figure(
            "audit_cpu_share_at_20min",
            "Audit's CPU ÷ training's, 20 minutes in as few segments as fit may cut, by the lines "
            "below",
            long_share,
            0.05,
        ),
        Figure(
            "rounds_over_flower_time",
            "rounds int8 on the market ÷ Flower, which sends float32, time to accuracy",
            _over(rows, nets, (ROUNDS, FLOWER), _time_ratio),
            1.0,
        ),
        Figure(
            "rounds_over_flower_bytes",
            "rounds int8 on the market ÷ Flower, which sends float32, bytes that passed from one "
            "party to another",
            _over(rows, nets, (ROUNDS, FLOWER), lambda one, two: one.sent_bytes / two.sent_bytes),
            1.0,
        ),
    ]


def apart(
    told: Iterable[Figure], names: Collection[str]
) -> tuple[list[Figure], dict[str, float | None]]:
    """Figures with goals, and those that nobody measured, by their names in the line of JSON."""
    return [one for one in told if one.name not in names], dict.fromkeys(names)


def beside(rows: Sequence[Row]) -> dict[str, float | None]:
    """What has no goal of its own, by its name in the line of JSON; the worst of all networks."""
    nets = list(dict.fromkeys(row.net for row in rows))
    waited_s = [row.challenge_s for row in rows if row.way == SINGLE]
    found = {
        "audit_cpu_share": _over(rows, nets, (SINGLE,), _share),
        "replicate_cpu_share": _over(rows, nets, (REPLICATE,), _share),
        "rounds_over_flower_peer_bytes": _over(
            rows, nets, (ROUNDS, FLOWER), lambda one, two: one.peer_bytes / two.peer_bytes
        ),
        "challenge_window_s": max(waited_s, default=math.nan),
        "fixed_cost_without_challenge_window_s": _over(
            rows, nets, (SINGLE,), lambda one: one.seconds - one.steps_s - one.challenge_s
        ),
    }
    return {name: value if math.isfinite(value) else None for name, value in found.items()}


def _over(
    rows: Sequence[Row], nets: Sequence[str], ways: Sequence[str], value: Callable[..., float]
) -> float:
    """The worst of all networks; no number if a way that it is made of did not come to an end."""
    found = []
    for net in nets:
        chosen = [row_of(rows, net, way) for way in ways]
        found.append(math.nan if None in chosen else value(*chosen))
    return _worst(found)


def _worst(values: Iterable[float]) -> float:
    """The largest; no number if one of them is none, or there are none."""
    found = list(values)
    return math.nan if any(map(math.isnan, found)) else max(found, default=math.nan)


def row_of(rows: Iterable[Row], net: str, way: str) -> Row | None:
    """That of the middle, where a way was gone more than once; None where it has failed."""
    found = [row for row in rows if (row.net, row.way) == (net, way)]
    return _middle(found, lambda row: row.seconds) if found else None


def _middle(rows: Sequence[Row], key: Callable[[Row], float]) -> Row:
    return sorted(rows, key=key)[len(rows) // 2]


def _share(row: Row) -> float:
    return math.nan if row.share is None else row.share


def _time_ratio(rounds: Row, flower: Row) -> float:
    """No number if the goal is not reached; that Flower does not makes it an upper bound."""
    if rounds.to_goal_s is None:
        return math.nan
    return rounds.to_goal_s / (flower.to_goal_s or flower.seconds)
