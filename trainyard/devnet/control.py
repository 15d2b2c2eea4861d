"""Starting, watching and ending a devnet that runs by itself in its folder."""

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from trainyard.devnet.errors import AlreadyRunningError, DevnetError
from trainyard.devnet.options import Options
from trainyard.devnet.place import Place
from trainyard.devnet.process import birth_of, tail_of
from trainyard.devnet.record import Record, Running

_UP_S = 180.0
_DOWN_S = 60.0
# For what the devnet started to end with it, and once more when it was killed.
_LAST_S = 10.0
_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Status:
    """What runs in a folder."""

    # The process behind everything; None if nothing runs.
    pid: int | None
    record: Record | None
    # None while it comes up, or goes down.
    running: Running | None

    @property
    def alive(self) -> dict[str, bool]:
        each = self.running.processes if self.running else {}
        return {name: _lives(*process) for name, process in each.items()}


def status_of(folder: Path) -> Status:
    place = Place(folder)
    pid = place.holder()
    return Status(pid, Record.read(place), None if pid is None else Running.read(place))


def bring_up(
    folder: Path, options: Options, report: Callable[[str], None] = lambda line: None
) -> dict[str, str]:
    """Start a devnet, and come back when all of it is there; if it fails, none of it is.

    Agents that have not registered in time are the exception: their names, with their logs.
    """
    place = Place(folder)
    if place.holder() is not None:
        raise AlreadyRunningError(
            f"a devnet runs in {folder} already: 'trainyard devnet status' shows it, and after "
            "'trainyard devnet down' it comes up with other options"
        )
    place.make()
    # Its own now: a crash before the lock is taken leaves no folder that looks like somebody's.
    place.lock.touch(mode=0o600)
    listening, telling = os.pipe()
    try:
        try:
            process = _start(place, options, telling)
        finally:
            os.close(telling)
        said: dict[str, object] = {}
        try:
            said = _hear(listening, report)
        finally:
            if not said.get("ready"):
                # Asked to end, it ends what it had begun.
                process.terminate()
                process.wait()
    finally:
        os.close(listening)
    if not said.get("ready"):
        raise DevnetError(str(said.get("error") or f"it did not come up: {tail_of(place.log)}"))
    missing = said.get("missing")
    return dict(missing) if isinstance(missing, dict) else {}


def _start(place: Place, options: Options, pipe: int) -> "subprocess.Popen[bytes]":
    with place.log.open("ab") as log:
        return subprocess.Popen(
            [
                *(sys.executable, "-m", "trainyard.devnet.supervisor"),
                *(str(place.folder), json.dumps(asdict(options)), str(pipe)),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # So that it outlives the terminal.
            start_new_session=True,
            pass_fds=[pipe],
        )


def take_down(folder: Path) -> bool:
    """End what runs in the folder; False if nothing did. Nothing is left when it returns."""
    place = Place(folder)
    deadline = time.monotonic() + _DOWN_S
    found = False
    number = signal.SIGTERM
    while (pid := place.holder()) is not None:
        found = True
        running = Running.read(place)
        begun = dict(running.processes) if running else {}
        begun["devnet"] = (pid, birth_of(pid) or 0)
        if time.monotonic() > deadline:
            number = signal.SIGKILL
        if pid:
            _end(place, pid, number)
        _wait_for_end(place, pid, deadline)
        # It lets the folder go a moment before its own end, and what it started ends with it.
        for name, process in begun.items():
            _see_gone(place, name, *process)
    return found


def forget(folder: Path) -> bool:
    """End it, and remove all that it kept; False if there was nothing."""
    take_down(folder)
    place = Place(folder)
    if not place.lock.exists():
        return False
    with place.held():
        place.forget()
        place.log.unlink(missing_ok=True)
        place.lock.unlink()
    with suppress(OSError):
        # Not where somebody put more into it.
        folder.rmdir()
    return True


def _hear(pipe: int, report: Callable[[str], None]) -> dict[str, object]:
    """The last line of who comes up; nothing if it ended or hangs instead."""
    rest, deadline = b"", time.monotonic() + _UP_S
    while True:
        while b"\n" not in rest:
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                return {}
            piece = os.read(pipe, 4096)
            if not piece:
                return {}
            rest += piece
        line, _, rest = rest.partition(b"\n")
        found: dict[str, object] = json.loads(line)
        if "told" not in found:
            return found
        report(str(found["told"]))
        # Who tells what it does does not hang.
        deadline = time.monotonic() + _UP_S


def _end(place: Place, pid: int, number: signal.Signals) -> None:
    """Signal the holder, and nobody who has its number by now."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        # The handle is of whoever has the number: the holder, if it holds the folder still.
        if place.holder() == pid:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, number)
    finally:
        os.close(handle)


def _wait_for_end(place: Place, pid: int, deadline: float) -> None:
    while place.holder() == pid and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    if time.monotonic() >= deadline:
        time.sleep(_POLL_S)


def _see_gone(place: Place, name: str, pid: int, birth: int) -> None:
    """Wait for the end of a process; one that hangs is killed, and named if that does not help."""
    is_killed, until = False, time.monotonic() + _LAST_S
    while _lives(pid, birth) and place.holder() is None:
        if time.monotonic() > until:
            if is_killed:
                raise DevnetError(f"{name}, with pid {pid}, cannot be ended: see what it waits for")
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                try:
                    # The handle is of whoever has the number: of it, if it lives still.
                    if _lives(pid, birth):
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)
            is_killed, until = True, time.monotonic() + _LAST_S
        time.sleep(_POLL_S)


def _lives(pid: int, birth: int) -> bool:
    """Whether the process is there, and not another one that got its number."""
    return birth_of(pid) == birth
