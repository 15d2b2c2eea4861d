"""Figures of a run as TensorBoard reads them, without TensorFlow."""

import math
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import (  # type: ignore[import-untyped]
    EventFileLoader,
)

from trainyard.engine.energy import Energy
from trainyard.engine.journal import Entry, Measured, Validated
from trainyard.engine.summaries import Summaries


def entry(number: int, loss: float, validated: tuple[Validated, ...] = ()) -> Entry:
    return Entry(
        number=number,
        state="ab" * 32,
        step=300 * number,
        trained=Measured(loss=loss, metrics={"accuracy": 0.5}, examples=64),
        validated=validated,
        train_s=0.5,
        energy=Energy(joules=2.0, by="default"),
    )


def scalars_in(folder: Path) -> dict[tuple[str, int], float]:
    """By name and step, as TensorBoard's own reader has them."""
    found = {}
    for path in sorted(folder.iterdir()):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                assert value.metadata.plugin_data.plugin_name == "scalars"
                found[value.tag, event.step] = value.tensor.float_val[0]
    return found


def test_all_figures_of_a_segment_are_shown(tmp_path: Path) -> None:
    tried = Validated(loss=0.25, metrics={"accuracy": 0.75}, examples=8, epoch=0, step=280)

    Summaries(tmp_path).write(entry(1, 1.5, (tried,)))

    assert scalars_in(tmp_path) == {
        ("loss", 300): 1.5,
        ("accuracy", 300): 0.5,
        ("examples_per_s", 300): 128.0,
        ("energy_j_estimated", 300): 2.0,
        ("val_loss", 281): 0.25,
        ("val_accuracy", 281): 0.75,
    }


def test_run_that_goes_on_adds_to_what_is_there(tmp_path: Path) -> None:
    Summaries(tmp_path).write(entry(1, 1.0))
    again = Summaries(tmp_path)

    again.write(entry(2, 0.5))
    again.write(entry(3, 0.25))

    losses = [value for (name, _), value in scalars_in(tmp_path).items() if name == "loss"]
    assert losses == [1.0, 0.5, 0.25]
    assert len(list(tmp_path.iterdir())) == 2


def test_nothing_is_written_of_a_state_without_figures(tmp_path: Path) -> None:
    Summaries(tmp_path / "tensorboard").write(Entry(number=0, state="ab" * 32, step=0))

    assert list(tmp_path.iterdir()) == []


def test_figures_that_float32_cannot_hold_are_endless(tmp_path: Path) -> None:
    """They may be a stranger's, and a run does not end by them."""
    summaries = Summaries(tmp_path)
    for number, loss in enumerate((sys.float_info.max, -sys.float_info.max, math.nan)):
        summaries.write(entry(number, loss))

    shown = scalars_in(tmp_path)

    assert [shown["loss", 0], shown["loss", 300]] == [math.inf, -math.inf]
    assert math.isnan(shown["loss", 600])
