"""The screen of the demo: what happened, how far the training is, and who moves next."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainyard.demo.cast import Cast
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState

_PHASES = (
    ("Posted", (TaskState.OPEN,)),
    ("Training", (TaskState.RUNNING,)),
    ("Submitted", (TaskState.SUBMITTED,)),
    ("Audited", (TaskState.AUDITING, TaskState.OPENING)),
    ("Window", (TaskState.WINDOW, TaskState.DISPUTED)),
    ("Over", (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)),
)
_NEXT = {
    TaskState.OPEN: "workers join",
    TaskState.RUNNING: "the workers train, and submit",
    TaskState.SUBMITTED: "anyone draws the auditors",
    TaskState.AUDITING: "the auditors recompute their segments, and commit",
    TaskState.OPENING: "the workers open the drawn states",
    TaskState.WINDOW: "auditors reveal; anyone may challenge; then anyone settles",
    TaskState.DISPUTED: "referees recompute the disputed segment",
    TaskState.SETTLED: "nobody: it is settled",
    TaskState.FAILED: "nobody: it has failed, and everyone has what is theirs",
    TaskState.CANCELLED: "nobody: it is cancelled",
}


class Stage:
    """On a terminal it is drawn over and over; elsewhere each line is printed once."""

    def __init__(self, console: Console, began: float, clock: Callable[[], float]) -> None:
        self.console, self._began, self._clock = console, began, clock
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(Text(""), console=console, refresh_per_second=4, transient=True)
        self._told_states: dict[str, int] = {}

    def __enter__(self) -> "Stage":
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def say(self, line: str) -> None:
        self.console.print(
            f"[dim]{self._clock() - self._began:6.1f} s[/dim]  {line}", soft_wrap=True
        )

    def show(self, task: Task | None, cast: Cast, number: int) -> None:
        found = {name: live_of(cast.agents[name].home, number) for name in cast.trainers}
        if self._live is not None:
            self._live.update(_picture(task, found))
            return
        for name, live in found.items():
            # Without a terminal, a line now and then is enough.
            states = int(live.get("states", 0))
            if states and states != self._told_states.get(name) and states % 4 == 0:
                self._told_states[name] = states
                self.say(f"{name} has {states - 1} of {live['segments']} segments{_loss(live)}")


def _picture(task: Task | None, found: dict[str, dict[str, Any]]) -> RenderableType:
    if task is None:
        return Text("")
    phases = Text("  ")
    for name, states in _PHASES:
        is_now = task.state in states
        phases.append(f" {name} ", style="reverse bold" if is_now else "dim")
        phases.append(" > ", style="dim")
    bars = Table.grid(padding=(0, 2))
    for name, live in found.items():
        total = max(int(live.get("steps", 0)), 1)
        bar = ProgressBar(total=total, completed=int(live.get("step", 0)), width=40)
        pace = f"{live.get('examples_per_s', 0.0):,.0f} examples/s"
        bars.add_row(f"  {name}", str(live.get("phase", "")), bar, _loss(live), pace)
    step = Text(f"  next: {_NEXT[task.state]}", style="cyan")
    return Group(Text(""), phases, bars, step)


def _loss(live: dict[str, Any]) -> str:
    loss = live.get("loss")
    accuracy = live.get("metrics", {}).get("accuracy")
    text = "" if loss is None else f", loss {loss:.4f}"
    return text if accuracy is None else f"{text}, accuracy {accuracy:.3f}"


def live_of(home: Path, number: int) -> dict[str, Any]:
    """What the worker of this home says of its training."""
    try:
        found: dict[str, Any] = json.loads(
            (home / "tasks" / str(number) / "live.json").read_bytes()
        )
        return found
    except (FileNotFoundError, ValueError):
        return {}
