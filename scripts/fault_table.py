"""Runs the tests of faults and cheats, and prints what was done and whether it went well.

    python -m scripts.fault_table [--quick]     a table; last, one line of JSON

Each row is a test, with as many cases as it has. Without `--quick` those are among them that take
minutes each.
"""

import json
import sys
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

_FAULTS = {
    "killed at every write and sending": ("market/test_deaths.py", "chain_layer/test_crashes.py"),
    "reorgs in every state": ("chain_layer/test_sight.py", "market/test_taken_back.py"),
    "bad endpoints": ("chain_layer/test_endpoints.py", "chain_layer/test_lying_nodes.py"),
    "chain, content, disk and clock": ("market/test_outages.py", "market/test_clocks.py"),
    "workers lost in each phase": ("market/test_lost_workers.py", "market/test_rounds.py"),
    "strangers at the peers' port": ("agent/test_peers_strangers.py",),
    "hostile work in the sandbox": (
        "agent/test_sandbox.py",
        "agent/test_sandbox_limits.py",
        "market/test_own_stores.py",
    ),
    "cheats": ("market/test_gauntlet.py", "market/test_gauntlet_rounds.py"),
}
_TESTS = Path(__file__).resolve().parent.parent / "tests"
_PYTEST = (
    *("-p", "no:pytest-brownie", "-q", "-n", "2", "--dist", "loadfile", "-W", "error"),
    *("-W", "ignore:__array__ implementation:DeprecationWarning"),
)


@dataclass(slots=True)
class Row:
    """One test, in all its cases."""

    cases: int = 0
    seconds: float = 0.0
    failed: list[str] = field(default_factory=list)
    skipped: int = 0

    @property
    def outcome(self) -> str:
        if self.failed:
            return f"{len(self.failed)} FAILED"
        return "well" if not self.skipped else f"well, {self.skipped} not here"


class Watcher:
    """What pytest reports of each case, by file and test, in the order in which they ran."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], Row] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file, _, test = report.nodeid.partition("::")
        key = file.removeprefix("tests/"), test.partition("[")[0]
        row = self.rows.setdefault(key, Row())
        row.seconds += report.duration
        row.cases += report.when == "setup"
        row.skipped += report.skipped
        if report.failed:
            row.failed.append(test)


def show(rows: dict[tuple[str, str], Row]) -> None:
    table = Table(title="What is done to a market, and how it ends")
    for heading in ("fault", "what is seen", "cases", "s", "ended"):
        table.add_column(heading, justify="right" if heading in ("cases", "s") else "left")
    for fault, files in _FAULTS.items():
        for index, ((_, test), row) in enumerate(
            (name, row) for name, row in rows.items() if name[0] in files
        ):
            told = test.removeprefix("test_").replace("_", " ")
            cells = (fault if not index else "", told, str(row.cases), f"{row.seconds:.0f}")
            table.add_row(*cells, row.outcome)
        table.add_section()
    Console(width=None if sys.stdout.isatty() else 140).print(table)


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="without those of minutes each")
    options = parser.parse_args()
    files = [str(_TESTS / file) for some in _FAULTS.values() for file in some]
    chosen = ["-m", "not long"] if options.quick else []
    watcher = Watcher()
    status = pytest.main([*_PYTEST, *chosen, *files], plugins=[watcher])
    rows = watcher.rows
    show(rows)
    failed = [name for row in rows.values() for name in row.failed]
    cases = sum(row.cases for row in rows.values())
    print(json.dumps({"fault_cases": cases, "faults_failed": len(failed), "failed": failed}))
    sys.exit(status)


if __name__ == "__main__":
    main()
