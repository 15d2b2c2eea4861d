"""States that would make all that follows right and free: they are none that a run can have."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of, write_data
from trainyard.engine import runtime
from trainyard.engine.counting import Counters
from trainyard.engine.data import open_folder
from trainyard.engine.errors import StateError
from trainyard.engine.state import State
from trainyard.protocol.manifest import Local, Manifest

runtime.start(threads=1)

from trainyard.engine.program import build  # noqa: E402
from trainyard.engine.rounds import RoundsTraining  # noqa: E402
from trainyard.engine.training import Material, Training  # noqa: E402

Open = Callable[[Manifest], Any]
# At the end of it nothing is learned any more, and steps change nothing but a counter.
FADING = {
    "type": "SGD",
    "learning_rate": {
        "type": "CosineDecay",
        "initial_learning_rate": 0.1,
        "decay_steps": 1000,
    },
}
STOPPING: dict[str, Any] = {
    "validation": {"split": 0.25},
    "early_stopping": {"monitor": "val_loss", "patience": 1},
}


@pytest.fixture(scope="module")
def open_training(tmp_path_factory: pytest.TempPathFactory) -> Open:
    folder = tmp_path_factory.mktemp("data")
    write_data(folder)

    def open_it(manifest: Manifest) -> Training:
        kind = RoundsTraining if manifest.training.mode == "rounds" else Training
        return kind(manifest, build(manifest), Material(open_folder(manifest.data.train, folder)))

    return open_it


def forged(state: State, ending: str, value: Any) -> State:
    [name] = [name for name in state.tensors if name.endswith(ending)]
    return State({**state.tensors, name: np.asarray(value, state.tensors[name].dtype)})


@pytest.mark.parametrize("workers", [1, 2])
def test_a_place_in_the_schedule_that_is_not_the_step(open_training: Open, workers: int) -> None:
    training = open_training(manifest_of("mlp", optimizer=FADING, workers=workers))
    after = training.run(0, training.start()).state
    assert training.run(1, forged(after, ".iteration", 3)).state != after

    with pytest.raises(StateError, match="iteration of the state is 1000, and here it is 3"):
        training.run(1, forged(after, ".iteration", 1000))


def test_a_worker_of_rounds_that_has_taken_more_steps_than_there_were(open_training: Open) -> None:
    manifest = manifest_of(
        "mlp",
        mode="rounds",
        workers=2,
        until={"steps": 4},
        steps_per_segment=2,
        rounds={"local_steps": 2, "inner": "kept"},
        optimizer=FADING,
    )
    training = open_training(manifest)
    globe = training.start()
    parts = [training.local(Local(0, slot), globe, None) for slot in range(2)]
    globe = training.merge(0, globe, {slot: part.delta for slot, part in enumerate(parts)})
    own = parts[1].state

    # Who came later has taken fewer, and none is what it begins with.
    for steps in (0, 2):
        assert training.local(Local(1, 1), globe, forged(own, ".iteration", steps)).delta
    with pytest.raises(StateError, match="is 3, and here it is 0 to 2"):
        training.local(Local(1, 1), globe, forged(own, ".iteration", 3))


def test_epochs_without_a_gain_that_have_not_been(open_training: Open) -> None:
    training = open_training(manifest_of("mlp", **STOPPING))
    after = training.run(0, training.start()).state
    # Of 72 records, three batches of 24 are an epoch.
    assert Counters.of(after).waited == 0
    assert training.run(1, forged(after, "run/waited", 1)).state

    for ending, value in (("run/waited", 2), ("run/waited", 1 << 40)):
        with pytest.raises(StateError, match="epochs without a gain"):
            training.run(1, forged(after, ending, value))
    with pytest.raises(StateError, match="epochs without a gain"):
        training.run(0, forged(training.start(), "run/best", -1e9))


def test_nothing_is_remembered_without_a_rule(open_training: Open) -> None:
    training = open_training(manifest_of("mlp"))

    with pytest.raises(StateError, match="epochs without a gain"):
        training.run(0, forged(training.start(), "run/best", 0.0))


def frozen(**changes: Any) -> Manifest:
    document = json.loads(manifest_of("mlp", workers=3, **changes).canonical)
    document["model"]["layers"][2]["trainable"] = False
    return Manifest.of(document)


FROZEN = "weights/d1/kernel"


def with_odd_numbers(state: State) -> State:
    """A third of three times a number is another one, for some of those that are here."""
    shape = state.tensors[FROZEN].shape
    bits = np.arange(np.prod(shape), dtype=np.uint32) + np.uint32(0x3FB00000)
    odd = bits.view(np.float32).reshape(shape)
    assert not np.array_equal((odd + odd + odd) / np.float32(3), odd)
    return State({**state.tensors, FROZEN: odd})


def test_what_is_not_trained_stays_as_it_is_in_step(open_training: Open) -> None:
    training = open_training(frozen())
    start = with_odd_numbers(training.start())

    after = training.run(0, start).state

    assert np.array_equal(after.tensors[FROZEN], start.tensors[FROZEN])


def test_what_is_not_trained_stays_as_it_is_in_rounds(open_training: Open) -> None:
    rounds = {"mode": "rounds", "rounds": {"local_steps": 2}, "steps_per_segment": 2}
    training = open_training(frozen(**rounds))
    globe = with_odd_numbers(training.start())

    deltas = {slot: training.local(Local(0, slot), globe, None).delta for slot in range(3)}
    after = training.merge(0, globe, deltas)

    assert np.array_equal(after.tensors[FROZEN], globe.tensors[FROZEN])
