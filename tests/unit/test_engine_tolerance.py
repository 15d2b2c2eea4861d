"""The comparison of ends of a segment that were computed on unlike machines."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of, source
from trainyard.engine.errors import RunError
from trainyard.engine.scoring import LEAST_LOSS
from trainyard.engine.state import State, Tensor
from trainyard.engine.tolerance import (
    DEFAULT_THRESHOLD,
    LONGEST_SEGMENT,
    Deviation,
    Terms,
    begins_alike,
)
from trainyard.engine.tolerance import deviation as deviation_by
from trainyard.engine.tolerance import within as within_by


def state(
    kernel: object,
    *,
    slot: object = (0.0,),
    step: int = 1,
    more: Mapping[str, Tensor] = MappingProxyType({}),
) -> State:
    return State(
        {
            "weights/out/kernel": np.asarray(kernel, np.float32),
            "optimizer/00002.momentum": np.asarray(slot, np.float32),
            "run/step": np.asarray(step, np.int64),
            "run/best": np.asarray(math.nan, np.float64),
            **more,
        }
    )


START = state([0.0, 0.0])
LONG = LONGEST_SEGMENT + 1


def within(
    start: State,
    claimed: State,
    found: State,
    *,
    threshold: float = DEFAULT_THRESHOLD,
    **terms: Any,
) -> bool:
    """Of a segment that is short enough, unless it is said."""
    given = Terms(**{"steps": LONGEST_SEGMENT, **terms})
    return within_by(start, claimed, found, given, threshold=threshold)


def deviation(start: State, claimed: State, found: State) -> Deviation:
    return deviation_by(start, claimed, found, Terms(LONGEST_SEGMENT))


def test_deviation_is_a_share_of_the_way() -> None:
    found = deviation(START, state([3.0, 4.0]), state([3.0, 4.5]))

    assert found.weights == pytest.approx(0.1)
    assert found.tensors["weights/out/kernel"] == pytest.approx(0.1)
    assert found.optimizer == 0.0
    assert found.largest == found.weights


def test_same_ends_do_not_deviate() -> None:
    assert deviation(START, state([3.0, 4.0]), state([3.0, 4.0])).largest == 0.0


@pytest.mark.parametrize(("moved", "expected"), [(1.02, True), (1.05, False)])
def test_small_tensor_does_not_drown_among_large_ones(moved: float, expected: bool) -> None:
    """Though it may stray a little further than all of them together."""
    large = np.full(10_000, 1.0, np.float32)
    start = state([0.0], more={"weights/a/kernel": np.zeros(10_000, np.float32)})
    claimed = state([moved], more={"weights/a/kernel": large})
    honest = state([1.0], more={"weights/a/kernel": large})

    assert deviation(start, claimed, honest).weights < DEFAULT_THRESHOLD
    assert within(start, claimed, honest) is expected


@pytest.mark.parametrize(("moved", "expected"), [(1.02, True), (1.05, False)])
def test_moving_statistics_are_compared_by_themselves(moved: float, expected: bool) -> None:
    """They move further than weights do, which among them would drown."""

    def with_mean(weight: float, mean: float) -> State:
        return state([weight], more={"weights/norm/moving_mean": np.full(4, mean, np.float32)})

    start, honest = with_mean(0.0, 0.0), with_mean(1e-3, 1000.0)

    assert within(start, with_mean(1e-3, 1000.0 * moved), honest) is expected
    assert not within(start, with_mean(2e-3, 1000.0), honest)


def biased(bias: float, memory: float = 1e-7, *, kernel: float = 1.0) -> State:
    """A layer before a normalisation, under Adam: of its bias no gradient is left but rounding."""
    many = np.ones(100, np.float32)
    return State(
        {
            "weights/c1/kernel": many * np.float32(kernel),
            "weights/c1/bias": np.full(4, bias, np.float32),
            "optimizer/00002.c1_kernel_momentum": many,
            "optimizer/00003.c1_kernel_velocity": many,
            "optimizer/00004.c1_bias_momentum": np.full(4, memory, np.float32),
            "optimizer/00005.c1_bias_velocity": np.full(4, memory**2, np.float32),
        }
    )


@pytest.mark.parametrize(
    ("claimed", "expected"),
    [
        (biased(1.0), True),
        (biased(-1.0, -2e-7), True),
        (biased(3.0, 5e-7), True),
        # Not so far as no step takes it, and without a memory by which the next one would.
        (biased(30.0), False),
        (biased(1.0, 0.1), False),
        (biased(1.0, math.nan), False),
        (biased(1.0, math.inf), False),
        (biased(math.nan), False),
        (biased(math.inf), False),
        (biased(-math.inf), False),
        (biased(1.0, kernel=1.01), False),
    ],
)
def test_what_rounding_moves_may_be_elsewhere(claimed: State, expected: bool) -> None:
    assert within(biased(0.0, 0.0, kernel=0.0), claimed, biased(0.5)) is expected


def test_moving_statistics_give_rounding_no_room() -> None:
    """They go far beyond any weight, and how far a bias may be is a matter of weights."""

    def with_variance(state: State, value: float) -> State:
        return State({**state.tensors, "weights/norm/moving_variance": np.full(4, value, "f4")})

    start = with_variance(biased(0.0, 0.0, kernel=0.0), 1.0)
    found = with_variance(biased(0.5), 2000.0)

    assert within(start, with_variance(biased(1.0), 2000.0), found)
    assert not within(start, with_variance(biased(30.0), 2000.0), found)


def test_a_claim_gives_itself_no_room() -> None:
    """How far others went is what the auditor found, however large the part that is claimed."""

    def with_most(state: State, value: float) -> State:
        many = np.full(1000, 1e-7, np.float32)
        more = {
            "weights/c2/bias": np.full(1000, value, np.float32),
            "optimizer/00006.c2_bias_momentum": many,
            "optimizer/00007.c2_bias_velocity": many**2,
        }
        return State({**state.tensors, **more})

    start, found = with_most(biased(0.0, 0.0, kernel=0.0), 0.0), with_most(biased(0.5), 0.5)

    assert within(start, with_most(biased(0.5), 1.0), found)
    assert not within(start, with_most(biased(0.5), 1000.0), found)


@pytest.mark.parametrize("steps", [LONGEST_SEGMENT, LONG])
@pytest.mark.parametrize(("value", "expected"), [(1.0, True), (1.0000001, False), (1000.0, False)])
def test_layer_that_is_not_trained_stands_still(value: float, expected: bool, steps: int) -> None:
    """Whatever share of the weights it has, and whoever is asked."""

    def with_base(kernel: float, base: float) -> State:
        more = {"weights/base/kernel": np.full(50, base, np.float32)}
        return state([kernel, 0.0], more=more)

    terms: dict[str, Any] = {"steps": steps, "still": ("base",)}
    ends = with_base(0.0, 1.0), with_base(1.0, value), with_base(1.0, 1.0)

    if expected and steps == LONG:
        with pytest.raises(RunError, match="no comparison can tell them"):
            within(*ends, **terms)
    else:
        assert within(*ends, **terms) is expected
    # Another layer whose name only begins alike is one that is trained.
    assert within(with_base(0.0, 0.0), ends[1], ends[1], still=("bas",))


def test_what_moves_by_rounding_is_not_the_claims_word() -> None:
    """A gradient that the auditor found is one."""
    start, found = biased(0.0, 0.0, kernel=0.0), biased(0.5, 0.3)

    assert not within(start, biased(1.0), found)


def test_plain_descent_tells_gradients_by_how_far_it_goes() -> None:
    def descended(bias: float, kernel: float = 1.0) -> State:
        return State(
            {
                "weights/c1/kernel": np.full(100, kernel, np.float32),
                "weights/c1/bias": np.full(4, bias, np.float32),
            }
        )

    start = descended(0.0, 0.0)

    assert within(start, descended(1e-6), descended(-1e-6))
    assert not within(start, descended(0.2), descended(0.1))


def test_forged_memory_of_the_optimiser_is_seen() -> None:
    claimed, found = state([1.0, 0.0], slot=[2.0]), state([1.0, 0.0], slot=[1.0])

    assert deviation(START, claimed, found).optimizer == pytest.approx(0.5)
    assert not within(START, claimed, found)


@pytest.mark.parametrize(("share", "expected"), [(0.99, True), (1.01, False)])
def test_threshold_decides(share: float, expected: bool) -> None:
    found = state([1.0 + DEFAULT_THRESHOLD * share, 0.0])

    assert within(START, state([1.0, 0.0]), found) is expected
    assert within(START, state([1.0, 0.0]), found, threshold=0.5)


def test_last_bit_of_weights_that_stand_still_is_no_deviation() -> None:
    start = state([1.0, 1.0])

    assert within(start, start, state([np.nextafter(np.float32(1), np.float32(2)), 1.0]))
    assert deviation(start, start, state([1.0001, 1.0])).weights == math.inf


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("claims", [True, False], ids=["claimed", "found"])
def test_what_is_no_number_is_never_within(wrong: float, claims: bool) -> None:
    good, bad = state([1.0, 0.0]), state([1.0, wrong])

    assert not within(START, *((bad, good) if claims else (good, bad)), threshold=1e9)


@pytest.mark.parametrize(
    ("other", "name"),
    [
        (state([1.0, 0.0], step=2), "run/step"),
        (state([1.0]), "weights/out/kernel"),
        (state([1.0, 0.0], more={"weights/x": np.zeros(1, np.float32)}), "weights/x"),
        (
            State({**state([1.0, 0.0]).tensors, "weights/out/kernel": np.zeros(2, np.float64)}),
            "weights/out/kernel",
        ),
    ],
    ids=["counter", "shape", "more", "dtype"],
)
def test_what_must_be_equal_is_named(other: State, name: str) -> None:
    claimed = state([1.0, 0.0])

    assert deviation(START, claimed, other).unequal == (name,)
    assert deviation(START, other, claimed).largest == math.inf
    assert not within(START, claimed, other, threshold=1e9)


def test_huge_weights_do_not_overflow() -> None:
    claimed, found = state([3e38, 0.0]), state([2.7e38, 0.0])

    assert deviation(START, claimed, found).weights == pytest.approx(0.1)


RATE = "optimizer/00001.learning_rate"


def with_scalar(name: str, value: float, dtype: type = np.float32) -> State:
    """Beside weights that go a thousand times as far."""
    return state(
        np.full(1000, 1000.0), slot=np.full(1000, 1.0), more={name: np.asarray(value, dtype)}
    )


def start_with(name: str, value: float, dtype: type = np.float32) -> State:
    return state(np.zeros(1000), slot=np.zeros(1000), more={name: np.asarray(value, dtype)})


@pytest.mark.parametrize(
    ("claimed", "found", "expected"),
    [
        (0.01, 0.01, True),
        # A rate that no schedule changes is the same anywhere.
        (0.0101, 0.01, False),
        (0.0100001, 0.01, False),
        # One that goes down may differ by a part of how far it went.
        (0.008, 0.00800001, True),
        (0.008, 0.0081, False),
    ],
)
def test_scalar_does_not_drown_among_tensors(claimed: float, found: float, expected: bool) -> None:
    start = start_with(RATE, 0.01)

    assert within(start, with_scalar(RATE, claimed), with_scalar(RATE, found)) is expected


@pytest.mark.parametrize(
    ("claimed", "found", "expected"),
    [
        (math.nan, math.nan, True),
        (0.5, 0.5001, True),
        (0.5, 0.6, False),
        (math.nan, 0.5, False),
        (0.5, math.nan, False),
    ],
)
def test_best_of_early_stopping_is_compared(claimed: float, found: float, expected: bool) -> None:
    start = start_with("run/best", math.nan, np.float64)
    one, other = (with_scalar("run/best", value, np.float64) for value in (claimed, found))

    assert within(start, one, other) is expected


@pytest.mark.parametrize(
    ("claimed", "found", "expected"),
    [
        # One of 200 records that lies on the border.
        (0.880, 0.875, True),
        (0.0, 0.005, True),
        (0.880, 0.865, False),
        (0.0, 0.02, False),
        (math.inf, 0.5, False),
        (0.5, math.inf, False),
    ],
)
def test_a_record_on_the_border_may_fall_to_either_side(
    claimed: float, found: float, expected: bool
) -> None:
    start = start_with("run/best", math.nan, np.float64)
    one, other = (with_scalar("run/best", value, np.float64) for value in (claimed, found))

    assert within(start, one, other, slack=1 / 200) is expected


@pytest.mark.parametrize(
    ("monitor", "slack"),
    [
        ("val_accuracy", 1 / 24),
        ("val_top", 1 / 24),
        ("val_loss", LEAST_LOSS),
        (None, 0.0),
    ],
)
def test_only_a_share_of_what_is_validated_has_a_border(monitor: str | None, slack: float) -> None:
    accuracy = {"type": "SparseCategoricalAccuracy", "name": "accuracy"}
    top = {"type": "SparseTopKCategoricalAccuracy", "k": 2, "name": "top"}
    stopping: dict[str, Any] = {}
    if monitor is not None:
        stopping["early_stopping"] = {"monitor": monitor}
    manifest = manifest_of(validation={"split": 0.25}, metrics=[accuracy, top], **stopping)

    assert Terms.of(manifest, 0).slack == slack


def test_records_of_an_own_validation_are_those_of_its_source() -> None:
    manifest = manifest_of(
        validation={"source": source(200)}, early_stopping={"monitor": "val_accuracy"}
    )

    assert Terms.of(manifest, 0).slack == 1 / 200


def test_better_loss_than_a_record_could_excuse_is_found() -> None:
    start = start_with("run/best", math.nan, np.float64)
    one, other = (with_scalar("run/best", value, np.float64) for value in (0.02, 0.04))

    assert not within(start, one, other, slack=LEAST_LOSS)


def test_outer_memory_is_compared() -> None:
    start, one, other = (
        state([size, 0.0], more={"outer/w": np.full(2, value, np.float32)})
        for size, value in ((0.0, 0.0), (1.0, 2.0), (1.0, 1.0))
    )

    assert deviation(start, one, other).outer == pytest.approx(0.5)
    assert not within(start, one, other)


def test_number_of_another_kind_must_be_the_same() -> None:
    one, other = (state([1.0, 0.0], more={"run/x": np.asarray(value)}) for value in (1.0, 1.1))

    assert deviation(one, one, other).unequal == ("run/x",)


def test_long_segment_is_not_compared() -> None:
    end, other = state([1.0, 0.0]), state([1.1, 0.0])

    assert within(START, end, end)
    with pytest.raises(RunError, match=f"the segment has {LONG} steps, and after more than 10"):
        within(START, end, other, steps=LONG)


def test_how_long_a_segment_is_is_not_the_claims_word() -> None:
    """Not by a step that says it is too long to be compared, and not by one that is no number."""
    claimed = state([5.0, 0.0], step=1000)
    nonsense = State({**claimed.tensors, "run/step": np.asarray(math.nan)})

    for one in (claimed, nonsense):
        assert not within(START, one, state([1.0, 0.0]))
        assert not within(START, one, state([1.0, 0.0]), steps=LONG)


SEED = {"weights/drop/seed": np.asarray([1, 2], np.uint32)}


@pytest.mark.parametrize(
    "other",
    [
        state([1.0, 0.0], step=2),
        state([1.0]),
        State({k: v for k, v in state([1.0, 0.0]).tensors.items() if "kernel" not in k}),
        state([1.0, 0.0], more={"weights/x": np.zeros(1, np.float32)}),
        state([1.0, 0.0], more=SEED),
        state([1.0, 0.0], more={"run/best": np.asarray(0.5)}),
    ],
    ids=["counter", "shape", "missing", "more", "seeds", "best"],
)
def test_what_must_be_equal_proves_it_of_long_segments_too(other: State) -> None:
    claimed = state([1.1, 0.0])

    assert not within(START, claimed, other, steps=LONG)
    assert not within(START, other, claimed, steps=LONG)


def ended(step: int, stop: int, best: float, waited: int) -> State:
    more = {
        "run/stop": np.asarray(stop, np.int64),
        "run/best": np.asarray(best),
        "run/waited": np.asarray(waited, np.int64),
        "optimizer/00000.iteration": np.asarray(step, np.int64),
    }
    return state([1.0 + step, 0.0], step=step, more=more)


@pytest.mark.parametrize(
    ("claimed", "is_open"),
    [
        # What was validated may be better or worse elsewhere, and end the run elsewhere.
        (ended(100, 0, 0.5, 1), True),
        (ended(100, 0, 0.4, 0), True),
        (ended(60, 1, 0.5, 2), True),
        (ended(60, 0, 0.5, 1), False),
        (State({**ended(100, 0, 0.5, 1).tensors, "weights/x": np.zeros(1)}), False),
    ],
)
def test_where_a_long_segment_stops_early_is_up_to_its_figures(
    claimed: State, is_open: bool
) -> None:
    start, found = ended(0, 0, math.nan, 0), ended(100, 0, 0.51, 0)

    if is_open:
        with pytest.raises(RunError, match="no comparison can tell them"):
            within(start, claimed, found, steps=100, stops_early=True)
    else:
        assert not within(start, claimed, found, steps=100, stops_early=True)


@pytest.mark.parametrize(
    ("claimed", "found", "terms"),
    [
        # The same rate was too high for both, a step later there.
        (ended(57, 2, math.nan, 0), ended(58, 2, math.nan, 0), {"steps": 100}),
        (ended(100, 0, math.nan, 0), ended(58, 2, math.nan, 0), {"steps": 100}),
        (ended(57, 2, math.nan, 0), ended(100, 0, math.nan, 0), {"steps": 100}),
        (ended(7, 2, math.nan, 0), ended(8, 2, math.nan, 0), {"steps": 10}),
        (ended(10, 0, math.nan, 0), ended(8, 2, math.nan, 0), {"steps": 10}),
        # What was validated was as close there, and decided otherwise.
        (ended(60, 1, 0.5, 2), ended(80, 1, 0.5, 2), {"steps": 100, "stops_early": True}),
        (ended(6, 1, 0.5, 2), ended(8, 1, 0.5, 2), {"steps": 10, "stops_early": True}),
        (ended(10, 0, 0.5, 1), ended(10, 0, 0.5, 0), {"steps": 10, "stops_early": True}),
    ],
)
def test_honest_runs_may_end_at_different_steps(
    claimed: State, found: State, terms: dict[str, Any]
) -> None:
    with pytest.raises(RunError, match="what ends a run was decided otherwise"):
        within(ended(0, 0, math.nan, 0), claimed, found, **terms)


@pytest.mark.parametrize(
    ("claimed", "found", "terms"),
    [
        # After ten sound steps nobody else's numbers overflow.
        (ended(7, 2, math.nan, 0), ended(10, 0, math.nan, 0), {"steps": 10}),
        (ended(7, 1, math.nan, 0), ended(8, 2, math.nan, 0), {"steps": 10}),
        (ended(60, 1, math.nan, 0), ended(58, 2, math.nan, 0), {"steps": 100}),
        (ended(101, 2, math.nan, 0), ended(58, 2, math.nan, 0), {"steps": 100}),
        (ended(-1, 2, math.nan, 0), ended(58, 2, math.nan, 0), {"steps": 100}),
        # Whoever goes on has taken all steps, and has numbers.
        (ended(60, 0, math.nan, 0), ended(58, 2, math.nan, 0), {"steps": 100}),
        (
            State(
                {**ended(57, 2, 0.5, 0).tensors, "weights/out/kernel": np.full(2, math.inf, "f4")}
            ),
            ended(58, 2, math.nan, 0),
            {"steps": 100},
        ),
    ],
)
def test_an_end_that_no_honest_run_has_is_wrong(
    claimed: State, found: State, terms: dict[str, Any]
) -> None:
    assert not within(ended(0, 0, math.nan, 0), claimed, found, **terms)


def test_what_is_over_stays_over() -> None:
    over = ended(57, 2, math.nan, 0)

    assert within(over, over, over)
    assert not within(over, ended(58, 2, math.nan, 0), over, steps=100)


def test_weights_that_are_no_numbers_are_wrong_after_any_number_of_steps() -> None:
    assert not within(START, state([math.inf, 0.0]), state([1.0, 0.0]), steps=LONG)


def test_without_a_rule_nothing_stops_early() -> None:
    start, found = ended(0, 0, math.nan, 0), ended(100, 0, math.nan, 0)

    assert not within(start, ended(60, 1, math.nan, 0), found, steps=100)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (state([1.0, 2.0]), True),
        (state([1.0, 2.00001]), True),
        (state([1.0, 2.001]), False),
        (state([1.0, 2.0, 0.0]), False),
        (state([1.0, math.nan]), False),
        (state([1.0, 2.0], slot=[1e-9]), False),
        (state([1.0, 2.0], step=2), False),
        (state([1.0, 2.0], more=SEED), False),
    ],
    ids=["same", "rounded", "other", "shape", "no number", "memory", "counter", "more"],
)
def test_a_run_begins_with_the_weights_of_its_seed(other: State, expected: bool) -> None:
    assert begins_alike(other, state([1.0, 2.0])) is expected


def test_weights_that_begin_with_nothing_are_nothing_anywhere() -> None:
    assert begins_alike(START, START)
    assert not begins_alike(state([1e-30, 0.0]), START)
