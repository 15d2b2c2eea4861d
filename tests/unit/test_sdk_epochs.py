"""Points that workers tell, as the calls that Keras makes of its callbacks."""

from typing import Any

import pytest

from trainyard.protocol.manifest import Plan, RoundsPlan
from trainyard.sdk.epochs import (
    BatchDone,
    EpochBegun,
    EpochDone,
    Epochs,
    Point,
    Told,
    states_at_ends,
)

WATCHED = ("loss", "accuracy", "val_loss", "val_accuracy")


def epochs(records: int = 40, batch: int = 10, steps: int = 8, segment: int = 2) -> Epochs:
    return Epochs(Plan(records, 0, batch, steps, segment), WATCHED)


def told(one: Epochs, *points: Point) -> list[Told]:
    return list(one.take(points))


def point(step: int, slot: int = 0, **values: Any) -> Point:
    return Point(slot, step, values)


def test_an_epoch_ends_when_the_next_is_heard_of() -> None:
    one = epochs()

    assert told(one, point(2, loss=3.0)) == [EpochBegun(0), BatchDone(0, 1, 2, {"loss": 3.0})]
    assert told(one, point(4, loss=1.0)) == [BatchDone(0, 3, 4, {"loss": 1.0})]
    assert told(one, point(6, loss=0.5)) == [
        EpochDone(0, {"loss": 2.0}),
        EpochBegun(1),
        BatchDone(1, 1, 6, {"loss": 0.5}),
    ]
    assert list(one.finish()) == [EpochDone(1, {"loss": 0.5})]


def test_whole_segments_count_more_than_single_steps() -> None:
    one = epochs(segment=4)

    told(one, point(1, loss=9.0), point(2, loss=8.0), point(4, loss=1.0, accuracy=0.5))

    [end] = [call for call in one.finish(4) if isinstance(call, EpochDone)]
    assert end == EpochDone(0, {"loss": 1.0, "accuracy": 0.5})


def test_a_segment_that_is_told_twice_counts_once() -> None:
    one = epochs()

    told(one, point(2, loss=5.0), point(2, loss=3.0), point(4, loss=1.0))

    assert list(one.finish(4)) == [EpochDone(0, {"loss": 2.0})]


def test_validation_belongs_to_the_epoch_that_it_ended() -> None:
    one = epochs()

    calls = told(one, point(4, loss=1.0), point(4, val_loss=0.9), point(6, loss=0.5))

    assert EpochDone(0, {"loss": 1.0, "val_loss": 0.9}) in calls


def test_batches_that_reach_over_the_end_of_an_epoch() -> None:
    """Epochs follow each other without a gap: 15 records in steps of 10 end within step 2."""
    one = epochs(records=15, steps=3, segment=1)
    calls = told(one, point(1, loss=1.0), point(2, loss=2.0, val_loss=7.0), point(3, loss=3.0))

    ends = [call for call in [*calls, *one.finish()] if isinstance(call, EpochDone)]
    assert [end.epoch for end in ends] == [0, 1]
    assert ends[0].logs == {"loss": 1.0, "val_loss": 7.0}
    assert ends[1].logs == {"loss": 2.5}


def test_epochs_of_which_nobody_told_are_there_without_figures() -> None:
    assert list(epochs().finish()) == [
        EpochBegun(0),
        EpochDone(0, {}),
        EpochBegun(1),
        EpochDone(1, {}),
    ]


def test_a_run_that_stopped_early_has_fewer_epochs() -> None:
    ends = [call for call in epochs(steps=40).finish(8) if isinstance(call, EpochDone)]

    assert [end.epoch for end in ends] == [0, 1]


def test_what_the_run_does_not_report_is_no_log() -> None:
    assert told(epochs(), point(2, examples_per_s=100.0)) == []


@pytest.mark.parametrize(("records", "count", "batches"), [(40, 2, 4), (45, 2, 5), (80, 1, 8)])
def test_counts(records: int, count: int, batches: int) -> None:
    one = epochs(records=records)

    assert (one.count, one.batches) == (count, batches)


def test_epochs_that_are_asked_for_are_all_though_the_last_batch_reaches_beyond() -> None:
    """One epoch of 100 records in steps of 32 is four steps, and 28 records more."""
    one = Epochs(Plan(100, 0, 32, 4, 2), WATCHED, asked=1)

    calls = [*told(one, point(2, loss=2.0), point(4, loss=1.0)), *one.finish(4)]

    assert one.count == 1
    assert [call for call in calls if isinstance(call, EpochDone)] == [EpochDone(0, {"loss": 1.5})]


def test_an_epoch_waits_for_its_validation_that_comes_with_the_segment() -> None:
    """The epoch ends with step 4, and the segment in which that is with step 6."""
    one = epochs(steps=12, segment=3)

    assert told(one, point(3, loss=1.0))[-1] == BatchDone(0, 2, 3, {"loss": 1.0})
    assert told(one, point(5, loss=0.5)) == []
    calls = told(one, point(6, loss=0.4), point(4, val_loss=0.9))

    assert calls[0] == EpochDone(0, {"loss": 1.0, "val_loss": 0.9})
    assert [call.step for call in calls if isinstance(call, BatchDone)] == [5, 6]


def test_an_epoch_of_which_nobody_tells_is_not_waited_for_longer_than_the_segment() -> None:
    one = epochs(steps=12, segment=3)
    told(one, point(5, loss=0.5))

    calls = told(one, point(7, loss=0.4))

    assert EpochDone(0, {}) in calls
    assert [call.step for call in calls if isinstance(call, BatchDone)] == [5, 7]


def test_what_is_held_is_told_at_the_end() -> None:
    one = epochs(steps=6, segment=3)
    assert told(one, point(5, loss=0.5)) == []

    assert list(one.finish(6, {0: {"val_loss": 3.0}})) == [
        EpochBegun(0),
        EpochDone(0, {"val_loss": 3.0}),
        EpochBegun(1),
        BatchDone(1, 0, 5, {"loss": 0.5}),
        EpochDone(1, {"loss": 0.5}),
    ]


def test_a_worker_that_is_late_does_not_change_the_next_epoch() -> None:
    one = epochs()
    told(one, point(4, loss=1.0), point(6, loss=0.5))

    assert told(one, point(4, slot=1, loss=9.0)) == []
    assert list(one.finish(8)) == [EpochDone(1, {"loss": 0.5})]


def test_figures_that_were_told_come_before_those_computed_here() -> None:
    one = epochs()
    told(one, point(4, val_loss=0.9))

    assert one.untried(8) == [1]
    ends = [
        call
        for call in one.finish(8, {0: {"val_loss": 7.0}, 1: {"val_loss": 0.8}})
        if isinstance(call, EpochDone)
    ]
    assert [end.logs for end in ends] == [{"val_loss": 0.9}, {"val_loss": 0.8}]


@pytest.mark.parametrize(
    ("plan", "steps", "found"),
    [
        # Epochs of four steps, in segments that end with them.
        (Plan(40, 0, 10, 12, 2), 12, {0: 2, 1: 4, 2: 6}),
        # Of three steps: only every third epoch, and the last, which ends with the run.
        (Plan(40, 0, 10, 16, 3), 16, {2: 4, 3: 6}),
        # Epochs that end within a step: no segment but the last ends with one.
        (Plan(45, 0, 10, 9, 2), 9, {1: 5}),
        # Stopped early, after the second epoch.
        (Plan(40, 0, 10, 12, 2), 8, {0: 2, 1: 6, 2: 6}),
        # In rounds of three steps, of two workers: the merge after the end of the epoch.
        (RoundsPlan(40, 0, 10, 12, 3, 2), 12, {0: 6, 1: 9, 2: 12}),
        # In rounds of eight, two epochs end in the first.
        (RoundsPlan(40, 0, 10, 12, 8, 2), 12, {1: 3, 2: 6}),
    ],
)
def test_states_at_the_ends_of_epochs(plan: Plan, steps: int, found: dict[int, int]) -> None:
    count = -(-plan.steps * plan.batch // plan.train_records)

    assert states_at_ends(plan, range(count), steps) == found
