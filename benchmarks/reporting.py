"""How a benchmark tells what it found: a table for people, and last one line of JSON."""

import json
import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Figure:
    """One claim: what was measured, and what it has to be."""

    name: str
    what: str
    value: float
    goal: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.value >= self.goal if self.at_least else self.value <= self.goal


def report(
    title: str, figures: Iterable[Figure], caption: str, more: Mapping[str, Any] | None = None
) -> None:
    """Print all of it; `more` is for the line of JSON alone."""
    figures = list(figures)
    table = Table(title=title, caption=caption)
    for heading in ("", "measured", "goal", ""):
        table.add_column(heading, justify="left" if not heading else "right")
    for figure in figures:
        bound = f"{'≥' if figure.at_least else '≤'} {figure.goal:.3g}"
        value = f"{figure.value:.3g}" if math.isfinite(figure.value) else "none"
        table.add_row(figure.what, value, bound, "met" if figure.met else "MISSED")
    Console(width=None if sys.stdout.isatty() else 100).print(table)
    print(json.dumps({one.name: _number(one.value) for one in figures} | dict(more or {})))


def _number(value: float) -> float | None:
    """JSON has no word for what is no number."""
    return round(value, 6) if math.isfinite(value) else None
