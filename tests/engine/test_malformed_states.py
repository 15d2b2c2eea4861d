"""States with tensors that no state of the run has: whoever commits to one loses by it.

An auditor that died of it would say nothing at all, and lose in the cheat's place.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of, write_data
from trainyard.engine import runtime
from trainyard.engine.auditing import audit
from trainyard.engine.data import open_folder
from trainyard.engine.errors import StateError
from trainyard.engine.exchange import Exchange
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.launching import EXCHANGE
from trainyard.engine.material import Files
from trainyard.engine.state import State
from trainyard.protocol.manifest import Local, Manifest, Merge

runtime.start(threads=1)

from trainyard.engine.program import build  # noqa: E402
from trainyard.engine.rounds import RoundsTraining  # noqa: E402
from trainyard.engine.training import Material, Training  # noqa: E402

Change = Callable[[State], State]

KERNEL, TWIN = "weights/d1/kernel", "outer/d1/kernel"
# By the endings of their names, since those of the optimiser are numbered.
COUNT, RATE, STEP = ".iteration", ".learning_rate", "run/step"


def named(state: State, ending: str) -> str:
    [name] = [name for name in state.tensors if name.endswith(ending)]
    return name


def put(ending: str, value: Any) -> Change:
    return lambda state: State({**state.tensors, named(state, ending): np.asarray(value)})


def lost(ending: str) -> Change:
    return lambda state: State(
        {name: one for name, one in state.tensors.items() if name != named(state, ending)}
    )


def extra(name: str) -> Change:
    return lambda state: State({**state.tensors, name: np.zeros(3, np.float32)})


def flat(ending: str) -> Change:
    return lambda state: put(ending, state.tensors[named(state, ending)].ravel())(state)


def as_kind(ending: str, dtype: Any) -> Change:
    return lambda state: put(ending, state.tensors[named(state, ending)].astype(dtype))(state)


OF_OPTIMIZER: dict[str, Change] = {
    "a count that is a list": put(COUNT, np.array([3, 3])),
    "a count that is no number": put(COUNT, np.float32("nan")),
    "an infinite count": put(COUNT, np.float64("inf")),
    "a count of another kind": as_kind(COUNT, np.int32),
    "a count that is empty": put(COUNT, np.zeros(0, np.int64)),
    "no count": lost(COUNT),
    "a rate that is a list": put(RATE, np.full(4, 0.01, np.float32)),
    "a rate of another kind": as_kind(RATE, np.float64),
    "no rate": lost(RATE),
    "a memory too many": extra("optimizer/99999.more"),
}
OF_COUNTERS: dict[str, Change] = {
    "a step that is a list": put(STEP, np.array([3, 3])),
    "a step that is no number": put(STEP, np.float64("nan")),
    "no step": lost(STEP),
    "a stop that nobody knows": put("run/stop", np.int64(7)),
    "a best that is a list": put("run/best", np.zeros(2)),
    "less than no epochs waited": put("run/waited", np.int64(-1)),
    "a counter too many": extra("run/more"),
}
OF_WEIGHTS: dict[str, Change] = {
    "weights of another shape": flat(KERNEL),
    "weights of another kind": as_kind(KERNEL, np.float64),
    "weights that are none": as_kind(KERNEL, bool),
    "no weights": lost(KERNEL),
    "weights too many": extra("weights/more"),
    "a tensor of nobody": extra("more"),
}
OF_OUTER: dict[str, Change] = {
    "a momentum without its weight": extra("outer/more"),
    "a momentum of another shape": put(TWIN, np.zeros(3, np.float32)),
    "a momentum that would stretch": put(TWIN, np.zeros((2, 1, 1), np.float32)),
    "a momentum of another kind": as_kind(TWIN, np.float64),
    "no momentum": lost(TWIN),
}
ALONE = {**OF_OPTIMIZER, **OF_COUNTERS, **OF_WEIGHTS}
# What is waited for means nothing in rounds, where nobody stops early.
GLOBES = {**OF_COUNTERS, **OF_WEIGHTS, **OF_OUTER}
del GLOBES["less than no epochs waited"]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)
    return folder


def opened(manifest: Manifest, data: Path) -> Any:
    kind = RoundsTraining if manifest.training.mode == "rounds" else Training
    return kind(manifest, build(manifest), Material(open_folder(manifest.data.train, data)))


@pytest.fixture(scope="module")
def single(data: Path) -> tuple[Training, State]:
    training = opened(manifest_of("mlp", steps_per_segment=1), data)
    return training, training.run(0, training.start()).state


@pytest.fixture(scope="module")
def rounds(data: Path) -> tuple[RoundsTraining, State, list[Any]]:
    manifest = manifest_of(
        "mlp",
        mode="rounds",
        workers=2,
        until={"steps": 4},
        steps_per_segment=2,
        rounds={"local_steps": 2, "inner": "kept"},
    )
    training = opened(manifest, data)
    first = training.start()
    parts = [training.local(Local(0, slot), first, None) for slot in range(2)]
    globe = training.merge(0, first, {slot: part.delta for slot, part in enumerate(parts)})
    return training, globe, parts


@pytest.mark.parametrize("change", ALONE.values(), ids=ALONE)
def test_no_segment_starts_from_it(single: tuple[Training, State], change: Change) -> None:
    training, state = single
    assert training.run(1, State(state.tensors)).state

    with pytest.raises(StateError):
        training.run(1, change(state))


@pytest.mark.parametrize("change", GLOBES.values(), ids=GLOBES)
@pytest.mark.parametrize("part", [Local(1, 0), Merge(0)], ids=["part", "merge"])
def test_no_round_starts_from_it(
    rounds: tuple[RoundsTraining, State, list[Any]], part: Local | Merge, change: Change
) -> None:
    training, globe, parts = rounds
    leaves = [one.state for one in parts]
    deltas = {one.delta.hash: one.delta for one in parts}
    others = leaves if isinstance(part, Merge) else leaves[:1]
    segment = training.plan.segment(part)
    assert training.recompute(segment, (globe, *others), deltas)

    with pytest.raises(StateError):
        training.recompute(segment, (change(globe), *others), deltas)


@pytest.mark.parametrize("change", OF_OPTIMIZER.values(), ids=OF_OPTIMIZER)
def test_no_worker_of_rounds_goes_on_from_it(
    rounds: tuple[RoundsTraining, State, list[Any]], change: Change
) -> None:
    training, globe, parts = rounds

    with pytest.raises(StateError):
        training.recompute(training.plan.segment(Local(1, 0)), (globe, change(parts[0].state)), {})


OF_LEAVES: dict[str, Change] = {
    "an absence that is a list": lambda leaf: State(
        {**leaf.tensors, "run/absent": np.array([1, 2])}
    ),
    "an absence that is no number": lambda leaf: State(
        {**leaf.tensors, "run/absent": np.asarray(np.nan)}
    ),
    "an absence that nobody knows": lambda leaf: State(
        {**leaf.tensors, "run/absent": np.asarray(9)}
    ),
    "a delta named by half": put("run/delta", np.zeros(16, np.uint8)),
    "a delta named in another kind": put("run/delta", np.zeros(32, np.int8)),
    "a delta that is not there": put("run/delta", np.zeros(32, np.uint8)),
    "no delta": lost("run/delta"),
}


@pytest.mark.parametrize("change", OF_LEAVES.values(), ids=OF_LEAVES)
def test_no_merge_is_of_it(rounds: tuple[RoundsTraining, State, list[Any]], change: Change) -> None:
    training, globe, parts = rounds
    leaves = [change(parts[0].state), parts[1].state]
    deltas = {one.delta.hash: one.delta for one in parts}

    with pytest.raises(StateError):
        training.recompute(training.plan.segment(Merge(0)), (globe, *leaves), deltas)


OF_DELTAS: dict[str, Change] = {
    "a delta of another shape": flat("delta/d1/kernel"),
    "a delta of another kind": as_kind("delta/d1/kernel", np.float64),
    "a delta without a weight": lost("delta/d1/kernel"),
    "a delta with a weight too many": extra("delta/more"),
    "a delta of nobody": extra("more"),
}


@pytest.mark.parametrize("change", OF_DELTAS.values(), ids=OF_DELTAS)
def test_no_merge_is_of_such_a_delta(
    rounds: tuple[RoundsTraining, State, list[Any]], change: Change
) -> None:
    training, globe, parts = rounds
    delta = change(parts[0].delta)
    named_so = np.frombuffer(delta.hash, np.uint8)
    leaves = [put("run/delta", named_so)(parts[0].state), parts[1].state]
    deltas = {delta.hash: delta, parts[1].delta.hash: parts[1].delta}

    with pytest.raises(StateError):
        training.recompute(training.plan.segment(Merge(0)), (globe, *leaves), deltas)


def written(folder: Path, manifest: Manifest, states: list[State]) -> Path:
    journal = Journal.open(folder, manifest.canonical)
    for number, state in enumerate(states):
        journal.append(Entry(number=number, state=state.hash.hex(), step=0), state)
    return folder


def test_an_auditor_goes_on_to_the_other_segments(
    single: tuple[Training, State], data: Path, tmp_path: Path
) -> None:
    """In a process of its own, as it is on the market: each of these once ended it."""
    training, state = single
    changes = ["a count that is a list", "a count that is no number", "weights too many", "no step"]
    states = [training.start(), *(ALONE[change](state) for change in changes)]

    run = written(tmp_path / "run", training.manifest, states)
    answers = audit(run, Files(train=data), [0, 1, 2, 3, 4]).answers

    assert [answer.state for answer in answers] == [state.hash.hex(), None, None, None, None]
    assert all(answer.reason for answer in answers[1:])


def test_an_auditor_of_rounds_goes_on_to_the_other_segments(
    rounds: tuple[RoundsTraining, State, list[Any]], data: Path, tmp_path: Path
) -> None:
    training, _, parts = rounds
    leaves = [part.state for part in parts]
    exchange = Exchange(tmp_path / "run" / EXCHANGE)
    exchange.prepare()
    for part in parts:
        exchange.put(part.delta)
    # The second merge is from the same leaves, and both parts before it from the forged state.
    globe = OF_OUTER["a momentum without its weight"](rounds[1])
    states = [training.start(), *leaves, globe, *leaves, globe]

    run = written(tmp_path / "run", training.manifest, states)
    answers = audit(run, Files(train=data), range(6)).answers

    found = [answer.state for answer in answers]
    assert found == [*(leaf.hash.hex() for leaf in leaves), rounds[1].hash.hex(), None, None, None]
