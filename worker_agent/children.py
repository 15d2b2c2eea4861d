"""The processes that an agent has running, each for one piece of work."""

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from trainyard.content.lifeline import dying_with_parent
from trainyard.engine.logs import last_line

_GRACE_S = 5.0
# Not where systemd keeps the password, nor proxies, nor whatever else the agent was started with.
_PASSED = (
    *("PATH", "HOME", "LANG", "VIRTUAL_ENV"),
    *("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"),
)
_PASSED_PREFIXES = ("LC_", "PYTHON", "TRAINYARD_")


@dataclass(frozen=True, slots=True)
class Done:
    """A process that has ended, and the last line it said."""

    task: int
    work: str
    status: int
    said: str


@dataclass(frozen=True, slots=True)
class _Child:
    process: "subprocess.Popen[bytes]"
    handle: int
    log: Path


class Children:
    """They end with the agent, however that ends.

    What they put into `scratch` and were killed with is gone when the next agent starts.
    """

    def __init__(self, scratch: Path) -> None:
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True, mode=0o700)
        self._environment = passed_environment() | {"TMPDIR": str(scratch.absolute())}
        self._running: dict[tuple[int, str], _Child] = {}
        self._selector = selectors.DefaultSelector()

    def __len__(self) -> int:
        return len(self._running)

    def has(self, task: int, work: str) -> bool:
        return (task, work) in self._running

    def of(self, task: int) -> list[str]:
        return [work for number, work in self._running if number == task]

    def doing(self, work: str) -> list[int]:
        return [number for number, one in self._running if one == work]

    def start(
        self,
        task: int,
        work: str,
        module: str,
        arguments: Sequence[str],
        log: Path,
        *,
        is_told: bool = False,
    ) -> None:
        """Start a process; one that `is_told` waits until it is handed its work."""
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.PIPE if is_told else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                preexec_fn=dying_with_parent(niceness=5),
                # A terminal's Ctrl-C is for the agent, which ends its children in order.
                start_new_session=True,
            )
        handle = os.pidfd_open(process.pid)
        self._selector.register(handle, selectors.EVENT_READ)
        self._running[task, work] = _Child(process, handle, log)

    def hand_over(self, task: int, standby: str, work: str, told: str) -> bool:
        """Let the process that stands by do `work` from now on; False if there is none."""
        child = self._running.get((task, standby))
        if child is None or child.process.poll() is not None:
            return False
        ears = child.process.stdin
        if ears is None or ears.closed:
            return False
        try:
            ears.write(told.encode() + b"\n")
            ears.close()
        except BrokenPipeError:
            return False
        del self._running[task, standby]
        self._running[task, work] = child
        return True

    def dismiss(self, task: int, standby: str) -> None:
        """Tell the process that stands by that nothing comes: it tidies up and ends."""
        child = self._running[task, standby]
        if child.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                child.process.stdin.close()

    def wait(self, timeout_s: float, *others: int) -> set[int]:
        """Until one has ended, one of `others` can be read, or the time is over; what it was."""
        for handle in others:
            self._selector.register(handle, selectors.EVENT_READ)
        try:
            return {key.fd for key, _ in self._selector.select(timeout_s)}
        finally:
            for handle in others:
                self._selector.unregister(handle)

    def ended(self) -> list[Done]:
        """Those that have ended since this was last asked."""
        found = []
        for (task, work), child in list(self._running.items()):
            status = child.process.poll()
            if status is not None:
                self._forget(task, work)
                found.append(Done(task, work, status, last_line(child.log) or ""))
        return found

    def stop(self, task: int, work: str) -> None:
        child = self._running.get((task, work))
        if child is None:
            return
        # All that it started is in its session.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.process.pid, signal.SIGTERM)
        try:
            child.process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()
        self._forget(task, work)

    def stop_all(self) -> None:
        for task, work in list(self._running):
            self.stop(task, work)
        self._selector.close()

    def _forget(self, task: int, work: str) -> None:
        child = self._running.pop((task, work))
        self._selector.unregister(child.handle)
        os.close(child.handle)
        if child.process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                child.process.stdin.close()


def passed_environment() -> dict[str, str]:
    """What a child may know of what the agent was started with: strangers' work runs below it."""
    return {
        name: value
        for name, value in os.environ.items()
        if name in _PASSED or name.startswith(_PASSED_PREFIXES)
    }
