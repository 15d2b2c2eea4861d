"""Mode async: workers that wait for nobody, losses, and the score that stands in for a replay."""

import json
import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.engine.nets import NETS, manifest_of, source, write_data
from tests.engine.test_runs import killing, supervisor_here
from trainyard.cli.app import app
from trainyard.engine.counting import Stop
from trainyard.engine.errors import RunError
from trainyard.engine.events import Event, Finished, Joined, Restarted, Stepped
from trainyard.engine.journal import Journal
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.engine.scoring import Score
from trainyard.engine.state import State
from trainyard.protocol.manifest import Manifest

STEPS = 120
TEST_RECORDS = 40


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("data")
    test = write_data(folder / "test", TEST_RECORDS).train
    return replace(write_data(folder / "train"), test=test)


def manifest_with_test(**training: Any) -> Manifest:
    given = {"mode": "async", "workers": 2, "until": {"steps": STEPS}, "steps_per_segment": 40}
    document = json.loads(manifest_of("batch_norm", validation={"split": 0.25}).canonical)
    document["training"] |= {**given, **training}
    document["data"]["test"] = source(TEST_RECORDS)
    return Manifest.of(document)


@pytest.fixture(scope="module")
def undisturbed(
    files: Files, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Journal, list[Event]]:
    events: list[Event] = []
    folder = tmp_path_factory.mktemp("undisturbed")
    return run_local(manifest_with_test(), files, folder, events.append), events


def test_two_workers_learn(undisturbed: tuple[Journal, list[Event]]) -> None:
    journal, events = undisturbed

    assert [entry.step for entry in journal.entries] == [0, 40, 80, 120]
    assert {event.slot for event in events if isinstance(event, Joined)} == {0, 1}
    [iterations] = [
        value for name, value in journal.state(3).tensors.items() if name.endswith(".iteration")
    ]
    # No step was lost, and none came twice.
    assert iterations == STEPS
    score = Score.load(journal.folder)
    assert (score.records, score.figures.examples) == ("test", TEST_RECORDS)
    assert score.figures.metrics["accuracy"] > 0.9
    assert score.state == journal.entries[-1].state
    validated = [one.epoch for entry in journal.entries for one in entry.validated]
    assert validated == list(range(STEPS * 24 // 72))
    assert (journal.folder / "model.keras").exists()
    assert list((journal.folder / "tensorboard").iterdir())
