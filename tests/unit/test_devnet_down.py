"""Taking a devnet down comes to an end, whatever one of its processes waits for."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from trainyard.devnet import control
from trainyard.devnet.control import take_down
from trainyard.devnet.place import Place
from trainyard.devnet.process import birth_of
from trainyard.devnet.record import Running

_HOLDER = """
import sys
from pathlib import Path
from trainyard.devnet.place import Place
with Place(Path(sys.argv[1])).held():
    print("held", flush=True)
    sys.stdin.read()
"""


def test_process_that_outlives_its_devnet_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "_LAST_S", 0.2)
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    hanging = subprocess.Popen(["sleep", "600"])
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        begun = {"chain": (hanging.pid, birth_of(hanging.pid) or 0)}
        Running(url="", gateway="", kubo=None, processes=begun).write(Place(tmp_path))

        assert take_down(tmp_path)

        assert hanging.wait(timeout=10) == -signal.SIGKILL
    finally:
        for process in (hanging, holder):
            process.kill()
            process.communicate()
