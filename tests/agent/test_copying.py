"""States are copied from others: ours go only for who leads, and no more come than a run has."""

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.engine.nets import manifest_of
from trainyard.engine.counting import Counters
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.state import State
from worker_agent.runner.copying import OtherStateError, copy_run

MANIFEST = manifest_of("mlp", until={"steps": 9})
STATES = MANIFEST.plan.segments + 1


def state(step: int, weight: float = 0.0) -> State:
    return State({"weights/a": np.full(4, weight, np.float32), **Counters(step=step).tensors()})


class Other:
    """A worker that has any number of states, each of the step that is asked for."""

    def __init__(self, weight: float = 0.0, says_step: int | None = None) -> None:
        self._weight, self._says_step = weight, says_step

    async def ask(self, slot: int, kind: str, body: bytes, **_: Any) -> bytes:
        number = json.loads(body)
        step = number if self._says_step is None else self._says_step
        found = state(number, self._weight)
        return Entry(number=number, state=found.hash.hex(), step=step).model_dump_json().encode()

    async def fetch(self, slot: int, kind: str, body: bytes, target: Path, **_: Any) -> None:
        state(json.loads(body), self._weight).save(target)


def copy(folder: Path, other: Other, count: int, **how: Any) -> list[Entry]:
    task: Any = type("Task", (), {})()
    task.run, task.manifest, task.live = folder / "run", MANIFEST, type("Live", (), {})()
    task.shelf = type("Shelf", (), {"path": lambda _, name: folder / name})()
    plane: Any = other
    asyncio.run(copy_run(task, plane, 1, count, **how))
    return Journal.read(folder / "run").entries


def test_no_more_states_than_a_run_has_are_copied(tmp_path: Path) -> None:
    assert len(copy(tmp_path, Other(), 10**9)) == STATES


def test_own_states_are_given_up_for_who_leads_alone(tmp_path: Path) -> None:
    ours = copy(tmp_path, Other(), 2)

    with pytest.raises(OtherStateError, match="worker 1 has other states than we have"):
        copy(tmp_path, Other(weight=1.0), 3, may_rewind=False)
    assert Journal.read(tmp_path / "run").entries == ours

    theirs = copy(tmp_path, Other(weight=1.0), 3)
    assert len(theirs) == 3
    assert theirs[0] != ours[0]


def test_state_of_another_step_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OtherStateError, match="state 0 is not of step 7"):
        copy(tmp_path, Other(says_step=7), 1)
