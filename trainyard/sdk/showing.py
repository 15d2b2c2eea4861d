"""What people see while a task runs: a bar in a terminal or a notebook, or lines."""

import html
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Verbose = Literal["auto", 0, 1, 2]


class Show(Protocol):
    def say(self, line: str) -> None:
        """Something happened."""
        ...

    def warn(self, line: str) -> None:
        """Something that has to be known also where nobody looks."""
        ...

    def steps(self, done: int, logs: dict[str, float]) -> None:
        """So far training has come."""
        ...


class Silent:
    def say(self, line: str) -> None: ...

    def warn(self, line: str) -> None:
        # On stderr, if the program has no wishes of its own.
        logging.getLogger("trainyard").warning("%s", line)

    def steps(self, done: int, logs: dict[str, float]) -> None: ...


class Lines:
    """One line for all that happens; figures come with their epochs."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def say(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def warn(self, line: str) -> None:
        self.say(line)

    def steps(self, done: int, logs: dict[str, float]) -> None: ...


class _Bar(Lines):
    def __init__(self, console: Console, progress: Progress, total: int) -> None:
        super().__init__(console)
        self._progress = progress
        self._task = progress.add_task("training", total=total, figures="")

    def steps(self, done: int, logs: dict[str, float]) -> None:
        self._progress.update(self._task, completed=done, figures=figures(logs))


class _Notebook:
    """The browser's own bar, in an output that is replaced: Rich's would need widgets."""

    def __init__(self, title: str, total: int) -> None:
        from IPython import display

        self._title, self._total = title, total
        self._done, self._figures = 0, ""
        self._lines: list[str] = []
        # Text and types of its functions are those of the notebook's own version.
        shown: Any = display
        self._handle = shown.display(self._bundle(), raw=True, display_id=True)

    def say(self, line: str) -> None:
        self._lines.append(line)
        self._handle.update(self._bundle(), raw=True)

    def warn(self, line: str) -> None:
        self.say(line)

    def steps(self, done: int, logs: dict[str, float]) -> None:
        self._done, self._figures = done, figures(logs)
        self._handle.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        count = f"{self._done}/{self._total}  {self._figures}".strip()
        bar = f'<progress value="{self._done}" max="{self._total}"></progress>'
        lines = "\n".join(self._lines)
        return {
            "text/plain": f"{self._title}  {count}\n{lines}",
            "text/html": f"<div>{html.escape(self._title)} {bar} {html.escape(count)}</div>"
            f"<pre>{html.escape(lines)}</pre>",
        }


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
    if console.is_jupyter:
        yield _Notebook(title, total)
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
