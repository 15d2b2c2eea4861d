"""Mode `rounds`: the parts of workers that meet only now and then, and the merges between them."""

import math
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from trainyard.engine.counting import Counters, Stop
from trainyard.engine.deltas import is_finite, make_delta, read_delta, shared_names
from trainyard.engine.errors import StateError
from trainyard.engine.figures import Figures, Sums
from trainyard.engine.leaves import Absence, absence_of, absent, absent_in, kept
from trainyard.engine.merging import check_quorum, deltas_sent, merge_round, plan_of, rounds_of
from trainyard.engine.program import Program
from trainyard.engine.state import OPTIMIZER, OUTER, WEIGHTS, State, Tensor, check_form
from trainyard.engine.stepping import Stepper
from trainyard.engine.training import Evaluation, Material, OnStep, Training
from trainyard.engine.variables import assign, check_rate
from trainyard.protocol.manifest import Local, Manifest, Merge


@dataclass(frozen=True, slots=True)
class Part:
    """What a worker has of its part of a round: its leaf, and the delta for the others."""

    state: State
    delta: State | None
    absence: Absence | None
    figures: Figures | None
    train_s: float = 0.0
    trace_s: float = 0.0


class RoundsTraining(Training):
    """Computes parts and merges. Its states are of two kinds: global ones, and leaves of workers.

    A global state has weights, the momenta of the outer optimiser, and counters. A leaf has seeds,
    counters and the hash of the worker's delta; and the variables of the worker's own optimiser, if
    the next round goes on from them.
    """

    def __init__(self, manifest: Manifest, program: Program, material: Material) -> None:
        super().__init__(manifest, program, material)
        self.plan = plan_of(manifest)
        # Each worker is alone in its part: the mean is over its own share.
        self._share = self._batch // self._workers
        self._stepper = Stepper(program, batch=self._share, workers=1)
        trained = {id(variable) for variable in program.model.trainable_variables}
        self._trained = [name for name, one in self._variables.items() if id(one) in trained]

    def start(self, weights: State | None = None) -> State:
        """The global state before the first round."""
        assign(self._variables, State(self._initial))
        if weights is not None:
            assign(self._variables, weights, WEIGHTS)
        self._stepper.seed_for(0)
        return self._first_globe(self._reader.read())

    def local(
        self, part: Local, globe: State, own: State | None, on_step: OnStep | None = None
    ) -> Part:
        """The part of one worker, from the global state and what it kept of its last round."""
        segment = self.plan.segment(part)
        first, last = self.plan.bounds(segment)
        counters = Counters.of(globe)
        if counters.stop is not Stop.NO:
            return Part(absent(counters, Absence.OVER), None, Absence.OVER, None)
        if counters.step != first:
            raise StateError(
                f"round {part.round} begins with step {first}, and this state is before step "
                f"{counters.step}"
            )
        began = time.perf_counter()
        assign(self._variables, globe, WEIGHTS)
        kept = State(self._initial) if own is None else own
        # Fewer if the worker came later or was away.
        check_rate(kept, self._initial, range(first + 1))
        assign(self._variables, kept, OPTIMIZER)
        self._program.schedule_from(first)
        taken = self._take_part(part.slot, first, last, on_step)
        trained = time.perf_counter()
        state, delta, absence = self._end(part, segment, globe, len(taken) == last - first)
        _ = state.hash
        figures = None
        if taken:
            figures = Figures.of_steps(tuple(self._program.metrics), taken, self._share)
        seconds = trained - began, time.perf_counter() - trained
        return Part(state, delta, absence, figures, *seconds)

    def merge(self, number: int, globe: State, deltas: Mapping[int, State]) -> State:
        """The global state after round `number`, of the deltas that were sent, by slot."""
        return merge_round(self.manifest, number, globe, deltas)

    def validate(self, number: int, globe: State) -> tuple[Evaluation, ...]:
        """Figures of the global state after round `number`, if that ended an epoch."""
        first, last = self.plan.bounds(self.plan.segment(Merge(number)))
        if not self._validates or Counters.of(globe).step != last:
            return ()
        ended = [self._epoch_ended_by(step) for step in range(first, last)]
        epochs = [epoch for epoch in ended if epoch is not None]
        if not epochs:
            return ()
        self._restore(globe)
        return (Evaluation(epochs[-1], last - 1, self._validate()),)

    def recompute(
        self,
        segment: int,
        states: tuple[State, ...],
        deltas: Mapping[bytes, State],
        absence: Absence | None = None,
    ) -> State:
        """A segment from the states that it is computed from, and for a merge the deltas.

        That a worker was away or late is not to be computed, and has to be told.
        """
        part = self.plan.part(segment)
        globe, *others = states
        check_form(globe, self._first_globe(self._initial).tensors)
        if isinstance(part, Merge):
            told = [absence_of(leaf) for leaf in others]
            there = sum(why in (None, Absence.DIVERGED) for why in told)
            check_quorum(self.manifest, globe, there)
            return self.merge(part.round, globe, deltas_sent(others, deltas))
        if absence is not None and absence.is_told:
            return absent_in(self.plan, segment, absence)
        return self.local(part, globe, others[0] if others else None).state

    def _first_globe(self, variables: Mapping[str, Tensor]) -> State:
        """The global state of these variables, before anything was merged."""
        tensors = {name: one for name, one in variables.items() if name.startswith(WEIGHTS)}
        for name in self._trained:
            tensors[OUTER + name.removeprefix(WEIGHTS)] = np.zeros_like(tensors[name])
        return State({**tensors, **Counters().tensors()})

    def _restore(self, state: State) -> Counters:
        counters = Counters.of(state)
        assign(self._variables, state, WEIGHTS)
        return counters

    def _take_part(self, slot: int, first: int, last: int, on_step: OnStep | None) -> list[Sums]:
        """The steps up to one whose loss is no number."""
        taken: list[Sums] = []
        with closing(self._pieces(first, last, [slot])) as all_pieces:
            for step, pieces in enumerate(all_pieces, first):
                sums = self._stepper.step(step * self._workers + slot, pieces)
                if not math.isfinite(sums.loss):
                    break
                taken.append(sums)
                if on_step is not None:
                    on_step(step, sums)
        return taken

    def _end(
        self, part: Local, segment: int, globe: State, done: bool
    ) -> tuple[State, State | None, Absence | None]:
        if done:
            compression = rounds_of(self.manifest).compression
            _, last = self.plan.bounds(segment)
            self._stepper.seed_for(last * self._workers + part.slot)
            variables = self._reader.read()
            still = self.manifest.model.still
            delta = make_delta(globe, variables, compression, still)
            if is_finite(delta.tensors) and is_finite(read_delta(globe, delta, compression, still)):
                shared = shared_names(globe)
                own = {
                    name: one
                    for name, one in variables.items()
                    if name not in shared and (self.plan.goes_on or not name.startswith(OPTIMIZER))
                }
                return kept(own, Counters(step=last), delta), delta, None
        return absent_in(self.plan, segment, Absence.DIVERGED), None, Absence.DIVERGED
