"""Plans of rounds: which segment is whose, and what it is computed from."""

from typing import Any

import pytest

from tests.engine.manifests import classifier, manifest
from trainyard.protocol.manifest import Local, Manifest, Merge, RoundsPlan


def rounds(workers: int = 2, *, inner: str = "kept", **training: Any) -> RoundsPlan:
    parts = {"local_steps": 10, "inner": inner}
    plan = manifest(**{"mode": "rounds", "workers": workers, "rounds": parts, **training}).plan
    assert isinstance(plan, RoundsPlan)
    return plan


@pytest.mark.parametrize(
    ("workers", "steps", "segments", "last"),
    [(1, 30, 6, (20, 30)), (2, 30, 9, (20, 30)), (2, 31, 12, (30, 31)), (4, 9, 5, (0, 9))],
)
def test_a_round_is_a_segment_for_each_worker_and_one_for_the_merge(
    workers: int, steps: int, segments: int, last: tuple[int, int]
) -> None:
    plan = rounds(workers, until={"steps": steps})

    assert plan.segments == segments
    assert plan.before(plan.rounds) == segments
    assert [plan.bounds(segments - 1 - place) for place in range(workers + 1)] == (
        [last] * (workers + 1)
    )
    parts = [plan.part(segment) for segment in range(segments)]
    assert parts[: workers + 1] == [*(Local(0, slot) for slot in range(workers)), Merge(0)]
    assert [plan.segment(part) for part in parts] == list(range(segments))


@pytest.mark.parametrize(
    ("segment", "absent", "inputs"),
    [
        (0, (), (0,)),
        (1, (), (0,)),
        (2, (), (0, 1, 2)),
        (3, (), (3, 1)),
        (4, (), (3, 2)),
        (5, (), (3, 4, 5)),
        (6, (), (6, 4)),
        (7, (), (6, 5)),
        (7, (5,), (6, 2)),
        (7, (5, 2), (6,)),
        (6, (5, 2), (6, 4)),
        # A merge is of all: that one was absent is what it has to know.
        (5, (5,), (3, 4, 5)),
    ],
)
def test_inputs_of_a_segment(
    segment: int, absent: tuple[int, ...], inputs: tuple[int, ...]
) -> None:
    assert rounds(until={"steps": 30}).inputs_of(segment, absent) == inputs


@pytest.mark.parametrize(("segment", "inputs"), [(0, (0,)), (4, (3,)), (5, (3, 4, 5)), (7, (6,))])
def test_part_that_begins_anew_is_of_the_global_state_alone(
    segment: int, inputs: tuple[int, ...]
) -> None:
    assert rounds(inner="fresh", until={"steps": 30}).inputs_of(segment) == inputs


def test_segments_are_called_by_whose_they_are() -> None:
    plan = rounds(until={"steps": 30})

    assert [plan.title(segment) for segment in (4, 5)] == [
        "segment 4 (worker 1 in round 1)",
        "segment 5 (merge of round 1)",
    ]
    assert manifest().plan.title(4) == "segment 4"


def test_inputs_of_a_chain_are_the_states_before() -> None:
    plan = manifest(until={"steps": 30}).plan

    assert [plan.inputs_of(segment) for segment in range(3)] == [(0,), (1,), (2,)]


@pytest.mark.parametrize("segment", [-1, 9])
def test_segments_out_of_the_plan_are_refused(segment: int) -> None:
    plan = rounds(until={"steps": 30})

    for ask in (plan.bounds, plan.part, plan.inputs_of):
        with pytest.raises(IndexError, match=f"segment {segment} of a plan of 9"):
            ask(segment)
    with pytest.raises(IndexError, match="slot 3 of 2"):
        plan.segment(Local(0, 3))


def test_a_segment_has_the_steps_of_a_round() -> None:
    document = classifier(mode="rounds", workers=2, rounds={"local_steps": 7})
    del document["training"]["steps_per_segment"]

    left_out = Manifest.of(document)

    assert left_out.training.steps_per_segment == 7
    assert Manifest.parse(left_out.canonical) == left_out
    with pytest.raises(ValueError, match=r"steps_per_segment: .* use 7, or leave it out"):
        manifest(mode="rounds", workers=2, rounds={"local_steps": 7})


def test_rounds_do_not_stop_early() -> None:
    with pytest.raises(ValueError, match=r"early_stopping: mode 'rounds' does not stop early"):
        rounds(early_stopping={"monitor": "loss"})


@pytest.mark.parametrize(
    ("workers", "said", "quorum"), [(1, {}, 1), (2, {}, 1), (5, {}, 3), (4, {"quorum": 4}, 4)]
)
def test_round_needs_half_of_its_workers_or_what_is_said(
    workers: int, said: dict[str, int], quorum: int
) -> None:
    document = manifest(
        mode="rounds", workers=workers, batch=60, rounds={"local_steps": 10, **said}
    )

    assert document.training.rounds is not None
    assert document.training.rounds.quorum == quorum
    assert f'"quorum":{quorum}'.encode() in document.canonical


@pytest.mark.parametrize("quorum", [0, 3])
def test_quorum_is_of_the_workers(quorum: int) -> None:
    with pytest.raises(ValueError, match=r"training\.rounds\.quorum: "):
        manifest(mode="rounds", workers=2, rounds={"local_steps": 10, "quorum": quorum})
