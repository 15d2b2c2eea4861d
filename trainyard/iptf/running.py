"""Running any program with `ipfs://` and `iptf://`, unchanged, and running it once more."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.errors import NotFoundError
from trainyard.content.names import ContentPath
from trainyard.content.reading import EntryKind
from trainyard.iptf.client import GateClient, GateError
from trainyard.iptf.launching import GateProcess
from trainyard.iptf.reflog import Read, Reflog
from trainyard.iptf.tree import MutablePath, mutable, parse_uri
from trainyard.iptf.wire import WireError

HOOK = Path(__file__).with_name("hook")
# As a shell reports what a signal has ended, and a command that it cannot find.
_SIGNAL_BASE = 128
_NOT_FOUND = 127


@dataclass(frozen=True, slots=True)
class Finished:
    run: int
    exit_code: int


def run_program(
    command: Sequence[str],
    reflog: Reflog,
    *,
    cwd: str | None = None,
    mfs: Path | None = None,
    reproduces: int | None = None,
) -> Finished:
    """Run `command` to its end, at a gate of its own, and record what it reads."""
    cwd = cwd or os.getcwd()
    run = reflog.begin_run(command, cwd, reproduces)
    environment = {} if mfs is None else {"IPTF_MFS": str(mfs)}
    gate = GateProcess(environment)
    try:
        code = _run(command, cwd, gate.socket, run, environment)
    finally:
        gate.stop()
    reflog.end_run(run, code)
    return Finished(run, code)


def run_at_gate(command: Sequence[str], socket: Path) -> Finished:
    """Run `command` to its end at a gate that is there already, and is asked to record it."""
    try:
        with GateClient(socket) as gate:
            run = gate.begin_run(command, os.getcwd())
    except GateError as error:
        fix = "start that gate, or unset IPTF_SOCKET for one of its own"
        raise GateError(error.code, f"{error}; {fix}") from error
    code = _run(command, os.getcwd(), socket, run, {})
    try:
        with GateClient(socket) as gate:
            gate.end_run(run, code)
    except (GateError, OSError, WireError) as error:  # what the program did is done all the same
        print(f"iptf: the end of run {run} is not recorded: {error}", file=sys.stderr)
    return Finished(run, code)


def _run(
    command: Sequence[str], cwd: str, socket: Path, run: int, environment: dict[str, str]
) -> int:
    command = _program(command)
    environment = {
        **os.environ,
        **environment,
        "IPTF_SOCKET": str(socket.absolute()),
        "IPTF_RUN": str(run),
        "PYTHONPATH": _with_hook(os.environ.get("PYTHONPATH", "")),
    }
    try:
        process = subprocess.Popen(command, cwd=cwd, env=environment)
    except FileNotFoundError:
        print(f"iptf: {command[0]}: there is no such program", file=sys.stderr)
        return _NOT_FOUND

    def pass_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    # Ctrl-C reaches the program by itself, and what it does then is its own affair.
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, pass_on),
        signal.SIGHUP: signal.signal(signal.SIGHUP, pass_on),
    }
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else _SIGNAL_BASE - code


def _program(command: Sequence[str]) -> list[str]:
    """The command with its program found: this Python, what is installed beside it, or on PATH."""
    name, *arguments = command
    beside = Path(sys.executable).parent / name
    if name in ("python", "python3"):
        name = sys.executable
    elif os.sep not in name and os.access(beside, os.X_OK):
        name = str(beside)
    else:
        name = shutil.which(name) or name
    if Path(name).name == "tensorboard" and not any("--load_fast" in one for one in arguments):
        # Its fast loader is a program of its own, which knows no plugins.
        arguments.append("--load_fast=false")
    return [name, *arguments]


def _with_hook(paths: str) -> str:
    """PYTHONPATH with our hook in front, and this package where it is not installed."""
    package = str(Path(__file__).parents[2])
    kept = [path for path in paths.split(os.pathsep) if path and path != str(HOOK)]
    missing = [] if package in kept or "site-packages" in package else [package]
    return os.pathsep.join([str(HOOK), *kept, *missing])


@dataclass(frozen=True, slots=True)
class Reproduced:
    """A second run beside the first: what each read that the other did not."""

    first: int
    second: Finished
    missing: tuple[tuple[str, str], ...]
    added: tuple[tuple[str, str], ...]

    @property
    def same(self) -> bool:
        return not self.missing and not self.added


def reproduce(number: int, reflog: Reflog, content: Content, scratch: Path | None) -> Reproduced:
    """Run the command of a run again on the same content, and compare what was read.

    What is under a CID is the same by itself. Files of iptf://mfs may have changed since, so the
    run gets a copy of what it took from there without having put it there, in `scratch` or a folder
    that is then removed, and the user's own stay as they are.
    """
    first = reflog.run(number)
    if not Path(first.cwd).is_dir():
        raise NotFoundError(f"run {number} ran in {first.cwd}, which is not there any more")
    inputs = [read for read in reflog.reads(number) if not read.own]
    with tempfile.TemporaryDirectory(prefix="iptf-mfs-") as temporary:
        mfs = scratch or Path(temporary) / "mfs"
        _lay_out(number, reflog, content, mfs)
        second = run_program(first.command, reflog, cwd=first.cwd, mfs=mfs, reproduces=number)
    before = {(read.uri, read.cid) for read in inputs}
    after = {(read.uri, read.cid) for read in reflog.reads(second.run) if not read.own}
    return Reproduced(number, second, tuple(sorted(before - after)), tuple(sorted(after - before)))


def _lay_out(number: int, reflog: Reflog, content: Content, mfs: Path) -> None:
    """Put what a run took from iptf://mfs where it took it from, as it was at first."""
    moves = reflog.moves(number)
    outlines: dict[Path, Cid] = {}
    for read in reflog.reads(number):
        place = parse_uri(read.uri)
        if read.own or not isinstance(place, MutablePath) or _put_by_run(read, moves):
            continue
        target, cid = mfs.joinpath(*place.names), Cid.parse(read.cid)
        if content.stat(ContentPath(cid)).kind is EntryKind.DIRECTORY:
            outlines.setdefault(target, cid)
        elif not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            content.get(ContentPath(cid), target)
    for uri in reflog.found_folders(number):
        mfs.joinpath(*mutable(uri).names).mkdir(parents=True, exist_ok=True)
    for folder, cid in outlines.items():
        folder.mkdir(parents=True, exist_ok=True)
        for entry in content.ls(ContentPath(cid)):
            path = folder / entry.name
            # What was listed and not read has its name, and no more.
            if entry.kind is EntryKind.DIRECTORY:
                path.mkdir(exist_ok=True)
            elif not path.exists():
                path.touch()


def _put_by_run(read: Read, moves: dict[str, float]) -> bool:
    """Whether the run itself had moved it there, and will again."""
    return any(
        f"{read.uri}/".startswith(f"{uri}/") and moved <= read.first_time
        for uri, moved in moves.items()
    )
