"""Estimates of how long a task takes, from what the machine was measured to do."""

import json
from pathlib import Path

import pytest

import tests.quiet_web3  # noqa: F401
from trainyard.engine.pacing import PROGRAMS, Paces, pacing_manifest
from trainyard.protocol.manifest import Manifest
from worker_agent.speed import Speed, estimate_hours, measured_speed, operations, read_speed

ROOT = Path(__file__).resolve().parents[2]
STEPS = {"least": 0.002, "convolution": 0.010, "product": 0.006, "recurrence": 0.020}
ONE = Paces(threads=1, start_s=4.0, step_s=STEPS)
SPEED = Speed(measured_at=1.0, cores=4, paces=ONE)


def example(**training: object) -> Manifest:
    document = json.loads((ROOT / "examples" / "mnist" / "lenet5.json").read_text())
    document["training"] |= training
    return Manifest.of(document)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_was_measured_comes_out_again(name: str) -> None:
    """A step of a measured network is estimated by what it took."""
    manifest = pacing_manifest(name, 1)
    steps = manifest.plan.steps
    nothing = ONE.model_copy(update={"step_s": dict.fromkeys(STEPS, 0.0)})
    free = Speed(measured_at=1.0, cores=4, paces=nothing)
    # Without what is the same for all: getting ready.
    took_s = (estimate_hours(manifest, SPEED) - estimate_hours(manifest, free)) * 3600 / steps

    assert took_s == pytest.approx(STEPS[name], rel=0.2)


def test_more_steps_take_longer_and_more_workers_take_a_part_each() -> None:
    short, long = (example(until={"steps": steps}) for steps in (1_000, 2_000))
    shared = example(until={"steps": 2_000}, mode="sync", workers=2, batch=100)

    assert estimate_hours(short, SPEED) < estimate_hours(shared, SPEED)
    assert estimate_hours(shared, SPEED) < estimate_hours(long, SPEED) + 2_000 * 0.01 / 3600


def test_a_record_that_is_only_looked_at_takes_a_third_of_a_trained_one() -> None:
    """Three million of them after each of the thousand steps, which are an epoch each."""
    document = json.loads(example(batch=100, until={"steps": 1_000}).canonical)
    looked_at = document["data"]["train"] | {"records": 3_000_000}
    document["data"]["train"]["records"] = 100
    document["training"]["validation"] = {"source": looked_at}
    validated, longer = Manifest.of(document), example(batch=100, until={"steps": 1_000 * 10_001})
    lean = SPEED.model_copy(
        update={"paces": ONE.model_copy(update={"step_s": STEPS | {"least": 0.0}})}
    )

    assert estimate_hours(validated, lean) == pytest.approx(estimate_hours(longer, lean))


def test_threads_help_as_far_as_there_are_cores() -> None:
    assert SPEED.gain(1) == 1
    assert SPEED.gain(2) < SPEED.gain(4) == SPEED.gain(8)
    assert estimate_hours(example(threads=4), SPEED) < estimate_hours(example(threads=1), SPEED)


def test_who_gives_a_task_half_a_core_takes_twice_as_long() -> None:
    manifest = example(threads=1)
    assert estimate_hours(manifest, SPEED, 0.5) == 2 * estimate_hours(manifest, SPEED)
    # Four threads use up the time of two cores in half of it, and computed less than twice as much.
    assert SPEED.gain(4, 2) == SPEED.gain(4) / 2 < SPEED.gain(2, 2) == SPEED.gain(2)
    assert estimate_hours(manifest, SPEED, 4) == estimate_hours(manifest, SPEED)


def test_layers_are_counted_by_their_kind() -> None:
    found = operations(example())
    # Three passes of two operations: 150 weights at 28 x 28 places, 2416 at 10 x 10.
    assert found["convolution"] == 3 * 2 * (156 * 28 * 28 + 2416 * 10 * 10)
    assert found["product"] == 3 * 2 * (400 * 120 + 120 + 120 * 84 + 84 + 84 * 10 + 10)
    assert found["recurrence"] == 0


def test_measurement_is_kept_and_a_damaged_one_is_none(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    path.write_text(SPEED.model_dump_json())
    assert measured_speed(path) == SPEED
    path.write_text('{"operations_per_s": 1e9}')
    assert read_speed(path) is None
    assert read_speed(tmp_path / "none") is None
