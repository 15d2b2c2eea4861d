"""What people see while a task runs: a bar in a terminal or a notebook, or lines."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Verbose = Literal["auto", 0, 1, 2]


class Show(Protocol):
    def say(self, line: str) -> None:
        """Something happened."""
        ...

    def steps(self, done: int, logs: dict[str, float]) -> None:
        """So far training has come."""
        ...


class Silent:
    def say(self, line: str) -> None: ...

    def steps(self, done: int, logs: dict[str, float]) -> None: ...


class Lines:
    """One line for all that happens; figures come with their epochs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def steps(self, done: int, logs: dict[str, float]) -> None: ...


class _Bar(Lines):
    def __init__(self, console: Console, progress: Progress, total: int) -> None:
        super().__init__(console)
        self._progress = progress
        self._task = progress.add_task("training", total=total, figures="")

    def steps(self, done: int, logs: dict[str, float]) -> None:
        self._progress.update(self._task, completed=done, figures=figures(logs))


def figures(logs: dict[str, float]) -> str:
    return "  ".join(f"{name} {value:.4f}" for name, value in logs.items())


@contextmanager
def shown(title: str, total: int, verbose: Verbose = "auto") -> Iterator[Show]:
    """A bar where somebody looks at it; else lines if they are asked for, and nothing if not."""
    # Rich takes FORCE_COLOR for somebody who looks.
    plain = Console()
    console = plain if plain.is_jupyter else Console(stderr=True, force_terminal=None)
    is_seen = console.is_jupyter or sys.stderr.isatty()
    if verbose == 2 or (verbose == 1 and not is_seen):
        yield Lines(console)
        return
    if verbose == 0 or not is_seen:
        yield Silent()
        return
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console, transient=False) as progress:
        yield _Bar(console, progress, total)
