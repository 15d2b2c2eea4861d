"""Prints forge's coverage of our contracts and fails below the agreed share."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

REQUIRED_LINES = 0.98
REQUIRED_BRANCHES = 0.95
COUNTERS = {"LF": "lines", "LH": "lines_hit", "BRF": "branches", "BRH": "branches_hit"}


@dataclass(slots=True)
class Coverage:
    name: str
    lines: int = 0
    lines_hit: int = 0
    branches: int = 0
    branches_hit: int = 0

    @property
    def line_share(self) -> float:
        return self.lines_hit / self.lines if self.lines else 1.0

    @property
    def branch_share(self) -> float:
        return self.branches_hit / self.branches if self.branches else 1.0

    def row(self) -> str:
        return (
            f"{self.name:<40}{self.line_share:>8.1%} {f'{self.lines_hit}/{self.lines}':>9}"
            f"{self.branch_share:>9.1%} {f'{self.branches_hit}/{self.branches}':>9}"
        )


def read_lcov(lines: Iterable[str]) -> list[Coverage]:
    files: list[Coverage] = []
    for line in lines:
        key, _, value = line.strip().partition(":")
        if key == "SF":
            files.append(Coverage(value))
        elif key in COUNTERS:
            setattr(files[-1], COUNTERS[key], int(value))
    return files


def is_ours(name: str) -> bool:
    return name.startswith("contracts/") and not name.startswith("contracts/mocks/")


def total(files: list[Coverage]) -> Coverage:
    return Coverage(
        "total",
        sum(file.lines for file in files),
        sum(file.lines_hit for file in files),
        sum(file.branches for file in files),
        sum(file.branches_hit for file in files),
    )


def main() -> None:
    with Path(sys.argv[1]).open() as report:
        files = sorted(
            (file for file in read_lcov(report) if is_ours(file.name)), key=lambda file: file.name
        )
    if not files:
        sys.exit(f"{sys.argv[1]} covers no file of contracts/")
    whole = total(files)
    print(f"{'contract':<40}{'lines':>18}{'branches':>19}")
    for file in [*files, whole]:
        print(file.row())
    if whole.line_share < REQUIRED_LINES or whole.branch_share < REQUIRED_BRANCHES:
        wanted = f"{REQUIRED_LINES:.0%} of lines and {REQUIRED_BRANCHES:.0%} of branches"
        sys.exit(f"coverage is too low: {wanted} are wanted")


if __name__ == "__main__":
    main()
