"""The screen of the demo: what happened, how far the training is, and who moves next."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from trainyard.chain.blocks import head_of
from trainyard.demo.cast import Cast
from trainyard.demo.watching import Requester
from trainyard.protocol.holdings import parts_of
from trainyard.protocol.ledger import Book, Event
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from trainyard.protocol.moves import next_move
from trainyard.protocol.telling import Name, amount

_PHASES = (
    ("Posted", (TaskState.OPEN,)),
    ("Training", (TaskState.RUNNING,)),
    ("Submitted", (TaskState.SUBMITTED,)),
    ("Audited", (TaskState.AUDITING, TaskState.OPENING)),
    ("Window", (TaskState.WINDOW, TaskState.DISPUTED)),
    ("Over", (TaskState.SETTLED, TaskState.FAILED, TaskState.CANCELLED)),
)


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

    def show(self, requester: Requester, cast: Cast, number: int) -> None:
        found = {name: live_of(cast.agents[name].home, number) for name in cast.trainers}
        if self._live is not None:
            if number in requester.book.tasks:
                events = [one.event for one in requester.seen]
                head = requester.endpoints.run(head_of)
                self._live.update(
                    picture(
                        requester.book,
                        number,
                        events,
                        found,
                        cast.name,
                        now=head.timestamp,
                        block=head.ref.number,
                    )
                )
            return
        for name, live in found.items():
            # Without a terminal, a line now and then is enough.
            states = int(live.get("states", 0))
            if states and states != self._told_states.get(name) and states % 4 == 0:
                self._told_states[name] = states
                self.say(f"{name} has {states - 1} of {live['segments']} segments{_loss(live)}")


def picture(
    book: Book,
    number: int,
    events: Sequence[Event],
    found: dict[str, dict[str, Any]],
    name: Name,
    *,
    now: int,
    block: int,
) -> RenderableType:
    """The task as it is now: how far it is, whose money it holds, and who has to move."""
    task = book.tasks[number]
    phases = Text("  ")
    for phase, states in _PHASES:
        is_now = task.state in states
        phases.append(f" {phase} ", style="reverse bold" if is_now else "dim")
        phases.append(" > ", style="dim")
    bars = Table.grid(padding=(0, 2))
    for trainer, live in found.items():
        total = max(int(live.get("steps", 0)), 1)
        bar = ProgressBar(total=total, completed=int(live.get("step", 0)), width=40)
        pace = f"{live.get('examples_per_s', 0.0):,.0f} examples/s"
        bars.add_row(f"  {trainer}", str(live.get("phase", "")), bar, _loss(live), pace)
    money = Table.grid(padding=(0, 2))
    for part in parts_of(book, number, events):
        held = f"{amount(part.held)} held" if part.held else ""
        credited = f"{amount(part.credited)} credited" if part.credited else ""
        money.add_row(f"  {name(part.who)}", part.role, held, credited)
    move = Text(f"  next: {_next(task, name, now, block)}", style="cyan")
    return Group(Text(""), phases, bars, money, move)


def _next(task: Task, name: Name, now: int, block: int) -> str:
    """As `trainyard explain` says it."""
    move = next_move(task, now, block)
    if move is None:
        return f"nobody: it is {task.state.name.lower()}"
    who = " and ".join(map(name, move.who)) or "anyone"
    # What cannot be done yet is waited for.
    when = f" in {move.since - now} s" if move.since is not None and now < move.since else ""
    until = f", {move.by - now} s left" if move.by is not None else ""
    return f"{who}: {move.what}{when}{until}"


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
