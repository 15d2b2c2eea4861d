"""Writes the tables of docs/threat-model.md: `python -m scripts.incentives [--check]`."""

import random
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from trainyard.protocol.draws import draw_segments
from trainyard.protocol.incentives import (
    Task,
    block,
    detection,
    detection_theory,
    gain_from_cheating,
    spread,
    stake_for_honesty,
    verdict,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "threat-model.md"
SEGMENTS = 100
PRICE = 1.0
COST = 0.8
FRACTIONS = (0.01, 0.05, 0.2, 0.5, 1.0)
DRAWS = 4_000


def main() -> None:
    page = PAGE.read_text()
    current = rewrite(page)
    if "--check" in sys.argv[1:]:
        if page != current:
            sys.exit("docs/threat-model.md is stale: run python -m scripts.incentives")
        return
    PAGE.write_text(current)


def rewrite(page: str) -> str:
    """The page with each table between its markers computed anew."""
    for name, make in TABLES.items():
        pattern = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = pattern.subn(rf"\g<1>{make()}\g<2>", page)
        if count != 1:
            raise ValueError(f"docs/threat-model.md has {count} places for the table {name!r}")
    return page


def gains() -> str:
    """What cheating gains over honest work, in percent of the price."""
    rows = []
    for audits in (1, 2, 4):
        for stake in (0.0, 0.5, 1.0, 2.0):
            task = Task(PRICE, COST, stake * PRICE, audits)
            worst = (_worst(task, fraction) for fraction in FRACTIONS)
            rows.append([str(audits), f"{stake:g} P", *(f"{gain:+.1%}" for gain in worst)])
    return _table(["k", "S", *(f"f = {fraction:g}" for fraction in FRACTIONS)], rows)


def detections() -> str:
    """Chance of being caught by the audits alone: theory, exact, and a simulation of real draws."""
    rows = [
        [
            str(audits),
            f"{fraction:g}",
            f"{detection_theory(fraction, audits):.4f}",
            f"{detection(spread(SEGMENTS, fraction), audits):.4f}",
            f"{detection(block(SEGMENTS, fraction), audits):.4f}",
            f"{simulate(fraction, audits):.4f}",
        ]
        for audits in (1, 2, 4, 8)
        for fraction in FRACTIONS[:-1]
    ]
    head = ["k", "f", "1 - (1-f)^k", "exact, spread", "exact, block", "simulated, block"]
    return _table(head, rows)


def pools() -> str:
    """What a cheat needs that owns part of the pool which judges it."""
    rows = []
    for owned in (0.0, 0.1, 0.25, 0.4, 0.5, 0.6):
        task = Task(PRICE, COST, PRICE, 2, honest_pool=1 - owned)
        half = block(SEGMENTS, 0.5)
        rows.append(
            [
                f"{owned:.0%}",
                f"{detection(half, 2, 1 - owned):.3f}",
                f"{verdict(task):.3f}",
                f"{gain_from_cheating(task, half):+.1%}",
                f"{stake_for_honesty(task, half):.2f} P",
            ]
        )
    head = ["owned", "caught by an audit", "upheld", "gain at S = P", "least S for honesty"]
    return _table(head, rows)


def simulate(fraction: float, audits: int) -> float:
    """Share of draws, made as the contract makes them, that hit a cheated segment."""
    cheated = block(SEGMENTS, fraction)
    source = random.Random(f"{fraction} {audits}")  # noqa: S311 - a repeatable simulation
    hits = sum(
        any(cheated[segment] for segment in draw_segments(source.randbytes(32), SEGMENTS, audits))
        for _ in range(DRAWS)
    )
    return hits / DRAWS


def _worst(task: Task, fraction: float) -> float:
    """The better of the two ways to place the cheated segments, for the cheat."""
    return max(gain_from_cheating(task, place(SEGMENTS, fraction)) for place in (spread, block))


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---:"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


TABLES = {"gains": gains, "detection": detections, "pools": pools}


if __name__ == "__main__":
    main()
