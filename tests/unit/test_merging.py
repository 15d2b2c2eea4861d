"""Deltas and merges of rounds: plain arithmetic, the same on every machine."""

import numpy as np
import pytest

from trainyard.engine.counting import Counters, Stop
from trainyard.engine.deltas import Compression, make_delta, read_delta
from trainyard.engine.errors import StateError
from trainyard.engine.leaves import Absence, Absences, absence_of, absent, absent_in, delta_of, kept
from trainyard.engine.merging import deltas_sent, merge
from trainyard.engine.state import State
from trainyard.protocol.manifest import RoundsPlan
from trainyard.protocol.manifest.training import Outer

PLAN = RoundsPlan(train_records=96, held_out=0, batch=24, steps=9, steps_per_segment=3, workers=2)
KERNEL, MEAN = "weights/d/kernel", "weights/n/mean"


def floats(*values: float) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.asarray(values, np.float32)


def globe(*kernel: float, speed: float = 0.0, mean: float = 0.0, step: int = 0) -> State:
    return State(
        {
            KERNEL: floats(*kernel),
            "outer/d/kernel": np.full(len(kernel), speed, np.float32),
            MEAN: floats(mean),
            "weights/n/seed_0": np.asarray([1, 2], np.int64),
            **Counters(step=step).tensors(),
        }
    )


def delta(before: State, *kernel: float, mean: float = 0.0, by: Compression = "none") -> State:
    return make_delta(before, {KERNEL: floats(*kernel), MEAN: floats(mean)}, by)


@pytest.mark.parametrize(
    ("ends", "rate", "momentum", "speed", "weight", "speed_after"),
    [
        # One worker went from 1 to 0.5, and is followed all the way.
        ([0.5], 1.0, 0.0, 0.0, 0.5, 0.5),
        # Of two, the mean.
        ([0.5, 0.0], 1.0, 0.0, 0.0, 0.25, 0.75),
        # g = 0.5, m = 0.5 * 1 + 0.5 = 1, w = 1 - 0.5 * (0.5 + 0.5 * 1)
        ([0.5], 0.5, 0.5, 1.0, 0.5, 1.0),
        # Nobody moved: the momentum goes on. m = 0.5, w = 1 - 1 * (0 + 0.5 * 0.5)
        ([1.0, 1.0, 1.0], 1.0, 0.5, 1.0, 0.75, 0.5),
    ],
)
def test_merge_is_a_nesterov_step(
    ends: list[float],
    rate: float,
    momentum: float,
    speed: float,
    weight: float,
    speed_after: float,
) -> None:
    before = globe(1.0, speed=speed)
    deltas = [delta(before, end) for end in ends]

    after = merge(before, deltas, 3, Outer(learning_rate=rate, momentum=momentum), "none")

    assert after.tensors[KERNEL].tolist() == [weight]
    assert after.tensors["outer/d/kernel"].tolist() == [speed_after]
    assert Counters.of(after).step == 3


def test_moving_statistics_are_the_mean() -> None:
    before = globe(1.0, mean=5.0)
    deltas = [delta(before, 1.0, mean=mean) for mean in (1.0, 2.0, 6.0)]

    after = merge(before, deltas, 3, Outer(), "none")

    assert after.tensors[MEAN].tolist() == [3.0]
    assert after.tensors["weights/n/seed_0"].tolist() == [1, 2]


def test_sums_are_in_the_order_of_slots() -> None:
    """In float32, (1e8 + 1) - 1e8 is nothing and (1e8 - 1e8) + 1 is one."""
    before = globe(0.0)
    parts = [delta(before, end) for end in (-1e8, -1.0, 1e8)]
    outer = Outer(learning_rate=1.0, momentum=0.0)

    one = merge(before, parts, 3, outer, "none")
    other = merge(before, [parts[0], parts[2], parts[1]], 3, outer, "none")

    assert one.tensors[KERNEL].tolist() == [0.0]
    assert other.tensors[KERNEL].tolist() == [np.float32(-1 / 3)]


@pytest.mark.parametrize(
    ("by", "moved", "read"),
    [
        ("none", [1 / 3, -7.0], [np.float32(1 / 3), -7.0]),
        # 2049 lies between two numbers of float16, and goes to the even one; 2051 as well.
        ("float16", [2049.0, 2051.0, 0.1], [2048.0, 2052.0, 0.0999755859375]),
        ("int8", [127.0, -3.4, 0.5, 1.5], [127.0, -3.0, 0.0, 2.0]),
        ("int8", [0.0, 0.0], [0.0, 0.0]),
    ],
)
def test_deltas_are_compressed(by: Compression, moved: list[float], read: list[float]) -> None:
    before = globe(*[0.0] * len(moved))

    sent = delta(before, *[-one for one in moved], mean=1 / 3, by=by)

    found = read_delta(before, sent, by)
    assert found[KERNEL].tolist() == read
    assert found[MEAN].tolist() == [np.float32(1 / 3)]
    assert sent.tensors["delta/d/kernel"].dtype == {"none": "f4", "float16": "f2", "int8": "i1"}[by]


def test_what_stands_still_is_not_sent_and_cannot_be_changed() -> None:
    before = globe(1.0, mean=3.0)
    ends = {KERNEL: floats(0.5), MEAN: floats(3.0)}

    sent = make_delta(before, ends, "none", still=["n"])

    assert sorted(sent.tensors) == ["delta/d/kernel"]
    plain = Outer(learning_rate=1.0, momentum=0.0)
    after = merge(before, [sent], 1, plain, "none", still=["n"])
    assert after.tensors[MEAN] == 3.0
    assert after.tensors[KERNEL] == 0.5
    forged = make_delta(before, ends | {MEAN: floats(9.0)}, "none")
    with pytest.raises(StateError, match="has moving/n/mean, which the model has not"):
        merge(before, [forged], 1, plain, "none", still=["n"])


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        ({}, "has no delta/d/kernel"),
        ({"delta/d/kernel": floats(1.0, 2.0)}, r"is float32 \[2\], and should be float32 \[1\]"),
        ({"delta/d/kernel": np.zeros(1, np.float16)}, "is float16"),
        ({"delta/d/kernel": floats(1.0)}, "has no moving/n/mean"),
        (
            {"delta/d/kernel": floats(1), "moving/n/mean": floats(1), "delta/x": floats(1)},
            "has delta/x, which the model has not",
        ),
    ],
)
def test_deltas_of_strangers_are_refused(
    sent: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.float32]]], reason: str
) -> None:
    with pytest.raises(StateError, match=reason):
        merge(globe(1.0), [State(sent)], 3, Outer(), "none")


@pytest.mark.parametrize("ends", [[], [3e38, 3e38]], ids=["nobody", "beyond all numbers"])
def test_rounds_of_no_numbers_end_the_run(ends: list[float]) -> None:
    before = globe(1.0, step=3)

    after = merge(before, [delta(before, end) for end in ends], 6, Outer(), "none")

    assert (Counters.of(after).stop, Counters.of(after).step) == (Stop.DIVERGED, 3)
    assert after.tensors[KERNEL].tolist() == [1.0]
    # What follows changes nothing.
    assert merge(after, [delta(before, 0.5)], 9, Outer(), "none") == after


def test_leaves_tell_of_deltas_and_absences() -> None:
    sent = delta(globe(1.0), 0.5)
    leaf = kept({"optimizer/x": floats(1.0)}, Counters(step=3), sent)
    away = absent(Counters(step=3), Absence.AWAY)

    assert (absence_of(leaf), delta_of(leaf)) == (None, sent.hash)
    assert (absence_of(away), delta_of(away)) == (Absence.AWAY, None)
    assert deltas_sent([away, leaf], {sent.hash: sent}) == {1: sent}
    with pytest.raises(StateError, match=f"the delta {sent.hash.hex()} of worker 0 is missing"):
        deltas_sent([leaf], {})
    with pytest.raises(StateError, match="names no delta"):
        delta_of(globe(1.0))
    with pytest.raises(StateError, match="an absence that no round knows"):
        absence_of(State({"run/absent": np.asarray(9, np.int64)}))


def test_absences_are_known_by_their_hashes() -> None:
    hashes = [f"{number:064x}" for number in range(10)]
    hashes[2] = absent_in(PLAN, 1, Absence.AWAY).hash.hex()
    hashes[5] = absent_in(PLAN, 4, Absence.LATE).hash.hex()
    # What was said of another round is no absence here.
    hashes[7] = hashes[2]
    # A global state is none.
    hashes[3] = hashes[2]

    absences = Absences(PLAN, hashes)

    assert [number for number in range(10) if number in absences] == [2, 5]
    assert absences.why(5) is Absence.LATE
    assert PLAN.inputs_of(7, absences) == (6,)
    assert PLAN.inputs_of(6, absences) == (6, 4)
