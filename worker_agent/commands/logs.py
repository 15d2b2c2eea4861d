"""`trainyard worker logs`: what the agent wrote down, for people."""

import json
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from trainyard.cli.failing import telling_failures
from trainyard.cli.output import printable
from worker_agent.commands.options import HomeOption, home_at

_LOOK_EVERY_S = 0.2


def logs(
    home: HomeOption = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on with what comes, until interrupted.")
    ] = False,
    task: Annotated[int | None, typer.Option(help="Only what is about this task.")] = None,
    lines: Annotated[int, typer.Option("--lines", "-n", min=0, help="How many to show.")] = 50,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the lines as they are, each a JSON document.")
    ] = False,
) -> None:
    """Show the newest lines of the agent's log."""
    with telling_failures(as_json):
        path = home_at(home).log
        before = path.with_suffix(".log.1")
        with ExitStack() as files:
            # Opened once, for both: what is added between the two is missed by nobody.
            file = files.enter_context(path.open("rb")) if path.exists() else None
            found = deque(_kept(before, task), maxlen=lines)
            if file is not None:
                found.extend(line for line in file if _is_about(line, task))
            for line in found:
                _show(line, as_json)
            if follow:
                for line in _coming(path, file):
                    if _is_about(line, task):
                        _show(line, as_json)


def _kept(path: Path, task: int | None) -> Iterator[bytes]:
    """What is there now."""
    if path.exists():
        with path.open("rb") as file:
            yield from (line for line in file if _is_about(line, task))


def _coming(path: Path, file: BinaryIO | None) -> Iterator[bytes]:
    """Whole lines that are added from where `file` is, also when another file is begun."""
    while file is None:
        if path.exists():
            file = path.open("rb")
        else:
            time.sleep(_LOOK_EVERY_S)
    try:
        part = b""
        while True:
            part += file.readline()
            if part.endswith(b"\n"):
                yield part
                part = b""
            elif _is_another(path, file.fileno()):
                file.close()
                file = path.open("rb")
            else:
                time.sleep(_LOOK_EVERY_S)
    finally:
        file.close()


def _is_another(path: Path, handle: int) -> bool:
    try:
        return path.stat().st_ino != os.fstat(handle).st_ino
    except FileNotFoundError:
        return False


def _is_about(line: bytes, task: int | None) -> bool:
    if task is None:
        return True
    entry = _read(line)
    is_sent = str(entry.get("action", "")).startswith(f"{task}/")
    return entry.get("task_id") == task or is_sent


def _read(line: bytes) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except ValueError:
        # Cut off by a full disk or a kill.
        return {"event": line.decode(errors="replace").strip()}
    return entry if isinstance(entry, dict) else {"event": str(entry)}


def _show(line: bytes, as_json: bool) -> None:
    if as_json:
        print(line.decode(errors="replace").rstrip("\n"), flush=True)
        return
    entry = _read(line)
    at, level = str(entry.pop("timestamp", "")), str(entry.pop("level", ""))
    event = str(entry.pop("event", ""))
    rest = " ".join(f"{name}={value}" for name, value in entry.items())
    mark = level.upper() if level not in ("info", "") else ""
    print(printable(f"{at[:19]:<19} {mark:<8}{event:<14} {rest}".rstrip()), flush=True)
