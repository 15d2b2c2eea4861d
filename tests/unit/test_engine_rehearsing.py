"""What a whole run takes, by a few steps of it that were rehearsed."""

import json
from typing import Any

import pytest

from tests.engine.nets import RECORDS, manifest_of, source
from trainyard.engine.costs import evaluated_records
from trainyard.engine.rehearsing import Rehearsal
from trainyard.protocol.manifest import Manifest

SPLIT = {"split": 0.25}
HELD_OUT = RECORDS // 4
# Of twelve steps of 24 records.
EPOCHS = 12 * 24 // (RECORDS - HELD_OUT)
OWN = {"source": source(1_000)}
ROUNDS = {"mode": "rounds", "workers": 2, "rounds": {"local_steps": 6}, "steps_per_segment": 6}


@pytest.mark.parametrize(
    ("training", "evaluated"),
    [
        ({}, 0),
        ({"validation": SPLIT}, EPOCHS * HELD_OUT),
        ({"validation": OWN}, 3 * 1_000),
        # Once for all epochs that end in one of the two rounds.
        ({"validation": OWN, **ROUNDS}, 2 * 1_000),
    ],
)
@pytest.mark.parametrize("tested", [0, 500])
def test_epochs_validate_all_records_and_the_end_tests_them(
    training: dict[str, Any], evaluated: int, tested: int
) -> None:
    document = json.loads(manifest_of(**training).canonical)
    if tested:
        document["data"]["test"] = source(tested)

    assert evaluated_records(Manifest.of(document)) == evaluated + tested


@pytest.mark.parametrize(("workers", "share"), [(1, 24), (2, 12)])
def test_what_is_evaluated_takes_a_third_of_what_is_trained(workers: int, share: int) -> None:
    manifest = manifest_of(workers=workers, validation=OWN)

    took_s = Rehearsal(0.5, None).train_s(manifest)

    assert took_s == pytest.approx(0.5 * (12 + 3 * 1_000 / share / 3))
