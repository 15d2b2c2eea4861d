"""What a command says: results on stdout, everything else on stderr."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trainyard.content.content import Progress


def printable(text: str) -> str:
    """`text` on one line and without control characters: names are written by strangers."""
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def size_text(count: int) -> str:
    from rich.filesize import decimal

    return decimal(count)


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command prints. With `as_json` its result is the one document on stdout."""

    as_json: bool

    def result(self, document: Mapping[str, Any], lines: Iterable[str]) -> None:
        """Print the result: as a document for programs, or as lines for people."""
        if self.as_json:
            print(json.dumps(document))
        else:
            for line in lines:
                print(printable(line))
        # Here, where a closed pipe is still noticed.
        sys.stdout.flush()

    def note(self, line: str) -> None:
        """Something that people like to know and scripts do not need."""
        if not self.as_json and sys.stderr.isatty():
            self.tell(line)

    def tell(self, line: str) -> None:
        """Something that has to be known while the command goes on."""
        print(printable(line), file=sys.stderr, flush=True)

    @contextmanager
    def progress(self, what: str, *, wanted: bool = True) -> Iterator["Bar"]:
        """A progress bar on stderr where somebody looks at it."""
        bar = Bar()
        if self.as_json or not wanted or not sys.stderr.isatty():
            yield bar
            return
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            TextColumn,
            TransferSpeedColumn,
        )
        from rich.progress import Progress as Bars

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TextColumn("{task.fields[source]}"),
        )
        with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
            task = bars.add_task(what, total=None, source="")

            def show(state: "Progress") -> None:
                source = state.source
                if state.asked_last:
                    source += f" (slow or failing: {', '.join(state.asked_last)})"
                bars.update(task, completed=state.done, total=state.total, source=source)

            bar.show = show
            yield bar


class Bar:
    """Hears of the progress of a transfer, shows it, and knows how far it came."""

    def __init__(self) -> None:
        self.show: Callable[[Progress], None] = lambda state: None
        self.done = 0

    def __call__(self, state: "Progress") -> None:
        self.done = state.done
        self.show(state)


def write_bytes(pieces: Iterable[bytes | memoryview]) -> None:
    """Raw bytes to stdout."""
    for piece in pieces:
        sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()


def silence_stdout() -> None:
    """After the reader went away: what is still buffered must not fail at the very end."""
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 1)
