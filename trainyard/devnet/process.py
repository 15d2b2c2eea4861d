"""Programs that a devnet starts: in sessions of their own, logged, and gone when it is."""

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from trainyard.content.lifeline import dying_with_parent
from trainyard.devnet.errors import DevnetError

_TAIL_BYTES = 1000


class Child:
    """One program, started by a thread of its own.

    The kernel ends the program with the thread that started it, and a caller's may be a short one.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log: Path,
        on_end: Callable[["Child"], None] = lambda child: None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`on_end` is told of its end, be it wanted or not; `environment` is added to our own."""
        self.name, self.log = name, log
        self.ended = threading.Event()
        self._on_end, self._environment = on_end, {**os.environ, **(environment or {})}
        self._started = threading.Event()
        self._failure: OSError | None = None
        self.process: subprocess.Popen[bytes]
        threading.Thread(target=self._live, args=(command,), name=name, daemon=True).start()
        self._started.wait()
        if self._failure is not None:
            raise DevnetError(f"cannot run {command[0]}: {self._failure}") from self._failure

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self, grace_s: float) -> None:
        """Let it finish what it does; past the grace period, end it and all that it started."""
        if not self.ended.is_set():
            self.process.send_signal(signal.SIGTERM)
            self.ended.wait(grace_s)
        if not self.ended.is_set():
            os.killpg(self.process.pid, signal.SIGKILL)
            self.ended.wait()

    def epitaph(self) -> str:
        """How it ended, with the last that it said."""
        return f"{self.name} ended with code {self.process.returncode}: {self.tail()}"

    def tail(self) -> str:
        return tail_of(self.log)

    def _live(self, command: Sequence[str]) -> None:
        try:
            with self.log.open("ab") as out:
                self.process = subprocess.Popen(
                    command,
                    env=self._environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    preexec_fn=dying_with_parent(),
                )
        except OSError as error:
            self._failure = error
            self.ended.set()
            return
        finally:
            self._started.set()
        self.process.wait()
        self.ended.set()
        self._on_end(self)


def tail_of(log: Path) -> str:
    """The end of a log on one line."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL_BYTES))
            said = file.read().decode(errors="replace")
    except OSError:
        said = ""
    return (
        " | ".join(line.strip() for line in said.splitlines() if line.strip()) or "it said nothing"
    )


def birth_of(pid: int) -> int | None:
    """When the process began, in ticks since the machine did; None if it lives no more.

    Numbers of processes are used again; a number together with a birth is not.
    """
    try:
        # The name before the last bracket may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    state, birth = fields[0], int(fields[19])
    return None if state in (b"Z", b"X") else birth
