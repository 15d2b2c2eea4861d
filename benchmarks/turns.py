"""Processes that are set against each other: each stays, and takes a turn when told to.

Machines are noisy for seconds at a time. What takes turns meets the same noise, so that of many
turns the median of ratios holds still.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict

from benchmarks.engine_nets import ROOT
from trainyard.engine.worker import Job

_LOG = "children.log"
_END_S = 10.0


class Part(BaseModel):
    """What a process computes in each of its turns: by the engine or by Keras."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["ours", "fit"]
    job: Job
    segments: int
    replays: bool = False


class Turn(BaseModel):
    """What a segment took, on average. Those of `fit` have no trace, and are not replayed."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float
    # States and their hashes; and, apart, states on disk, which a run goes on from after a crash.
    trace_s: float = 0.0
    keep_s: float = 0.0
    # Both again, with all processor time of the thread that writes, as if it had no core beside.
    whole_s: float = 0.0
    replay_s: float = 0.0


class Player:
    """A process that takes turns, once it is ready."""

    def __init__(self, asking: IO[str], answering: IO[str], log: Path) -> None:
        self._asking, self._answering, self._log = asking, answering, log

    def wait_until_ready(self) -> None:
        self._answer()

    def begin(self) -> None:
        self._asking.write("go\n")
        self._asking.flush()

    def end(self) -> Turn:
        return Turn.model_validate_json(self._answer())

    def turn(self) -> Turn:
        self.begin()
        return self.end()

    def _answer(self) -> str:
        line = self._answering.readline()
        if not line:
            raise RuntimeError(f"a process ended: {self._log.read_text()[-2000:]}")
        return line


@contextmanager
def playing(module: str, part: Part) -> Iterator[Player]:
    """Run `benchmarks.<module>` with a part; it ends with the block."""
    part.job.folder.mkdir(parents=True)
    path, log = part.job.folder / "part.json", part.job.folder / _LOG
    path.write_text(part.model_dump_json())
    with log.open("w") as errors:
        child = subprocess.Popen(
            [sys.executable, "-m", f"benchmarks.{module}", str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    asking, answering = child.stdin, child.stdout
    if asking is None or answering is None:
        raise TypeError("a child is asked and answers by pipes")
    try:
        yield Player(asking, answering, log)
    finally:
        # Who has children of its own ends them once there is nothing more to read.
        asking.close()
        try:
            child.wait(_END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
        answering.close()


def read_part() -> Part:
    """The part that this process was given."""
    return Part.model_validate_json(Path(sys.argv[1]).read_bytes())


def say_ready() -> None:
    print("ready", flush=True)


def answer(turn: Turn) -> None:
    print(turn.model_dump_json(), flush=True)
