"""Who agreed with whom."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainyard.protocol.tally import best_entry, lead_of, majority, median, outliers

A, B, C = b"a" * 32, b"b" * 32, b"c" * 32


@pytest.mark.parametrize(
    ("claims", "lead", "votes"),
    [
        ([A], 0, 1),
        ([None, A], 1, 1),
        ([A, B, B], 1, 2),
        ([B, A, A, B], 0, 2),
        ([None, C, A, A, None, C], 1, 2),
        ([None, None], 0, 0),
    ],
)
def test_largest_group_leads(claims: list[bytes | None], lead: int, votes: int) -> None:
    """Rules T8, T9: of equal groups the one with the lowest slot leads."""
    assert lead_of(claims) == (lead, votes)


@pytest.mark.parametrize(
    ("scores", "middle"), [([7], 7), ([9, 1], 1), ([5, 9, 1], 5), ([4, 3, 2, 1], 2)]
)
def test_median_of_an_even_number_is_the_lower(scores: list[int], middle: int) -> None:
    """Rule P6: the median of the revealed scores counts."""
    assert median(scores) == middle


@given(st.lists(st.integers(0, 2**32 - 1), min_size=1))
def test_half_of_the_scores_are_no_better_than_the_median(scores: list[int]) -> None:
    """Rule P6: no minority lifts or sinks a median past what the others gave."""
    middle = median(scores)

    assert middle in scores
    assert 2 * sum(score <= middle for score in scores) >= len(scores)
    assert 2 * sum(score >= middle for score in scores) >= len(scores)


@pytest.mark.parametrize(
    ("rows", "entries", "best"),
    [
        ([[900, 950]], [0, 1], (1, 950)),
        ([[900, 900]], [0, 1], (0, 900)),
        ([[1, 9, 5], [2, 8, 6], [3, 7, 7]], [0, 1, 2], (1, 8)),
        ([[1, 9, 5]], [0, 2], (2, 5)),
    ],
)
def test_best_entry_has_the_highest_median(
    rows: list[list[int]], entries: list[int], best: tuple[int, int]
) -> None:
    """Rule P5: of equal medians the entry with the lowest slot wins; hidden entries never do."""
    assert best_entry(rows, entries) == best


@pytest.mark.parametrize(
    ("rows", "seats", "wrong"),
    [
        ({0: [100], 1: [105], 2: [95]}, 3, set()),
        ({0: [100], 1: [105], 2: [111]}, 3, {2}),
        ({0: [100], 1: [200], 2: [300]}, 3, set()),
        ({0: [100], 2: [300]}, 3, set()),
        ({0: [100, 0], 1: [100, 0], 2: [100, 50]}, 3, {2}),
    ],
)
def test_outlier_stands_against_most_of_the_panel(
    rows: dict[int, Sequence[int]], seats: int, wrong: set[int]
) -> None:
    """Rule A9: off the tolerance, while more than half of the whole panel is within it."""
    entries = range(len(rows[0]))

    assert outliers(rows, entries, tolerance=5, seats=seats) == wrong


def test_entries_that_were_not_revealed_make_nobody_wrong() -> None:
    """Rule A9: there was nothing to measure."""
    rows = {0: [100, 0], 1: [100, 0], 2: [100, 999]}

    assert outliers(rows, [0], tolerance=5, seats=3) == set()


@pytest.mark.parametrize(
    ("answers", "committee", "truth"),
    [
        ([A, A, B], 3, A),
        ([A, B, C], 3, None),
        ([A], 3, None),
        ([A, A], 3, A),
        ([A, A, B], 5, None),
        ([], 3, None),
    ],
)
def test_majority_is_of_the_whole_committee(
    answers: list[bytes], committee: int, truth: bytes | None
) -> None:
    """Rule D4: silent referees count against every answer."""
    assert majority(answers, committee) == truth
