"""The table of `benchmarks.end_to_end`, and what has to be said of it."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.end_to_end_figures import Row, Scaling

_HEADINGS = (
    "accuracy",
    "to goal s",
    "total s",
    "CPU s",
    "sent MB",
    "energy J",
    "gas",
    "checking",
)
# What the numbers do not say of themselves.
_NOTES = (
    "checking is CPU beside that of training",
    "goals are low and trainings short, so times to a goal are mostly those of starting",
    "everybody has the records before the call, in the stores of the market too, so moving them is "
    "in no time, no bytes and no fixed cost",
    "what workers of sync and rounds send each other is the size of payloads by their journals, "
    "not measured on the wire",
    "rounds send int8, and Flower float32",
    "Replicate is of mode single alone: the market refuses it for workers who train together",
    "agents and terms are those of any devnet, where blocks are trusted early and challengers are "
    "waited for a few seconds",
)


@dataclass(frozen=True, slots=True)
class Failure:
    """A way that came to no end, and why."""

    net: str
    way: str
    why: str

    def __str__(self) -> str:
        return f"{self.net}, {self.way}: {self.why}"


def show(rows: Sequence[Row], failures: Sequence[Failure], basis: str, *, quick: bool) -> None:
    table = Table(
        title="From the call to the weights" + (", QUICK" if quick else ""),
        caption="; ".join((f"energy is an estimate ({basis})", *_NOTES)),
    )
    table.add_column("net")
    table.add_column("way")
    for heading in _HEADINGS:
        table.add_column(heading, justify="right")
    for row in rows:
        table.add_row(f"{row.net} ≥ {row.goal:.2f}", row.way, *_cells(row))
    for one in failures:
        table.add_row(one.net, one.way, "FAILED")
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _cells(row: Row) -> tuple[str, ...]:
    reached = row.to_goal_s
    return (
        "-" if row.accuracy is None else f"{row.accuracy:.4f}",
        "not reached" if reached is None else f"{reached:.1f}",
        f"{row.seconds:.1f}",
        f"{row.cpu_s:.1f}",
        f"{row.sent_bytes / 1e6:.1f}" if row.sent_bytes else "-",
        "-" if row.energy_j is None else f"{row.energy_j:,.0f}",
        "-" if row.gas is None else f"{row.gas:,}",
        "-" if row.share is None else f"{row.share:.1%}",
    )


def lines_of(scalings: Mapping[str, Scaling | None]) -> str:
    """How processor time grows, of each network that it is known of."""
    return "; ".join(_words(net, one) for net, one in scalings.items() if one is not None)


def _words(net: str, scaling: Scaling) -> str:
    training, audit = scaling.training, scaling.audit
    # Through single runs a line takes up all their noise.
    noise = ", of one run of each length: noisy" if scaling.repeats == 1 else ""
    return (
        f"{net}: training {training.fixed:.1f} + {training.each:.4f} CPU-s a step, "
        f"an audit {audit.fixed:.1f} + {audit.each:.4f} a step of its segment{noise}"
    )
