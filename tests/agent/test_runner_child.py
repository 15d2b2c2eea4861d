"""What the runner makes of what a worker says: that is said by a stranger."""

import asyncio
import os
import subprocess
import sys

import pytest

from trainyard.engine.events import Event, Joined
from worker_agent.runner import child
from worker_agent.runner.child import WorkerFailedError

JOINED = Joined(slot=1).model_dump_json().encode() + b"\n"


def heard_of(said: bytes) -> list[Event]:
    heard: list[Event] = []
    reading, writing = os.pipe()
    os.write(writing, said)
    os.close(writing)
    with open(reading, "rb") as output:
        asyncio.run(child._listen(output, heard.append))
    return heard


@pytest.mark.parametrize("rest", [b"nonsense\n", b"\xff\n", b"[]\n", b"x" * 3000, b"\n"])
def test_nonsense_is_the_end_of_the_worker(rest: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "_MOST_LINE_BYTES", 1000)

    with pytest.raises(WorkerFailedError, match="the worker said what no worker says"):
        heard_of(JOINED + rest + JOINED)


def test_line_that_was_cut_off_by_the_end_is_not_heard() -> None:
    assert heard_of(JOINED + JOINED[:-9]) == [Joined(slot=1)]


def test_a_runner_loads_nothing_that_speaks_to_the_chain() -> None:
    """It would take a second, and there is one for each task."""
    code = "import sys, worker_agent.runner.__main__; print('web3' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "False\n", done.stderr
