"""Whole runs killed at any moment, supervisor and workers at once: they end as if never killed."""

import contextlib
import os
import random
import select
import shutil
import signal
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.engine.nets import manifest_of, write_data
from tests.engine.test_rounds import run_all
from tests.engine.test_runs import children_of, supervisor_here, training_here
from trainyard.engine.data import open_folder
from trainyard.engine.errors import RunError
from trainyard.engine.events import Event, Finished
from trainyard.engine.journal import Journal
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.engine.program import build
from trainyard.engine.rounds import RoundsTraining
from trainyard.engine.state import State
from trainyard.engine.training import Material
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.trace import Trace

# Enough that a moment drawn at random is within a step or a write rather than after the run.
STEPS = 240
# Whoever starts anew takes longest of all, and rounds have more tests of their own.
KILLS = {"single": 2, "sync": 2, "rounds": 1}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return write_data(tmp_path_factory.mktemp("data"))


def kill_all() -> None:
    """SIGKILL to the supervisor and its workers, if they run yet or still; none is left after."""
    with contextlib.ExitStack() as stack:
        # Which of them is gone by itself meanwhile needs no signal.
        stack.enter_context(contextlib.suppress(ValueError, ProcessLookupError))
        supervisor = supervisor_here()
        for pid in (supervisor, *children_of(supervisor)):
            handle = os.pidfd_open(pid)
            stack.callback(os.close, handle)
            # Or the next run might find its folder held by one that is about to end.
            stack.callback(select.select, [handle], [], [])
            signal.pidfd_send_signal(handle, signal.SIGKILL)


def run_and_kill(
    manifest: Manifest, files: Files, folder: Path, delay_s: float, after: int | None
) -> bool:
    """Whether the run could be killed so long after it was called, or was past state `after`."""
    timer = Timer(delay_s, kill_all)

    def on_event(event: Event) -> None:
        is_past = isinstance(event, Finished) and event.entry.number >= (after or 0)
        if after is not None and is_past and timer.ident is None:
            timer.start()

    if after is None:
        timer.start()
    try:
        run_local(manifest, files, folder, on_event)
    except RunError as error:
        assert "killed by SIGKILL" in str(error)  # noqa: PT017
        return True
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
    return False


def states_of(manifest: Manifest, files: Files) -> list[State]:
    """All states, by one process that nobody kills; it plays all workers."""
    if manifest.training.mode == "rounds":
        data = open_folder(manifest.data.train, files.train)
        return run_all(RoundsTraining(manifest, build(manifest), Material(data))).states
    training = training_here(manifest, files)
    states = [training.start()]
    for segment in range(manifest.plan.segments):
        states.append(training.run(segment, states[-1]).state)
    return states


MODES: dict[str, dict[str, Any]] = {
    "single": {"workers": 1},
    "sync": {"workers": 2},
    # With a quorum of all nobody is left out, so that there is one trace.
    "rounds": {
        "workers": 2,
        "mode": "rounds",
        "steps_per_segment": 6,
        "rounds": {"local_steps": 6, "quorum": 2},
    },
}


@pytest.mark.parametrize("mode", MODES)
def test_run_is_killed_at_any_moment(files: Files, tmp_path: Path, mode: str) -> None:
    manifest = manifest_of("mlp", **{"until": {"steps": STEPS}, **MODES[mode]})
    undisturbed = states_of(manifest, files)
    root = Trace([state.hash for state in undisturbed]).root
    draw = random.Random(mode)
    folder = tmp_path / "killed"

    # Once while it starts, where it may be too soon or too late on a busy machine.
    run_and_kill(manifest, files, folder, draw.uniform(0.5, 3), None)
    killed = 0
    while killed < KILLS[mode]:
        after = draw.randrange(manifest.plan.segments // 2)
        if run_and_kill(manifest, files, folder, draw.uniform(0, 0.05), after):
            killed += 1
        else:
            # It was quicker than that, and has to be as it should; then again.
            assert Journal.read(folder).trace.root == root
            shutil.rmtree(folder)
    again = run_local(manifest, files, folder)

    assert again.trace.root == root
    assert again.state(manifest.plan.segments) == undisturbed[-1]
    assert list(folder.rglob("*.tmp")) == []
