"""What a runner shows of itself while it runs, for the agent and for whoever watches."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from trainyard.engine.events import Ended, Event, Finished, Merged, Offered, Started, Stepped
from trainyard.engine.journal import Validated
from worker_agent.faults import Stage
from worker_agent.progress import LIVE, Shelf

_EVERY_S = 0.5
# Segments whose figures are shown: who looks twice a second misses none of a quick run.
_MOST_RECENT = 60
WAITING, ENDED = "waiting for peers", "ended"
_STAGES = {WAITING: Stage.WAITING, ENDED: Stage.ENDED}


@dataclass(slots=True)
class Live:
    """Written now and then, and at once when something important changes."""

    shelf: Shelf
    # For tests, which end it at such a moment.
    reach: Callable[[Stage], None] = lambda stage: None
    phase: str = "starting"
    generation: int = 0
    round: int = 0
    step: int = 0
    steps: int = 0
    states: int = 0
    segments: int = 0
    loss: float | None = None
    examples_per_s: float = 0.0
    energy_j: float = 0.0
    train_s: float = 0.0
    # Of how many segments that is; what was there before this process began took it no time.
    timed: int = 0
    lost_s: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    # What the last segments came to, each with its step and when that was.
    recent: list[dict[str, object]] = field(default_factory=list)
    tested: dict[str, float] = field(default_factory=dict)
    # Since when nothing was heard of a peer; shown as how long ago that is, for clocks go wrong.
    silent: dict[int, float] = field(default_factory=dict)
    # Since when a peer began anew again and again, which is as good as silence.
    restless: dict[int, float] = field(default_factory=dict)
    _written_at: float = 0.0

    def take(self, event: Event) -> None:
        match event:
            case Started():
                self.steps, self.segments = event.steps, event.segments
                self.states = max(self.states, event.resumed)
            case Stepped():
                self.step, self.loss = event.step + 1, event.loss
                self.examples_per_s = event.examples_per_s
            case Finished():
                self._take_state(event)
            case Offered():
                self.round = event.round
            case Merged():
                self.round = event.round + 1
                self._take_tried(event.validated)
            case Ended():
                if event.tested is not None:
                    self.tested = {"loss": event.tested.loss, **event.tested.metrics}
            case _:
                pass
        self.write(now=isinstance(event, Finished | Ended))
        if isinstance(event, Finished):
            self.reach(Stage.STATE)

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.write(now=True)
        if phase in _STAGES:
            self.reach(_STAGES[phase])

    def write(self, *, now: bool = False) -> None:
        if not now and time.monotonic() < self._written_at + _EVERY_S:
            return
        self._written_at = time.monotonic()
        document = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if not name.startswith("_") and name not in ("shelf", "reach", "restless")
        }
        now_s = time.monotonic()
        since = self.restless | self.silent
        silent = {slot: now_s - at for slot, at in since.items()}
        named = {"silent": silent, "restless": sorted(self.restless.keys() - self.silent.keys())}
        self.shelf.write({**document, **named, "at": time.time()}, LIVE)

    def _take_state(self, event: Finished) -> None:
        entry = event.entry
        self.states, self.step = entry.number + 1, entry.step
        if entry.number > 0:
            self.train_s, self.timed = self.train_s + entry.train_s, self.timed + 1
        if entry.energy is not None:
            self.energy_j += entry.energy.joules
        if entry.trained is not None:
            self.loss = entry.trained.loss
            tried = {name: one for name, one in self.metrics.items() if name.startswith("val_")}
            self.metrics = tried | entry.trained.metrics
            shown = {"loss": entry.trained.loss, **entry.trained.metrics}
            if entry.train_s:
                # Of a whole segment: that of a single step may have compiling in it.
                self.examples_per_s = entry.trained.examples / entry.train_s
                shown["examples_per_s"] = self.examples_per_s
            self._show(entry.step, shown)
        self._take_tried(entry.validated)

    def _take_tried(self, validated: Iterable[Validated]) -> None:
        """Figures on records that are not trained on, of the step that ended an epoch."""
        for tried in validated:
            found = {"loss": tried.loss, **tried.metrics}
            named = {f"val_{name}": one for name, one in found.items()}
            self.metrics |= named
            self._show(tried.step + 1, named)

    def _show(self, step: int, values: dict[str, float]) -> None:
        self.recent.append({"at": time.time(), "step": step, "values": values})
        del self.recent[:-_MOST_RECENT]
