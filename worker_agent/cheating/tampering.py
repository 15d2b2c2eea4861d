"""Deltas and merges of a run in rounds that are not what was computed."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from trainyard.engine.merging import plan_of
from trainyard.engine.state import WEIGHTS, State, Tensor
from trainyard.protocol.manifest import Local, Manifest
from worker_agent.cheating.plan import Cheat, Plan

if TYPE_CHECKING:
    from trainyard.engine.rounds import Part, RoundsTraining

# So little that nobody sees it in the figures.
_FACTOR = np.float32(1.01)
_NAMED, _DELTA = "run/delta", "delta/"
_Merge: TypeAlias = Callable[[Manifest, int, State, Mapping[int, State]], State]


class CheatingRounds:
    """Computes all parts and merges, changes some of what came of it, and passes the rest on."""

    def __init__(self, training: "RoundsTraining", plan: Plan) -> None:
        self._training, self._plan = training, plan
        self._cheated = plan.cheated(plan_of(training.manifest).rounds)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._training, name)

    def local(self, part: Local, globe: State, own: State | None, on_step: Any = None) -> "Part":
        found = self._training.local(part, globe, own, on_step)
        is_cheated = self._plan.cheat is Cheat.DELTA and part.round in self._cheated
        return _tampered(found) if is_cheated else found

    def merge(self, number: int, globe: State, deltas: Mapping[int, State]) -> State:
        merged = self._training.merge(number, globe, deltas)
        is_cheated = self._plan.cheat is Cheat.MERGE and number in self._cheated
        return _scaled(merged, WEIGHTS) if is_cheated else merged


def tampered_merges(plan: Plan, honest: _Merge) -> _Merge:
    """The same merges as `CheatingRounds` makes them, for whoever keeps the trace."""

    def merge(manifest: Manifest, number: int, globe: State, deltas: Mapping[int, State]) -> State:
        merged = honest(manifest, number, globe, deltas)
        is_cheated = number in plan.cheated(plan_of(manifest).rounds)
        return _scaled(merged, WEIGHTS) if is_cheated else merged

    return merge


def _tampered(part: "Part") -> "Part":
    """A part with another delta. The leaf names that one, for others look whether it does."""
    if part.delta is None:
        return part
    sent = _scaled(part.delta, _DELTA)
    digest = np.frombuffer(sent.hash, np.uint8)
    return replace(part, state=State({**part.state.tensors, _NAMED: digest}), delta=sent)


def _scaled(state: State, prefix: str) -> State:
    def value(name: str, tensor: Tensor) -> Tensor:
        is_changed = name.startswith(prefix) and tensor.dtype == np.float32
        return tensor * _FACTOR if is_changed else tensor

    return State({name: value(name, tensor) for name, tensor in state.tensors.items()})
