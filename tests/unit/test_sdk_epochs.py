"""Points that workers tell, as the calls that Keras makes of its callbacks."""

from typing import Any

import pytest

from trainyard.protocol.manifest import Plan
from trainyard.sdk.epochs import BatchDone, EpochBegun, EpochDone, Epochs, Point, Told

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
