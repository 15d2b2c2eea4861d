"""What processes say of a run: a stranger's word is taken only where it can be one."""

import json
import math
from typing import Any

import pytest
from pydantic import ValidationError

from trainyard.engine.events import read_event

HASH = "ab" * 32
STARTED = {"event": "started", "steps": 9, "segments": 3, "start": HASH}
MERGED = {"event": "merged", "round": 1, "state": HASH}
ENDED = {"event": "ended", "root": HASH}


@pytest.mark.parametrize("said", [STARTED, MERGED, ENDED])
@pytest.mark.parametrize("name", ["/etc/passwd", "../" * 20 + "x", "", HASH + "\n", "AB" * 32])
def test_hash_is_no_path(said: dict[str, Any], name: str) -> None:
    assert read_event(json.dumps(said))
    with pytest.raises(ValidationError):
        read_event(json.dumps({key: name if one == HASH else one for key, one in said.items()}))


NUMBERS: list[dict[str, Any]] = [
    {"event": "stepped", "step": 10**400, "loss": 0.5, "examples_per_s": 1.0},
    {"event": "stepped", "step": -1, "loss": 0.5, "examples_per_s": 1.0},
    {"event": "offered", "round": 1 << 63},
    {**STARTED, "steps": 1 << 63},
    {**STARTED, "slot": -1},
    {"event": "finished", "entry": {"number": 0, "state": HASH, "step": 1 << 63}},
    {"event": "finished", "entry": {"number": 0, "state": HASH, "step": 0, "train_s": math.inf}},
    {
        "event": "finished",
        "entry": {
            "number": 0,
            "state": HASH,
            "step": 0,
            "trained": {"loss": 0.5, "examples": 1 << 63},
        },
    },
]


@pytest.mark.parametrize("said", NUMBERS)
def test_number_that_no_counter_holds_is_refused(said: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        read_event(json.dumps(said))
