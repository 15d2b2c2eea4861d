"""The merge at the end of a round: a Nesterov step along the mean of what the workers found.

It is NumPy alone, element by element and in the order of slots. So every machine gets the same
bits, whatever it computes its own part with.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from trainyard.engine.counting import Counters, Stop
from trainyard.engine.deltas import (
    Compression,
    Floats,
    is_finite,
    moving_names,
    read_delta,
    trained_names,
)
from trainyard.engine.errors import RunError, StateError
from trainyard.engine.leaves import delta_of
from trainyard.engine.state import OUTER, WEIGHTS, State, Tensor
from trainyard.protocol.manifest import Manifest, Merge, RoundsPlan
from trainyard.protocol.manifest.training import Outer, Rounds


def merge(
    globe: State,
    deltas: Sequence[State],
    step: int,
    outer: Outer,
    compression: Compression,
    still: Collection[str] = (),
) -> State:
    """The global state after a round that ends before `step`.

    `deltas` are those of the workers that were there, in the order of slots. Without any, or if
    their sum is no number, the run is over and its weights stay as they are.
    """
    counters = Counters.of(globe)
    if counters.stop is not Stop.NO:
        return globe
    read = [read_delta(globe, delta, compression, still) for delta in deltas]
    with np.errstate(over="ignore", invalid="ignore"):
        merged = _step(globe, read, outer, still) if read else {}
    if not merged or not is_finite(merged):
        counters.stop = Stop.DIVERGED
        return State({**globe.tensors, **counters.tensors()})
    counters.step = step
    return State({**globe.tensors, **merged, **counters.tensors()})


def merge_round(
    manifest: Manifest, number: int, globe: State, deltas: Mapping[int, State]
) -> State:
    """The global state after round `number` of a run, of the deltas that were sent, by slot."""
    plan, rounds = plan_of(manifest), rounds_of(manifest)
    _, last = plan.bounds(plan.segment(Merge(number)))
    in_order = [deltas[slot] for slot in sorted(deltas)]
    still = manifest.model.still
    return merge(globe, in_order, last, rounds.outer, rounds.compression, still)


def deltas_sent(leaves: Sequence[State], deltas: Mapping[bytes, State]) -> dict[int, State]:
    """The deltas that the leaves of a round name, by slot."""
    sent = {}
    for slot, leaf in enumerate(leaves):
        digest = delta_of(leaf)
        if digest is None:
            continue
        if digest not in deltas:
            raise StateError(f"the delta {digest.hex()} of worker {slot} is missing")
        sent[slot] = deltas[digest]
    return sent


def plan_of(manifest: Manifest) -> RoundsPlan:
    if not isinstance(manifest.plan, RoundsPlan):
        raise RunError(f"mode {manifest.training.mode!r} has no rounds")
    return manifest.plan


def rounds_of(manifest: Manifest) -> Rounds:
    if manifest.training.rounds is None:
        raise RunError(f"mode {manifest.training.mode!r} has no rounds")
    return manifest.training.rounds


def quorum_of(manifest: Manifest) -> int:
    return rounds_of(manifest).quorum or 1


def check_quorum(manifest: Manifest, globe: State, there: int) -> None:
    """INVARIANT: absences cannot end a run or decide it, whoever tells of them.

    `there` are those that sent a delta or diverged.
    """
    quorum = quorum_of(manifest)
    if there < quorum and Counters.of(globe).stop is Stop.NO:
        raise StateError(f"{there} workers were in this round, and {quorum} make one: it is none")


def _step(
    globe: State, deltas: Sequence[dict[str, Floats]], outer: Outer, still: Collection[str]
) -> dict[str, Tensor]:
    rate, momentum = np.float32(outer.learning_rate), np.float32(outer.momentum)
    merged: dict[str, Tensor] = {}
    for name in trained_names(globe):
        twin = OUTER + name.removeprefix(WEIGHTS)
        gradient = _mean([delta[name] for delta in deltas])
        speed = momentum * globe.tensors[twin] + gradient
        merged[twin] = speed
        merged[name] = globe.tensors[name] - rate * (gradient + momentum * speed)
    for name in moving_names(globe, still):
        merged[name] = _mean_unless_same([delta[name] for delta in deltas])
    return merged


def _mean_unless_same(values: Sequence[Floats]) -> Floats:
    """What nobody trains stays as it is: a third of three times a number may be another."""
    is_same = np.logical_and.reduce([value == values[0] for value in values])
    return np.where(is_same, values[0], _mean(values))


def _mean(values: Sequence[Floats]) -> Floats:
    total = values[0].copy()
    for value in values[1:]:
        total += value
    total /= np.float32(len(values))
    return total
