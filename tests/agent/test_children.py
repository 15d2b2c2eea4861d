"""What an agent starts knows no more than it needs, and nobody reads the agent's memory."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from worker_agent.children import Children

_PROGRAM = "import os; print(*sorted(os.environ))"
_LEAVING = """
import os, signal, tempfile
print(tempfile.mkdtemp(), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
_HIDDEN = """
import ctypes, os, subprocess, sys
from worker_agent.secrecy import hide_memory
hide_memory()
print(ctypes.CDLL(None).prctl(3), flush=True)
with subprocess.Popen(["true"]) as child:
    os.close(os.pidfd_open(child.pid))
asked = "import ctypes; print(ctypes.CDLL(None).prctl(3))"
subprocess.run([sys.executable, "-c", asked], check=True)
"""


def test_children_are_passed_environmently_what_they_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "told.py").write_text(_PROGRAM)
    for name in ("CREDENTIALS_DIRECTORY", "HTTPS_PROXY", "A_TOKEN", "TRAINYARD_X", "LC_ALL"):
        monkeypatch.setenv(name, "C")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    children = Children(tmp_path / "scratch")
    try:
        children.start(1, "tell", "told", [], tmp_path / "log")
        while not (done := children.ended()):
            children.wait(60)
    finally:
        children.stop_all()

    told = done[0].said.split()
    assert {"PATH", "PYTHONPATH", "TRAINYARD_X", "LC_ALL"} <= set(told)
    assert not {"CREDENTIALS_DIRECTORY", "HTTPS_PROXY", "A_TOKEN"} & set(told)


def test_what_killed_children_left_is_gone_with_the_next_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaving.py").write_text(_LEAVING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    scratch = tmp_path / "scratch"
    killed = Children(scratch)
    killed.start(1, "leave", "leaving", [], tmp_path / "log")
    while not (done := killed.ended()):
        killed.wait(60)
    assert [(one.status, Path(one.said).parent) for one in done] == [(-signal.SIGKILL, scratch)]
    assert Path(done[0].said).exists()

    Children(scratch).stop_all()

    assert list(scratch.iterdir()) == []
    killed.stop_all()


def test_memory_is_hidden_and_that_of_children_is_not() -> None:
    found = subprocess.run(
        [sys.executable, "-c", _HIDDEN], capture_output=True, text=True, check=True, env=os.environ
    )

    assert found.stdout.split() == ["0", "1"]
