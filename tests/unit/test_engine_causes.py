"""Why a worker ended, as people are told."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainyard.engine import checkup, worker
from trainyard.engine.causes import cause, is_lost_peer, lasting_cause
from trainyard.engine.events import Failed, read_event
from trainyard.engine.starting import reason_of
from trainyard.engine.worker import Job


class InvalidArgumentError(Exception):
    """As TensorFlow's own, which this process does not import."""


class UnavailableError(Exception):
    """The same."""


SAID = """Graph execution error:

Detected at node loss/Sparse defined at (most recent call last):
<stack traces unavailable>
Received a label value of 12 which is outside the valid range of [0, 10).
\t [[{{node loss/Sparse}}]] [Op:__inference_alone_1]"""


def test_cause_is_what_happened_and_not_where() -> None:
    error = InvalidArgumentError(SAID)

    said = "InvalidArgumentError: Received a label value of 12 which is outside the valid range"
    assert cause(error).startswith(said)
    assert lasting_cause(error) == cause(error)
    assert cause(InvalidArgumentError("")) == "InvalidArgumentError: "


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/journal.jsonl"),
            "run/journal.jsonl: No space left on device",
        ),
        (MemoryError(), "out of memory: take a smaller batch or model"),
        (ValueError("a mistake of ours"), None),
        (UnavailableError("Connection reset by peer"), None),
    ],
)
def test_only_what_comes_again_is_lasting(error: Exception, said: str | None) -> None:
    assert lasting_cause(error) == said
    assert is_lost_peer(error) is isinstance(error, UnavailableError)


def test_full_disk_is_a_failure_and_no_loss(tmp_path: Path) -> None:
    """In a process of its own, which writes its lock to a disk that is full."""
    (tmp_path / "lock").symlink_to("/dev/full")
    job = Job(manifest=tmp_path / "job.json", folder=tmp_path, train=tmp_path)
    (tmp_path / "job.json").write_text(job.model_dump_json())
    program = (
        "from trainyard.engine import worker\n"
        "worker.work = lambda job: (job.folder / 'lock').write_text('it is mine')\n"
        "worker.main()"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "job.json")],
        capture_output=True,
        cwd=Path(worker.__file__).parents[2],
        timeout=60,
    )

    assert ended.returncode == worker.EXIT_FAILED
    told = read_event(ended.stdout.splitlines()[-1])
    assert isinstance(told, Failed)
    assert told.reason == "worker 0: No space left on device"


@pytest.mark.parametrize(
    ("status", "log", "reason"),
    [
        (1, b"old\nValueError: a mistake\n", "worker 2 ended with status 1: ValueError: a mistake"),
        (1, b"", "worker 2 ended with status 1"),
        (
            -signal.SIGABRT,
            b"F0000 Check failed: n > 0\n",
            "worker 2 was killed by SIGABRT: F0000 Check failed: n > 0",
        ),
        # Whoever is killed so has no last word.
        (-signal.SIGKILL, b"a warning\n", "worker 2 was killed by SIGKILL"),
    ],
)
def test_loss_is_told_with_the_last_line_of_the_log(
    tmp_path: Path, status: int, log: bytes, reason: str
) -> None:
    (tmp_path / "worker.log").write_bytes(log)

    assert reason_of(Job(manifest=tmp_path, folder=tmp_path, train=tmp_path, slot=2), status) == (
        reason
    )


def test_network_that_does_not_come_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise subprocess.TimeoutExpired("python", 30)

    monkeypatch.setattr(subprocess, "run", never)
    monkeypatch.setattr(checkup, "find_class", lambda **_: None)

    found = checkup.examine(tmp_path)

    assert not found.own_network
    assert "a network of its own is not there after 30 s" in [one.what for one in found.problems]
