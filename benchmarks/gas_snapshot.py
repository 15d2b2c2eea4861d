"""Keeps the gas of every function in every scripted life, so that a change shows in a diff."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.gas_figures import Life

SNAPSHOT = Path(__file__).resolve().parent / "gas-snapshot.json"
# The same contracts give the same figures to the unit. Any change of their code changes the hashes
# of all blocks, and with them the zero bytes of commitments by a little, and draws by more.
TOLERANCE = 0.005
TOLERANCE_OF_DRAWS = 0.02
_DRAWS = ("draw", "drawReferees")

# By life, then by function.
Figures = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Change:
    life: str
    function: str
    # None where the function is new to the life, or gone from it.
    before: int | None
    after: int | None

    @property
    def growth(self) -> float | None:
        if self.before is None or self.after is None:
            return None
        return self.after / self.before - 1

    @property
    def matters(self) -> bool:
        tolerance = TOLERANCE_OF_DRAWS if self.function in _DRAWS else TOLERANCE
        return self.growth is None or abs(self.growth) > tolerance


def figures_of(lives: dict[str, Life]) -> Figures:
    return {
        name: {function: spent.gas for function, spent in life.items()}
        for name, life in lives.items()
    }


def changes(before: Figures, after: Figures) -> list[Change]:
    """What grew, shrank, came or went by more than the tolerance."""
    found = []
    for life in dict.fromkeys((*before, *after)):
        old, new = before.get(life, {}), after.get(life, {})
        for function in dict.fromkeys((*old, *new)):
            change = Change(life, function, old.get(function), new.get(function))
            if change.matters:
                found.append(change)
    return found


def write_snapshot(lives: dict[str, Life], path: Path = SNAPSHOT) -> None:
    path.write_text(json.dumps(figures_of(lives), indent=1) + "\n")
    print(f"wrote {path.parent.name}/{path.name} ({len(lives)} lives)")


def check_snapshot(lives: dict[str, Life], console: Console, path: Path = SNAPSHOT) -> None:
    """Exit with an error if a figure is not what the snapshot says."""
    name = f"{path.parent.name}/{path.name}"
    if not path.exists():
        sys.exit(f"{name} is missing: run 'make snapshots' and commit it")
    found = changes(json.loads(path.read_text()), figures_of(lives))
    if not found:
        print(f"{name} matches ({len(lives)} lives, within {TOLERANCE:.1%})")
        return
    console.print(_table(found))
    grown = any(change.growth is None or change.growth > 0 for change in found)
    sys.exit(
        f"{name}: gas has {'grown' if grown else 'shrunk'}. "
        "If that is meant, run 'make snapshots' and commit it"
    )


def _table(found: list[Change]) -> Table:
    table = Table("life", "function", title="Gas that changed")
    for heading in ("snapshot", "now", "change"):
        table.add_column(heading, justify="right")
    for change in found:
        shown = "" if change.growth is None else f"{change.growth:+.2%}"
        table.add_row(change.life, change.function, _gas(change.before), _gas(change.after), shown)
    return table


def _gas(gas: int | None) -> str:
    return "-" if gas is None else f"{gas:,}"
