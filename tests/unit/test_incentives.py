"""The sums behind the threat model."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest

from scripts.incentives import rewrite
from trainyard.protocol.draws import auditable, draw_segments
from trainyard.protocol.incentives import (
    Task,
    block,
    detection,
    detection_theory,
    gain_from_cheating,
    spread,
    stake_for_honesty,
    verdict,
)

PAGE = Path(__file__).resolve().parents[2] / "docs" / "threat-model.md"


def apart(drawn: tuple[int, ...], length: int) -> bool:
    return all((b - a) % length not in (1, length - 1) for a, b in combinations(drawn, 2))


@pytest.mark.parametrize(("length", "audits"), [(4, 2), (6, 3), (7, 2), (9, 4), (12, 5)])
@pytest.mark.parametrize("place", [spread, block])
@pytest.mark.parametrize("fraction", [0.01, 0.3, 0.6])
def test_detection_counts_every_draw(
    length: int, audits: int, place: Callable[[int, float], list[bool]], fraction: float
) -> None:
    cheated = place(length, fraction)
    draws = [drawn for drawn in combinations(range(length), audits) if apart(drawn, length)]
    hits = sum(any(cheated[segment] for segment in drawn) for drawn in draws)
    assert detection(cheated, audits) == pytest.approx(hits / len(draws))


def test_one_audit_finds_the_cheated_fraction() -> None:
    assert detection(block(50, 0.2), 1) == pytest.approx(detection_theory(0.2, 1)) == 0.2


def test_an_auditor_that_belongs_to_the_cheat_finds_nothing() -> None:
    assert detection(block(50, 1.0), 4, honest_pool=0.0) == 0.0


def test_an_honest_pool_always_upholds_the_truth() -> None:
    assert verdict(Task(1, 0.8, 1, 2)) == 1.0


def test_the_least_stake_leaves_no_gain() -> None:
    cheated = block(100, 0.5)
    poor = Task(1, 0.8, 0, 2, honest_pool=0.5)
    stake = stake_for_honesty(poor, cheated)
    assert stake > 0
    assert gain_from_cheating(Task(1, 0.8, stake, 2, honest_pool=0.5), cheated) == pytest.approx(0)


@pytest.mark.parametrize(
    ("segments", "audits", "borne"), [(1, 3, 1), (2, 2, 1), (3, 2, 1), (4, 2, 2), (100, 7, 7)]
)
def test_a_trace_bears_half_as_many_audits_as_segments(
    segments: int, audits: int, borne: int
) -> None:
    """Rule A4."""
    assert auditable(segments, audits) == borne


@pytest.mark.parametrize(("length", "count"), [(1, 1), (2, 1), (4, 2), (6, 3), (31, 15)])
def test_drawn_segments_are_never_neighbours(length: int, count: int) -> None:
    """Rule A4."""
    for number in range(200):
        drawn = draw_segments(number.to_bytes(32, "big"), length, count)
        assert len(set(drawn)) == count
        assert all(0 <= segment < length for segment in drawn)
        assert length < 4 or apart(tuple(drawn), length)


def test_every_segment_is_equally_likely() -> None:
    """Rule A4: a chi-square test over fixed seeds, 99.9% point of 7 degrees of freedom."""
    length, count, draws = 8, 3, 4_000
    seen = [0] * length
    for number in range(draws):
        for segment in draw_segments(number.to_bytes(32, "big"), length, count):
            seen[segment] += 1
    expected = draws * count / length
    assert sum((times - expected) ** 2 / expected for times in seen) < 24.32


def test_the_threat_model_is_up_to_date() -> None:
    page = PAGE.read_text()
    assert rewrite(page) == page
