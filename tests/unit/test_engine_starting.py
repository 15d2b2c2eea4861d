"""Processes that take a worker's place and do not behave like one: each is a lost worker."""

import sys
from pathlib import Path

import pytest

from trainyard.engine import starting
from trainyard.engine.crew import Crew, Lost
from trainyard.engine.errors import RunError
from trainyard.engine.supervisor import supervise
from trainyard.engine.worker import Job

BAD = {
    # It says that it is done, and stays.
    "exec >&-; exec sleep 600": "worker 0 was killed by SIGKILL",
    "echo nonsense; exec sleep 600": "worker 0 said what no worker says",
}


@pytest.fixture(params=BAD)
def job(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Job, str]:
    """The job of a worker whose process is another one, and how it is lost."""
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\n{request.param}\n")
    script.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(script))
    monkeypatch.setattr(starting, "_GRACE_S", 0.1)
    (tmp_path / "manifest.json").write_bytes(b"{}")
    job = Job(manifest=tmp_path / "manifest.json", folder=tmp_path / "run", train=tmp_path)
    return job, BAD[request.param]


def test_worker_that_comes_and_goes_is_lost(job: tuple[Job, str]) -> None:
    """Told of by its slot, whatever its number is: the leader of an async run is the last."""
    with Crew((job[0], job[0])) as crew:
        crew.start(1)

        assert crew.listen(None) == [Lost(1, job[1])]
        assert crew.slots == set()


def test_run_ends_after_so_many_losses(job: tuple[Job, str]) -> None:
    with pytest.raises(RunError, match=f"lost 3 times without a segment between: {job[1]}"):
        supervise((job[0],))
