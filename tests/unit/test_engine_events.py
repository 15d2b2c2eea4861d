"""What processes say of a run: a stranger's word is taken only where it can be one."""

import json
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
