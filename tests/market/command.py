"""The command `trainyard` as a process, with all that it keeps in a folder of the test's."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from trainyard.content.lifeline import dying_with_parent

COMMAND = (sys.executable, "-m", "trainyard")
_TIMEOUT_S = 120


class Trainyard:
    """The command in a world of its own."""

    def __init__(self, folder: Path) -> None:
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("TRAINYARD_", "XDG_"))}
        self.environment = kept | {
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_DATA_HOME": str(folder / "data"),
        }

    def start(self, *arguments: str | Path, **more: Any) -> "subprocess.Popen[str]":
        given: dict[str, Any] = {
            "env": self.environment,
            "preexec_fn": dying_with_parent(),
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
        }
        return subprocess.Popen([*COMMAND, *map(str, arguments)], **given | more)

    def run(self, *arguments: str | Path, stdin: str = "") -> tuple[int, str, str]:
        process = self.start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(stdin, timeout=_TIMEOUT_S)
        return process.returncode, out, err

    def document(self, *arguments: str | Path, stdin: str = "") -> Any:
        """What it prints with --json, and nothing else."""
        code, out, err = self.run(*arguments, "--json", stdin=stdin)
        assert (code, err) == (0, ""), out
        return json.loads(out)
