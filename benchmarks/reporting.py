"""How a benchmark tells what it found: a table for people, and last one line of JSON."""

import json
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table

# Told from 1, with which Python ends what went wrong, and 2, which is wrong use.
MISSED = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """One claim: what was measured, and what it has to be."""

    name: str
    what: str
    value: float
    # Infinite for what is only told.
    goal: float
    at_least: bool = False
    # Of several of one name, one has to hold.
    either: str = ""

    @property
    def met(self) -> bool:
        return self.value >= self.goal if self.at_least else self.value <= self.goal

    @property
    def missed_by(self) -> str:
        """By how much, in words; nothing where no number was found, or none is asked for."""
        if self.met or not math.isfinite(self.value - self.goal):
            return ""
        return f" by {abs(self.value - self.goal):.3g}"


def report(
    title: str, figures: Iterable[Figure], caption: str, more: Mapping[str, Any] | None = None
) -> int:
    """Print all of it; `more` is for the line of JSON alone. What the benchmark is to exit with."""
    figures = list(figures)
    table = Table(title=title, caption=caption)
    for heading in ("", "measured", "goal", ""):
        table.add_column(heading, justify="left" if not heading else "right")
    for figure in figures:
        bound = f"{'≥' if figure.at_least else '≤'} {figure.goal:.3g}"
        word = "met" if figure.met else f"MISSED{figure.missed_by}"
        if figure.met and math.isinf(figure.goal):
            bound = word = ""
        value = f"{figure.value:.3g}" if math.isfinite(figure.value) else "none"
        table.add_row(figure.what, value, bound, word)
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    print(json.dumps({one.name: _number(one.value) for one in figures} | dict(more or {})))
    return code_of(f"{one.name}{one.missed_by}" for one in missed(figures))


def missed(figures: Sequence[Figure]) -> list[Figure]:
    """Those that do not hold, and that nothing else stands in for."""
    held = {one.either for one in figures if one.met}
    return [one for one in figures if not one.met and not (one.either and one.either in held)]


def code_of(names: Iterable[str]) -> int:
    """Says which figures were missed, behind all else; and the code to exit with."""
    found = list(names)
    if found:
        print(f"MISSED: {', '.join(found)}", file=sys.stderr, flush=True)
    return MISSED if found else 0


def _number(value: float) -> float | None:
    """JSON has no word for what is no number."""
    return round(value, 6) if math.isfinite(value) else None
