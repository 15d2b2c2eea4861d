"""A manifest with its data, ready to compute any segment from the state before it."""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from trainyard.engine.counting import Counters, Stop
from trainyard.engine.data import Data, prefetch
from trainyard.engine.errors import StateError
from trainyard.engine.evaluating import Evaluator
from trainyard.engine.figures import Figures, Sums
from trainyard.engine.order import Numbers, Order, share_of
from trainyard.engine.pieces import Piece, piece_of
from trainyard.engine.program import Program
from trainyard.engine.state import WEIGHTS, State, Tensor, check_form
from trainyard.engine.stepping import Exchange, Stepper
from trainyard.engine.variables import Reader, assign, check_rate, named_variables
from trainyard.protocol.manifest import Manifest, Source

# Steps whose records are looked up at once, as far as there are no more numbers than that.
_LOT, _MOST_NUMBERS = 64, 1 << 20

OnStep = Callable[[int, Sums], None]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Figures on records that are not trained on, after the step that ended an epoch."""

    epoch: int
    step: int
    figures: Figures


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state that a segment ends with, and how it went."""

    segment: int
    state: State
    figures: Figures | None
    evaluations: tuple[Evaluation, ...]
    stop: Stop
    # Apart, so that it can be said what a trace costs.
    train_s: float
    trace_s: float


@dataclass(frozen=True, slots=True)
class Place:
    """Which of the workers this process is, and how it reaches the others."""

    slot: int
    exchange: Exchange


@dataclass(frozen=True, slots=True)
class Material:
    """The records that a run is fed with."""

    train: Data
    validation: Data | None = None


class Training:
    """Computes segments. Without a `place`, the parts of all workers are computed here."""

    def __init__(
        self,
        manifest: Manifest,
        program: Program,
        material: Material,
        place: Place | None = None,
    ) -> None:
        training = manifest.training
        self.manifest = manifest
        self._program = program
        self._material = material
        self._place = place
        self._batch = training.batch
        # Where each step is one worker's alone, it has one part.
        self._workers = 1 if training.mode == "async" else training.workers
        self._at_once = manifest.evaluation_batch
        self._order = order_of(manifest)
        self._stepper = Stepper(program, batch=self._batch, workers=self._workers)
        self._evaluator = Evaluator(program)
        self._variables = named_variables(program)
        self._reader = Reader(self._variables)
        self._initial = self._reader.read()
        # The state that the variables have, if it is known: it need not be assigned again.
        self._held: State | None = None

    def start(self, weights: State | None = None) -> State:
        """The state before the first step: by the seed, or with the weights of another state."""
        self._held = None
        assign(self._variables, State(self._initial))
        if weights is not None:
            assign(self._variables, weights, WEIGHTS)
        return self._capture(Counters())

    def run(self, segment: int, state: State, on_step: OnStep | None = None) -> Outcome:
        """Compute `segment` from the state before it."""
        first, last = self.manifest.plan.bounds(segment)
        counters = Counters.of(state) if state is self._held else self._restore(state)
        if counters.stop is not Stop.NO:
            return Outcome(segment, state, None, (), counters.stop, 0.0, 0.0)
        if counters.step != first:
            raise StateError(
                f"segment {segment} begins with step {first}, and this state is before step "
                f"{counters.step}"
            )
        self._held = None
        began = time.perf_counter()
        taken, evaluations, stop = self._take_steps(first, last, counters, on_step)
        if stop is Stop.DIVERGED:
            self._go_back(state, first, first + len(taken))
        counters.stop = stop
        trained = time.perf_counter()
        after = self._capture(counters)
        if not _has_numbers(after):
            # No loss told of it: the run ends with the last state that is known to be sound.
            counters = self._restore(state)
            counters.stop = Stop.DIVERGED
            taken, evaluations, after = [], [], self._capture(counters)
        self._held = after
        traced = time.perf_counter()
        names = tuple(self._program.metrics)
        return Outcome(
            segment=segment,
            state=after,
            figures=Figures.of_steps(names, taken, self._batch) if taken else None,
            evaluations=tuple(evaluations),
            stop=counters.stop,
            train_s=trained - began,
            trace_s=traced - trained,
        )

    def evaluate(self, state: State, source: Source, data: Data) -> Figures:
        """What the model of `state` makes of all records of `data`."""
        self._restore(state)
        return self._evaluator.evaluate(source, data, self._all_numbers(len(data)))

    def evaluate_unseen(self, state: State) -> Figures:
        """What the model of `state` makes of the records to validate with."""
        self._restore(state)
        return self._validate()

    def export(self, state: State, path: Path) -> None:
        """Write the model of `state` as a `.keras` file, which whoever uses Keras can load."""
        self._restore(state)
        unfinished = path.with_name(f".{path.name}")
        self._program.model.save(unfinished)
        unfinished.replace(path)

    def _restore(self, state: State) -> Counters:
        check_form(state, {**self._initial, **Counters().tensors()})
        counters = Counters.of(state)
        self._held = None
        self._check_counters(counters)
        # Where steps are not one after the other, the optimiser counts in its own way.
        is_async = self.manifest.training.mode == "async"
        check_rate(state, self._initial, range(0 if is_async else counters.step, counters.step + 1))
        assign(self._variables, state)
        return counters

    def _check_counters(self, counters: Counters) -> None:
        """Refuse what early stopping cannot remember yet: whoever claims it ends a run at will."""
        ended = counters.step * self._batch // self._order.trained
        has_rule = self.manifest.training.early_stopping is not None
        most = ended if has_rule else 0
        if not 0 <= counters.waited <= most or (not most and not math.isnan(counters.best)):
            raise StateError(
                f"the state remembers {counters.waited} epochs without a gain over "
                f"{counters.best}, after {ended} epochs"
            )

    def _capture(self, counters: Counters) -> State:
        # Seeds are where the last part that was computed here left them; which one that was
        # differs from worker to worker.
        self._stepper.seed_for(counters.step)
        return State({**self._reader.read(), **counters.tensors()})

    def _take_steps(
        self, first: int, last: int, counters: Counters, on_step: OnStep | None
    ) -> tuple[list[Sums], list[Evaluation], Stop]:
        taken: list[Sums] = []
        evaluations: list[Evaluation] = []
        with closing(self._steps(first, last)) as steps:
            for step, sums in steps:
                if not math.isfinite(sums.loss):
                    return taken, evaluations, Stop.DIVERGED
                taken.append(sums)
                counters.step = step + 1
                if on_step is not None:
                    on_step(step, sums)
                epoch = self._epoch_ended_by(step)
                if epoch is not None and self._validates:
                    figures = self._validate()
                    evaluations.append(Evaluation(epoch, step, figures))
                    if self._is_enough(figures, counters):
                        return taken, evaluations, Stop.EARLY
        return taken, evaluations, Stop.NO

    def _go_back(self, state: State, first: int, last: int) -> None:
        """A run ends with the state before the step whose loss is no number; here `last`."""
        self._take_steps(first, last, self._restore(state), None)

    def _steps(self, first: int, last: int) -> Generator[tuple[int, Sums], None, None]:
        """Take the steps one after the other, and give what each came to."""
        slots = range(self._workers) if self._place is None else [self._place.slot]
        with closing(self._pieces(first, last, slots)) as all_pieces:
            for step, pieces in enumerate(all_pieces, first):
                yield step, self._take(step, pieces)

    def _take(self, step: int, pieces: list[Piece]) -> Sums:
        if self._place is None:
            return self._stepper.step(step, pieces)
        return self._stepper.step_as(self._place.slot, step, pieces[0], self._place.exchange)

    def _pieces(
        self, first: int, last: int, slots: Sequence[int]
    ) -> Generator[list[Piece], None, None]:
        """For each step the pieces of `slots`, which follow each other."""
        shares = [share_of(self._batch, self._workers, slot) for slot in slots]
        start, at_once = shares[0].start, max(1, min(_LOT, _MOST_NUMBERS // self._batch))
        numbers = (
            row[start : shares[-1].stop]
            for lot in range(first, last, at_once)
            for row in self._order.records_between(lot, min(lot + at_once, last), self._batch)
        )
        inner = [slice(share.start - start, share.stop - start) for share in shares]
        source = self.manifest.data.train
        with closing(prefetch(self._material.train, numbers)) as batches:
            for batch in batches:
                yield [piece_of(source, batch, share) for share in inner]

    def _epoch_ended_by(self, step: int) -> int | None:
        """The epoch whose last record step `step` has used up."""
        ended = (step + 1) * self._batch // self._order.trained
        return ended - 1 if ended > step * self._batch // self._order.trained else None

    @property
    def _validates(self) -> bool:
        return self.manifest.training.validation is not None

    def _validate(self) -> Figures:
        """Every worker validates by itself, so that all decide the same."""
        source, data = validation_source(self.manifest), self._material.validation
        if source is not None and data is not None:
            return self._evaluator.evaluate(source, data, self._all_numbers(len(data)))
        held_out = self._order.held_out
        numbers = (
            self._order.held_out_at(start, min(start + self._at_once, held_out))
            for start in range(0, held_out, self._at_once)
        )
        return self._evaluator.evaluate(self.manifest.data.train, self._material.train, numbers)

    def _all_numbers(self, count: int) -> Iterator[Numbers]:
        for start in range(0, count, self._at_once):
            yield np.arange(start, min(start + self._at_once, count))

    def _is_enough(self, figures: Figures, counters: Counters) -> bool:
        rule = self.manifest.training.early_stopping
        if rule is None:
            return False
        name = rule.monitor.removeprefix("val_")
        value = figures.loss if name == "loss" else figures.metrics[name]
        if counters.is_better(value, rule.min_delta, lower=rule.mode == "min"):
            counters.best, counters.waited = value, 0
        else:
            counters.waited += 1
        return counters.waited > rule.patience


def _has_numbers(state: State) -> bool:
    """Whether all weights are numbers; a loss may be one although they are not."""
    weights = (one for name, one in state.tensors.items() if name.startswith(WEIGHTS))
    return all(_are_finite(one) for one in weights if one.dtype.kind == "f")


def _are_finite(values: Tensor) -> bool:
    flat = values.reshape(-1)
    # Ten times as quick; only numbers too large for their squares need the second look.
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(np.vdot(flat, flat))
    return bool(is_finite) or bool(np.isfinite(flat).all())


def order_of(manifest: Manifest) -> Order:
    """Which records each step of the manifest's run takes."""
    return Order(
        manifest.training.seed, manifest.data.train.records, held_out=manifest.plan.held_out
    )


def validation_source(manifest: Manifest) -> Source | None:
    """Where the records to validate with are, if they are not held out of the training data."""
    validation = manifest.training.validation
    return None if validation is None else validation.source
