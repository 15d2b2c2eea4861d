"""A run of the engine as somebody follows it: what went wrong, and a bar."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from trainyard.cli.output import Output

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

    from trainyard.engine.events import Event
    from trainyard.engine.journal import Measured
    from trainyard.protocol.manifest import Manifest


class Watch:
    """Follows a run: tells of trouble and adds up what it cost, remembers the test, shows all."""

    def __init__(
        self,
        output: Output,
        manifest: "Manifest",
        show: "Callable[[Event], None] | None" = None,
    ) -> None:
        self._output, self._manifest, self._show = output, manifest, show
        self.tested: Measured | None = None
        self.restarts = 0
        # Of all restarts; who came back alone lost it alone.
        self.lost_s = 0.0

    def __call__(self, event: "Event") -> None:
        from trainyard.engine.events import Ended, LeftOut, Restarted

        tell = self._output.tell
        if isinstance(event, LeftOut):
            tell(f"round {event.round} goes on without worker {event.slot}: {event.reason}")
        if isinstance(event, Restarted):
            self.restarts += 1
            self.lost_s += event.lost_s
            if event.alone or self._manifest.training.rounds:
                tell(f"{event.reason}; it is back after {event.lost_s:.1f} s")
            else:
                tell(
                    f"{event.reason}; all went on from segment {max(event.kept - 1, 0)}, "
                    f"{event.lost_s:.1f} s lost"
                )
        # In rounds it is whichever worker was there at the end.
        if isinstance(event, Ended) and event.tested is not None:
            self.tested = event.tested
        if self._show is not None:
            self._show(event)


@contextmanager
def watching(
    output: Output, manifest: "Manifest", console: "Console | None" = None
) -> Iterator[Watch]:
    """A watch with a bar that shows how far training is, where somebody looks at it."""
    from rich.console import Console

    # Rich takes FORCE_COLOR for somebody who looks.
    console = console or Console(stderr=True, force_terminal=sys.stderr.isatty())
    if output.as_json or not console.is_terminal:
        yield Watch(output, manifest)
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bars:
        yield Watch(output, manifest, _Bar(bars, manifest))


class _Bar:
    """Shows steps. In rounds all workers take them, each on its share of the batch."""

    def __init__(self, bars: "Progress", manifest: "Manifest") -> None:
        self._bars = bars
        self._task = bars.add_task("training", total=manifest.plan.steps, figures="")
        self._in_rounds = manifest.training.rounds is not None
        self._paces: dict[int, float] = {}
        self._done = 0

    def __call__(self, event: "Event") -> None:
        from trainyard.engine.events import Finished, LeftOut, Restarted, Stepped

        if isinstance(event, LeftOut):
            self._paces.pop(event.slot, None)
        if isinstance(event, Restarted) and not event.alone and not self._in_rounds:
            # What was not kept is done once more.
            self._done = 0
        if event.slot != 0 and not self._in_rounds:
            return
        if isinstance(event, Stepped):
            self._paces[event.slot] = event.examples_per_s
            self._done = max(self._done, event.step + 1)
            figures = f"loss {event.loss:.4f}, {sum(self._paces.values()):,.0f} examples/s"
            self._bars.update(self._task, completed=self._done, figures=figures)
        if isinstance(event, Finished):
            self._done = max(self._done, event.entry.step)
            self._bars.update(self._task, completed=self._done)
