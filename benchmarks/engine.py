"""What traces and several workers cost: `make bench-engine`.

    python -m benchmarks.engine [--quick]     the figures; last, one line of JSON

Each figure is a ratio against a baseline of the same run, taken turn by turn, since machines are
noisy; of the turns the median counts. Accuracy is that of an epoch of MNIST, over three seeds.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine_children import Turn
from benchmarks.engine_nets import LENET, NETS, ROOT, manifest_of
from benchmarks.engine_rounds import measure_rounds
from benchmarks.reporting import Figure, report
from examples.mnist.prepare import load_mnist
from trainyard.engine.auditing import audit
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.engine.state import State

_SEGMENT = 100
_STATE_BYTES = 100_000_000
_SPEED_STEPS = 15
_LOG = "children.log"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured."""

    # Of one process: how often each takes its turn, and of how many segments.
    turns: int
    turn_segments: int
    # Of two workers: how often each is run, and for how many segments.
    pairs: int
    segments: int


_QUICK = Effort(turns=3, turn_segments=1, pairs=1, segments=4)
_FULL = Effort(turns=7, turn_segments=5, pairs=5, segments=8)


@dataclass(frozen=True, slots=True)
class Pace:
    """One network by the engine and by Keras: medians over pairs of turns."""

    over_fit: float
    tracing: float
    replay: float
    fit_s: float


def measure_pace(net: str, records: Path, effort: Effort) -> Pace:
    manifest = manifest_of(
        net, batch=NETS[net], threads=2, steps_per_segment=_SEGMENT, until={"steps": 1_000_000}
    )
    path = records / "manifest.json"
    path.write_bytes(manifest.canonical)
    arguments = [str(path), str(records), str(effort.turn_segments)]
    with (
        _child(["ours", *arguments], records) as ours,
        _child(["fit", *arguments], records) as fit,
    ):
        for child in (ours, fit):
            _answer(child, records)
        pairs = [
            tuple(Turn.model_validate_json(_turn(child, records)) for child in (ours, fit))
            for _ in range(effort.turns)
        ]
    return Pace(
        over_fit=statistics.median(mine.seconds / theirs.seconds for mine, theirs in pairs),
        tracing=statistics.median(mine.trace_s / mine.seconds for mine, _ in pairs),
        replay=statistics.median(mine.replay_s / mine.seconds for mine, _ in pairs),
        fit_s=statistics.median(theirs.seconds for _, theirs in pairs),
    )


@contextmanager
def _child(arguments: list[str], records: Path) -> Iterator["subprocess.Popen[str]"]:
    with (records / _LOG).open("a") as log:
        child = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine_children", *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def _turn(child: "subprocess.Popen[str]", records: Path) -> str:
    if child.stdin is None:
        raise TypeError("a child's input is a pipe")
    child.stdin.write("go\n")
    child.stdin.flush()
    return _answer(child, records)


def _answer(child: "subprocess.Popen[str]", records: Path) -> str:
    line = "" if child.stdout is None else child.stdout.readline()
    if not line:
        raise RuntimeError(f"a process ended: {(records / _LOG).read_text()[-2000:]}")
    return line


def measure_start(folder: Path, files: Files) -> float:
    """What an auditor takes beyond its first segment's share: a process, and its functions."""
    manifest = manifest_of(LENET, batch=128, until={"steps": 2}, steps_per_segment=1)
    run_local(manifest, files, folder / "audited")
    began = time.perf_counter()
    audit(folder / "audited", files, [0, 1])
    return time.perf_counter() - began


def measure_speedup(folder: Path, files: Files, effort: Effort) -> float:
    """Two workers with a core each against one worker with one core, at the same global batch."""

    def pace(name: str, **changes: Any) -> float:
        manifest = manifest_of(
            LENET,
            batch=1024,
            threads=1,
            until={"steps": effort.segments * _SPEED_STEPS},
            steps_per_segment=_SPEED_STEPS,
            **changes,
        )
        journal = run_local(manifest, files, folder / name, pinned=True)
        # The first segment makes the functions; state 0 is none.
        return statistics.median(one.train_s + one.trace_s for one in journal.entries[2:])

    ratios = []
    for number in range(effort.pairs):
        alone = pace(f"alone-{number}")
        ratios.append(alone / pace(f"both-{number}", mode="sync", workers=2))
    return statistics.median(ratios)


def measure_state(turns: int) -> float:
    """A state of ten tensors: copied as from variables, laid out, and hashed."""
    random = np.random.default_rng(1)
    tensors = [random.random(_STATE_BYTES // 40, np.float32) for _ in range(10)]

    def once() -> float:
        began = time.perf_counter()
        state = State({f"weights/{n}": np.array(one) for n, one in enumerate(tensors)})
        _ = state.hash
        return time.perf_counter() - began

    once()
    return _STATE_BYTES / 1e6 / statistics.median(once() for _ in range(turns))


def prepare(folder: Path) -> Files:
    """MNIST as folders of arrays, and noise of the form of CIFAR-10: a step takes as long by it."""
    for part, arrays in load_mnist().items():
        (folder / part).mkdir()
        for name, values in arrays.items():
            np.save(folder / part / f"{name}.npy", values)
    (folder / "noise").mkdir()
    random = np.random.default_rng(1)
    np.save(folder / "noise" / "image.npy", random.integers(0, 256, (50_000, 32, 32, 3), np.uint8))
    np.save(folder / "noise" / "label.npy", random.integers(0, 10, 50_000, np.uint8))
    return Files(train=folder / "train", test=folder / "test")


def measure(folder: Path, effort: Effort) -> tuple[list[Figure], str]:
    files = prepare(folder)
    paces = {
        net: measure_pace(net, folder / ("noise" if "cifar" in net else "train"), effort)
        for net in NETS
    }
    speedup = measure_speedup(folder, files, effort)
    bytes_ratio, accuracy = measure_rounds(folder, files, quick=effort is _QUICK)
    start_s = measure_start(folder, files)
    told = ", ".join(
        f"{net.split('/')[1]} {pace.over_fit:.3f} (fit {pace.fit_s * 10:.1f} ms a step)"
        for net, pace in paces.items()
    )
    return [
        Figure(
            "single_over_fit_ratio",
            "single with its trace ÷ Keras fit, the worst of three nets",
            max(pace.over_fit for pace in paces.values()),
            1.05,
        ),
        Figure(
            "tracing_share",
            "tracing ÷ training, the worst of three nets",
            max(pace.tracing for pace in paces.values()),
            0.01,
        ),
        Figure(
            "replay_ratio",
            "replay of a segment ÷ its share of training",
            max(pace.replay for pace in paces.values()),
            1.1,
        ),
        Figure(
            "sync_speedup_2",
            "two workers, a core each ÷ one, LeNet-5 at batch 1024",
            speedup,
            1.75,
            at_least=True,
        ),
        Figure("rounds_bytes_ratio", "bytes of rounds ÷ bytes of sync", bytes_ratio, 1 / 150),
        Figure(
            "rounds_accuracy_delta",
            "accuracy of rounds - accuracy of sync, three seeds",
            accuracy,
            0.0,
            at_least=True,
        ),
        Figure(
            "state_mb_per_s",
            "a state of 100 MB and its hash, MB/s",
            measure_state(effort.turns),
            500,
            at_least=True,
        ),
    ], f"{told}; an auditor starts in {start_s:.1f} s, once for all its segments"


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer turns: under three minutes")
    effort = _QUICK if parser.parse_args().quick else _FULL
    folder = Path(tempfile.mkdtemp(prefix="bench-engine-"))
    try:
        figures, told = measure(folder, effort)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    report("Training with a trace", figures, told)


if __name__ == "__main__":
    main()
