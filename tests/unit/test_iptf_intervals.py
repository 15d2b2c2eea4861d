"""Sets of byte ranges, against a set of single bytes."""

from hypothesis import given
from hypothesis import strategies as st

from trainyard.iptf.intervals import Intervals

RANGES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=12)


def _bytes(ranges: list[tuple[int, int]]) -> set[int]:
    return {at for start, end in ranges for at in range(start, end)}


@given(RANGES)
def test_ranges_are_merged_and_hold_just_the_bytes_that_were_added(
    ranges: list[tuple[int, int]],
) -> None:
    intervals = Intervals(ranges)

    assert _bytes(list(intervals)) == _bytes(ranges)
    assert intervals.total() == len(_bytes(ranges))
    edges = [edge for pair in intervals for edge in pair]
    assert edges == sorted(set(edges)), "they neither touch nor overlap"


@given(RANGES, st.integers(0, 60), st.integers(0, 60))
def test_questions_are_answered_as_for_single_bytes(
    ranges: list[tuple[int, int]], start: int, size: int
) -> None:
    intervals, held = Intervals(ranges), _bytes(ranges)

    assert intervals.covers(start, size) == all(at in held for at in range(start, size))
    missing = [at for at in range(start, size) if at not in held]
    gap = intervals.first_gap(size, start)
    if not missing:
        assert gap is None
    else:
        assert gap is not None
        assert gap[0] == missing[0]
        assert all(at not in held for at in range(*gap))
        assert gap[1] == size or gap[1] in held
