"""The gas figures: what counts as a change, and which goals are met."""

import json
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.gas_figures import POCO, Growth, Life, Spent, figures, goals, typical
from benchmarks.gas_snapshot import Change, changes, check_snapshot, write_snapshot


def life(**gas: int) -> Life:
    return {function: Spent(1, spent) for function, spent in gas.items()}


def lives(replicate_share: float = 0.3, audit: int = 1_000_000) -> dict[str, Life]:
    """Lives as they are measured, of round sums."""
    return {
        **{f"replicate_{n}": life(post=int(poco * replicate_share)) for n, poco in POCO.items()},
        **{f"audit_{n}": life(post=audit) for n in POCO},
        "absence_1": life(post=200_000, expire=77_000),
    }


def growth(late: int) -> dict[str, Growth]:
    return {"Replicate": Growth(life(post=1_000_000), life(post=late))}


@pytest.mark.parametrize("after", [995_001, 1_000_000, 1_004_999])
def test_a_change_within_half_a_percent_is_none(after: int) -> None:
    assert changes({"audit_1": {"post": 1_000_000}}, {"audit_1": {"post": after}}) == []


@pytest.mark.parametrize("after", [994_999, 1_005_001])
def test_growing_and_shrinking_are_changes(after: int) -> None:
    found = changes({"audit_1": {"post": 1_000_000}}, {"audit_1": {"post": after}})

    assert found == [Change("audit_1", "post", 1_000_000, after)]


@pytest.mark.parametrize(("after", "found"), [(1_019_999, 0), (1_020_001, 1)])
def test_draws_are_chance_and_may_change_by_two_percent(after: int, found: int) -> None:
    assert len(changes({"audit_1": {"draw": 1_000_000}}, {"audit_1": {"draw": after}})) == found


def test_functions_and_lives_that_come_or_go_are_changes() -> None:
    found = changes(
        {"audit_1": {"post": 1, "ping": 2}}, {"audit_1": {"post": 1}, "new": {"post": 3}}
    )

    assert found == [Change("audit_1", "ping", 2, None), Change("new", "post", None, 3)]


def test_check_passes_on_what_was_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "gas.json"
    write_snapshot(lives(), path)

    check_snapshot(lives(), Console(), path)

    assert "matches (7 lives" in capsys.readouterr().out
    assert json.loads(path.read_text())["absence_1"] == {"post": 200_000, "expire": 77_000}


@pytest.mark.parametrize(("audit", "word"), [(1_100_000, "grown"), (900_000, "shrunk")])
def test_check_fails_with_the_way_to_refresh(tmp_path: Path, audit: int, word: str) -> None:
    path = tmp_path / "gas.json"
    write_snapshot(lives(), path)

    with pytest.raises(SystemExit, match=rf"gas has {word}.*'make snapshots'"):
        check_snapshot(lives(audit=audit), Console(), path)


def test_typical_life_is_the_median_of_every_function() -> None:
    drawn = [life(post=10, draw=draw) for draw in (90, 70, 71)]

    assert typical(drawn) == life(post=10, draw=71)


@pytest.mark.parametrize(("share", "met"), [(0.4, True), (0.41, False)])
def test_replicate_costs_at_most_two_fifths_of_poco(share: float, met: bool) -> None:
    reached = goals(lives(replicate_share=share), growth(1_000_000))

    assert [goal.met for goal in reached[:3]] == [met] * 3


@pytest.mark.parametrize(("audit", "met"), [(POCO[3] - 1, True), (POCO[3], False)])
def test_audit_costs_less_than_a_consensus_of_three(audit: int, met: bool) -> None:
    assert goals(lives(audit=audit), growth(1_000_000))[3].met is met


@pytest.mark.parametrize(
    ("late", "met"), [(979_999, False), (980_001, True), (1_019_999, True), (1_020_001, False)]
)
def test_gas_stays_within_two_percent(late: int, met: bool) -> None:
    assert goals(lives(), growth(late))[4].met is met


def test_figures_have_their_names() -> None:
    assert figures(lives(), growth(1_010_000)) == {
        "gas_replicate_ratio_1": 0.3,
        "gas_replicate_ratio_3": 0.3,
        "gas_replicate_ratio_5": 0.3,
        "gas_audit_1": 1_000_000,
        "gas_audit_3": 1_000_000,
        "gas_failed_cleanup": 77_000,
        "gas_growth_10_to_10000": 1.01,
    }
