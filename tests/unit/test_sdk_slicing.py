"""Predictions are cut for workers at batches, and for audits into segments."""

import pytest

from trainyard.sdk.slicing import Slice, segment_length, slices_of


@pytest.mark.parametrize(
    ("records", "batch", "workers", "sizes"),
    [
        (100, 10, 1, [100]),
        (100, 10, 3, [40, 30, 30]),
        (101, 10, 3, [40, 40, 21]),
        (7, 32, 4, [7]),
        (64, 32, 4, [32, 32]),
        (65, 32, 4, [32, 32, 1]),
    ],
)
def test_slices_are_even_to_a_batch(
    records: int, batch: int, workers: int, sizes: list[int]
) -> None:
    assert [one.count for one in slices_of(records, batch, workers)] == sizes


def test_slices_follow_each_other_and_begin_where_batches_do() -> None:
    for records in range(1, 60):
        for batch in range(1, 9):
            for workers in range(1, 7):
                found = slices_of(records, batch, workers)
                assert all(one.first % batch == 0 for one in found)
                numbers = [n for one in found for n in range(one.first, one.first + one.count)]
                assert numbers == list(range(records))
                assert 1 <= len(found) <= workers


def test_a_slice_is_told_by_its_first_and_last_record() -> None:
    assert Slice(64, 36).title == "records 64 to 99"


@pytest.mark.parametrize(
    ("records", "batch", "row", "steps"),
    [
        # So few batches that each is a segment, and so can be drawn.
        (100, 10, 10, 1),
        (10_000, 10, 10, 20),
        # A picture for each record: fewer at once.
        (10_000, 10, 1 << 20, 1),
        (1_000_000, 32, 256 * 256, 2),
    ],
)
def test_segments_are_many_and_not_too_large(
    records: int, batch: int, row: int, steps: int
) -> None:
    assert segment_length(records, batch, row) == steps
