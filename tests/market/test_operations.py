"""What docs/operations.md tells operators to type works as they would type it."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import tests.quiet_web3  # noqa: F401
from tests.market.command import Trainyard
from trainyard.content.lifeline import dying_with_parent
from trainyard.devnet.agents import as_root

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "operations.md").read_text()
[LINES] = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)


def test_new_operator_gets_a_worker_by_the_lines_of_the_guide(tmp_path: Path) -> None:
    shim = tmp_path / "bin" / "trainyard"
    shim.parent.mkdir()
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m trainyard "$@"\n')
    shim.chmod(0o755)
    environment = Trainyard(tmp_path).environment
    environment["PATH"] = f"{shim.parent}:{environment['PATH']}"
    environment["PYTHONPATH"] = str(ROOT)
    # As it says of root below those lines.
    lines = LINES.replace("worker run", " ".join(("worker run", *as_root())))
    # Where a line fails, nothing of it stays behind.
    script = f"set -eu\ntrap 'trainyard devnet down >&2' EXIT\n{lines}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=400,
        preexec_fn=dying_with_parent(),
    )

    assert done.returncode == 0, done.stderr
    assert "agent      running" in done.stdout
    assert "the agent is paused" in done.stdout
    assert "it has ended" in done.stdout
    assert "drained" in (tmp_path / "worker" / "agent.log").read_text()
