"""What tests must not leave behind is found when they do."""

import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

from tests.market.leftovers import leaving_nothing

_AT_ONCE_S = 0.0
_FILE = "import tempfile; tempfile.mkdtemp(prefix='trainyard-')"
# A child of a process that has ended: nobody's, in no folder of the test.
_LISTENER = """
import os, socket, sys
if os.fork():
    sys.exit()
os.setsid()
os.chdir("/")
server = socket.create_server(("127.0.0.1", 0))
print(os.getpid(), server.getsockname()[1], flush=True)
server.accept()
"""


def _left_by(folder: Path, mistake: Callable[[], object]) -> str:
    try:
        with leaving_nothing(folder, _AT_ONCE_S):
            mistake()
    except AssertionError as error:
        return str(error)
    return ""


def test_nothing_is_found_where_nothing_is_left(tmp_path: Path) -> None:
    kept = [sys.executable, "-c", "import tempfile; tempfile.TemporaryFile()"]

    assert _left_by(tmp_path, lambda: subprocess.run(kept, check=True)) == ""


def test_temporary_files_are_found(tmp_path: Path) -> None:
    left = _left_by(tmp_path, lambda: subprocess.run([sys.executable, "-c", _FILE], check=True))

    assert f"temporary file {tmp_path / 'tmp' / 'trainyard-'}" in left


def test_process_that_nobody_owns_is_found_with_its_port(tmp_path: Path) -> None:
    found = list[int]()

    def start() -> None:
        command = [sys.executable, "-c", _LISTENER]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as started:
            assert started.stdout is not None
            found.extend(map(int, started.stdout.readline().split()))

    left = _left_by(tmp_path, start)
    pid, port = found
    psutil.Process(pid).kill()

    assert f"process {pid}: " in left
    assert f"port 127.0.0.1:{port} of process {pid}" in left


def test_port_of_the_tests_own_is_found(tmp_path: Path) -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]

        left = _left_by(tmp_path, server.listen)

    assert f"port 127.0.0.1:{port} of process {os.getpid()}" in left
