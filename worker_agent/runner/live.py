"""What a runner shows of itself while it runs, for the agent and for whoever watches."""

import time
from dataclasses import dataclass, field

from trainyard.engine.events import Ended, Event, Finished, Merged, Offered, Started, Stepped
from worker_agent.progress import LIVE, Shelf

_EVERY_S = 0.5


@dataclass(slots=True)
class Live:
    """Written now and then, and at once when something important changes."""

    shelf: Shelf
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
    lost_s: float = 0.0
    metrics: dict[str, float] = field(default_factory=dict)
    tested: dict[str, float] = field(default_factory=dict)
    # Since when nothing was heard of a peer; shown as how long ago that is, for clocks go wrong.
    silent: dict[int, float] = field(default_factory=dict)
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
                for tried in event.validated:
                    self.metrics |= {f"val_{name}": one for name, one in tried.metrics.items()}
            case Ended():
                if event.tested is not None:
                    self.tested = {"loss": event.tested.loss, **event.tested.metrics}
            case _:
                pass
        self.write(now=isinstance(event, Finished | Ended))

    def enter(self, phase: str) -> None:
        self.phase = phase
        self.write(now=True)

    def write(self, *, now: bool = False) -> None:
        if not now and time.monotonic() < self._written_at + _EVERY_S:
            return
        self._written_at = time.monotonic()
        document = {
            name: getattr(self, name)
            for name in self.__dataclass_fields__
            if not name.startswith("_") and name != "shelf"
        }
        now_s = time.monotonic()
        silent = {slot: now_s - since for slot, since in self.silent.items()}
        self.shelf.write({**document, "silent": silent, "at": time.time()}, LIVE)

    def _take_state(self, event: Finished) -> None:
        entry = event.entry
        self.states, self.step = entry.number + 1, entry.step
        self.train_s += entry.train_s
        if entry.energy is not None:
            self.energy_j += entry.energy.joules
        if entry.trained is not None:
            self.loss, self.metrics = entry.trained.loss, dict(entry.trained.metrics)
