"""What traces and several workers cost: `make bench-engine`.

    python -m benchmarks.engine [--quick]     the figures; last, one line of JSON

Each figure is a ratio against a baseline of the same run, taken turn by turn, since machines are
noisy; of the turns the median counts. Accuracy is that after three epochs of MNIST, in the quick
form after one, over three seeds.
"""

import math
import os
import shutil
import statistics
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.engine_nets import LENET, NETS, manifest_of
from benchmarks.engine_rounds import measure_rounds
from benchmarks.reporting import Figure, report
from benchmarks.turns import Part, Player, Turn, playing
from examples.mnist.prepare import load_mnist
from trainyard.engine.auditing import audit
from trainyard.engine.launching import run_local
from trainyard.engine.material import Files
from trainyard.engine.state import State
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Manifest

_STATE_BYTES = 100_000_000
_SPEED_STEPS = 15
_ENDLESS = {"steps": 1_000_000}


# How often each takes its turn. More turns, not longer ones: noise comes in bursts of seconds.
_TURNS, _QUICK_TURNS = 21, 4


@dataclass(frozen=True, slots=True)
class Pace:
    """One network by the engine and by Keras: medians over pairs of turns."""

    over_fit: float
    tracing: float
    keeping: float
    whole: float
    replay: float
    # Of Keras.
    step_s: float


def measure_pace(net: str, records: Path, folder: Path, turns: int) -> Pace:
    timing = NETS[net]
    manifest = manifest_of(
        net, batch=timing.batch, threads=2, steps_per_segment=timing.steps, until=_ENDLESS
    )
    part = Part(
        kind="ours",
        job=_job(manifest, folder / "ours", records),
        segments=timing.segments,
        replays=True,
    )
    fit = part.model_copy(update={"kind": "fit", "job": _job(manifest, folder / "fit", records)})
    pairs = _turns(turns, ("engine_children", part), ("engine_children", fit))
    return Pace(
        over_fit=statistics.median(mine.seconds / theirs.seconds for mine, theirs in pairs),
        tracing=statistics.median(mine.trace_s / mine.seconds for mine, _ in pairs),
        keeping=statistics.median(mine.keep_s / mine.seconds for mine, _ in pairs),
        whole=statistics.median(mine.whole_s / mine.seconds for mine, _ in pairs),
        replay=statistics.median(mine.replay_s / mine.seconds for mine, _ in pairs),
        step_s=statistics.median(theirs.seconds for _, theirs in pairs) / timing.steps,
    )


@dataclass(frozen=True, slots=True)
class Speedup:
    """Two workers in step against one, at the same global batch: medians over turns.

    Cores of a shared machine are unlike from minute to minute, and slower when both are busy, with
    whatever it is; workers in step go at the pace of the slower one. So beside the figure there is
    that against one worker on that core, while the other core computes the same for itself.
    """

    on_same_cores: float
    with_idle_neighbour: float


def measure_speedup(folder: Path, records: Path, turns: int) -> Speedup:
    changes = {"batch": 1024, "threads": 1, "steps_per_segment": _SPEED_STEPS, "until": _ENDLESS}
    single, manifest = manifest_of(LENET, **changes), {"mode": "sync", "workers": 2, **changes}
    cores = sorted(os.sched_getaffinity(0))[:2]
    alone = [_job(single, folder / f"alone-{core}", records) for core in cores]
    both = _job(manifest_of(LENET, **manifest), folder / "both", records)
    with ExitStack() as ending:
        parts = [
            _speed(job.model_copy(update={"core": core}))
            for job, core in zip(alone, cores, strict=True)
        ]
        lone = [ending.enter_context(playing("engine_children", part)) for part in parts]
        pair = ending.enter_context(playing("engine_pair", _speed(both)))
        for player in (*lone, pair):
            player.wait_until_ready()
        taken = [(_side_by_side(lone), pair.turn(), lone[0].turn()) for _ in range(turns)]
    return Speedup(
        on_same_cores=statistics.median(side / both.seconds for side, both, _ in taken),
        with_idle_neighbour=statistics.median(one.seconds / both.seconds for _, both, one in taken),
    )


def _side_by_side(players: Sequence[Player]) -> float:
    """What the slower of several workers took that know nothing of each other."""
    for player in players:
        player.begin()
    return max(player.end().seconds for player in players)


def _speed(job: Job) -> Part:
    return Part(kind="ours", job=job, segments=2)


def _turns(turns: int, *playing_parts: tuple[str, Part]) -> list[tuple[Turn, ...]]:
    """What each took in each of its turns; all start together, and are ready before the first."""
    with ExitStack() as ending:
        players = [ending.enter_context(playing(module, part)) for module, part in playing_parts]
        for player in players:
            player.wait_until_ready()
        return [tuple(player.turn() for player in players) for _ in range(turns)]


def _job(manifest: Manifest, folder: Path, records: Path) -> Job:
    path = folder.with_name(f"{folder.name}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(manifest.canonical)
    return Job(manifest=path, folder=folder, train=records)


def measure_start(folder: Path, files: Files) -> float:
    """What an auditor takes beyond its first segment's share: a process, and its functions."""
    manifest = manifest_of(LENET, batch=128, until={"steps": 2}, steps_per_segment=1)
    run_local(manifest, files, folder / "audited")
    began = time.perf_counter()
    audit(folder / "audited", files, [0, 1])
    return time.perf_counter() - began


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


def measure(folder: Path, *, quick: bool) -> tuple[list[Figure], str]:
    files = prepare(folder)
    turns = _QUICK_TURNS if quick else _TURNS
    paces = {
        net: measure_pace(
            net, folder / ("noise" if "cifar" in net else "train"), folder / "paces" / net, turns
        )
        for net in NETS
    }
    speedup = measure_speedup(folder / "speed", files.train, turns)
    bytes_ratio, accuracy = measure_rounds(folder, files, quick=quick)
    start_s = measure_start(folder, files)
    told = ", ".join(
        f"{net.split('/')[1]} {pace.over_fit:.3f} (fit {pace.step_s * 1000:.1f} ms a step; "
        f"states and hashes {pace.tracing:.4f}, files {pace.keeping:.4f}, and with all processor "
        f"time of the writing thread {pace.whole:.4f})"
        for net, pace in paces.items()
    )
    return [
        Figure(
            "single_over_fit_ratio",
            "single with its trace ÷ Keras fit as it comes, without XLA, the worst of three nets",
            max(pace.over_fit for pace in paces.values()),
            1.05,
        ),
        Figure(
            "tracing_share",
            "states, hashes and files ÷ training, the writer's time ÷ its two cores, the worst",
            max(pace.tracing + pace.keeping for pace in paces.values()),
            0.01,
        ),
        Figure(
            "tracing_cpu_share",
            "the same with the writer's time undivided, as if it had no core beside",
            max(pace.whole for pace in paces.values()),
            math.inf,
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
            speedup.with_idle_neighbour,
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
            measure_state(turns),
            500,
            at_least=True,
        ),
    ], (
        f"{told}; two workers ÷ one on the slower of the same cores {speedup.on_same_cores:.2f}; "
        f"an auditor starts in {start_s:.1f} s, once for all its segments"
    )


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="fewer turns: under three minutes")
    quick = parser.parse_args().quick
    folder = Path(tempfile.mkdtemp(prefix="bench-engine-"))
    try:
        figures, told = measure(folder, quick=quick)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(report("Training with a trace", figures, told))


if __name__ == "__main__":
    main()
