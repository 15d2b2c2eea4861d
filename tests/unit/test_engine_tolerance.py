"""The comparison of ends of a segment that were computed on unlike machines."""

import math
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

from trainyard.engine.errors import RunError
from trainyard.engine.state import State, Tensor
from trainyard.engine.tolerance import DEFAULT_THRESHOLD, LONGEST_SEGMENT, deviation, within


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


def test_deviation_is_a_share_of_the_way() -> None:
    found = deviation(START, state([3.0, 4.0]), state([3.0, 4.5]))

    assert found.weights == pytest.approx(0.1)
    assert found.tensors["weights/out/kernel"] == pytest.approx(0.1)
    assert found.optimizer == 0.0
    assert found.largest == found.weights


def test_same_ends_do_not_deviate() -> None:
    assert deviation(START, state([3.0, 4.0]), state([3.0, 4.0])).largest == 0.0


def test_weights_count_together() -> None:
    """A small tensor that strays is seen by itself, and weighs little among large ones."""
    large = np.full(10_000, 1.0, np.float32)
    start = state([0.0], more={"weights/a/kernel": np.zeros(10_000, np.float32)})
    claimed = state([1.0], more={"weights/a/kernel": large})
    found = deviation(start, claimed, state([1.5], more={"weights/a/kernel": large}))

    assert found.tensors["weights/out/kernel"] == pytest.approx(0.5)
    assert found.weights == pytest.approx(0.005, rel=1e-3)


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
    steps = LONGEST_SEGMENT + 1
    end, too_far = (state([1.0, 0.0], step=1 + one) for one in (LONGEST_SEGMENT, steps))

    assert within(START, end, end)
    with pytest.raises(RunError, match=f"the segment has {steps} steps, and after more than 10"):
        within(START, too_far, too_far)
