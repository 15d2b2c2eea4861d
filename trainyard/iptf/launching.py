"""Starting a gate, keeping it up, and ending it with whoever started it."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import IO

from trainyard.iptf.gate import READY, REMOVE_FOLDER
from trainyard.protocol.errors import TransientError

# A gate that has died this often within a minute is started again only after a while.
_MOST_RESTARTS = 5
_REST_S = 30.0
_END_S = 10.0


class GateStartError(TransientError):
    """The gate did not come up; it has said why on its standard error."""


class GateProcess:
    """A gate as a child process. It ends when `stop` is called or this process ends in any way.

    One that dies is started again at the same socket; the plugin then opens its files anew.
    """

    def __init__(self, environment: dict[str, str] | None = None) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="iptf-"))
        self.socket = self._folder / "gate"
        self._environment = {**os.environ, **(environment or {}), "IPTF_SOCKET": str(self.socket)}
        self._lock = threading.Lock()
        self._stopping = False
        self._stopped = threading.Event()
        self._restarts: deque[float] = deque(maxlen=_MOST_RESTARTS)
        try:
            self._process = self._start()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        threading.Thread(target=self._watch, name="iptf gate", daemon=True).start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def stop(self) -> None:
        """End the gate, after it has taken in what was sent to it."""
        with self._lock:
            self._stopping = True
            self._stopped.set()
            process = self._process
        _close(process)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> "subprocess.Popen[bytes]":
        # In a session of its own: Ctrl-C is for the program, which may still read in its end.
        process = subprocess.Popen(
            [sys.executable, "-m", "trainyard.iptf.gate", REMOVE_FOLDER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._environment,
            start_new_session=True,
        )
        line = _pipe(process.stdout).readline()
        if line.strip() != READY.encode():
            _close(process)
            raise GateStartError(f"the iptf gate did not start (exit code {process.wait()})")
        return process

    def _watch(self) -> None:
        while True:
            self._process.wait()
            now = time.monotonic()
            if len(self._restarts) == _MOST_RESTARTS and now - self._restarts[0] < 60:
                self._stopped.wait(_REST_S)
            with self._lock:
                if self._stopping:
                    return
                self._restarts.append(now)
                _close(self._process)
                # One that does not come up has said why, and the next turn tries again.
                with suppress(GateStartError, OSError):
                    self._process = self._start()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("a gate is started with pipes")
    return stream


def _close(process: "subprocess.Popen[bytes]") -> None:
    """Let go of the lifeline."""
    _pipe(process.stdin).close()
    _pipe(process.stdout).close()
