"""How well a tolerance tells honest machines from cheats: `python -m benchmarks.tolerance`.

Other machines are stood in for by other numerics on this one: threads, oneDNN, and instructions.
Every pair of them is an honest worker with an honest auditor; a cheat meets every auditor.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from benchmarks.tolerance_child import CHEATS, LENGTHS, NETS, Job, end_file, start_file
from trainyard.engine.runtime import BEST, Numerics
from trainyard.engine.state import State
from trainyard.engine.tolerance import DEFAULT_THRESHOLD, Deviation, deviation

_OFF = Numerics(onednn=False)
# The first leads: it computes where all start from, and the cheats.
_MACHINES: dict[str, tuple[int, Numerics]] = {
    "best-1": (1, BEST),
    "best-2": (2, BEST),
    "off-1": (1, _OFF),
    "avx-1": (1, Numerics(newest_instructions="AVX")),
    "off-2": (2, _OFF),
    "sse-2": (2, Numerics(onednn=False, newest_instructions="SSE41")),
}
_QUICK = ("best-1", "best-2", "off-1", "avx-1")
# The threshold was chosen by the full run; the quick one tries it on a seed that had no part in it.
_SEEDS, _QUICK_SEEDS = (0, 1, 2), (3,)
_STARTS = (0, 100)


@dataclass(frozen=True, slots=True)
class Trial:
    """One comparison. `cheat` is empty for an honest worker."""

    net: str
    length: int
    cheat: str
    found: Deviation

    @property
    def figure(self) -> float:
        """As if a cheat gave all counters the values that they should have."""
        return max(self.found.weights, self.found.optimizer)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one optimiser, four machines")
    parser.add_argument("--threshold", type=float, default=DEFAULT_THRESHOLD)
    options = parser.parse_args()
    machines = _QUICK if options.quick else tuple(_MACHINES)
    seeds = _QUICK_SEEDS if options.quick else _SEEDS
    with tempfile.TemporaryDirectory(prefix="trainyard-tolerance-") as name:
        folder = Path(name)
        compute(folder, machines, seeds)
        trials = list(compare(folder, machines, seeds))
    report(trials, options.threshold)


def compute(folder: Path, machines: tuple[str, ...], seeds: tuple[int, ...]) -> None:
    leader, *others = machines
    _run(folder, leader, seeds, leads=True)
    with ThreadPoolExecutor(max_workers=2) as pool:
        for done in [pool.submit(_run, folder, one, seeds) for one in others]:
            done.result()


def _run(folder: Path, machine: str, seeds: tuple[int, ...], *, leads: bool = False) -> None:
    threads, numerics = _MACHINES[machine]
    job = Job(
        name=machine,
        threads=threads,
        numerics=numerics,
        folder=folder,
        seeds=seeds,
        starts=_STARTS,
        leads=leads,
    )
    path = folder / f"{machine}.json"
    path.write_text(job.model_dump_json())
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.tolerance_child", str(path)],
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode:
        raise SystemExit(f"{machine}: {done.stderr}")


def compare(folder: Path, machines: tuple[str, ...], seeds: tuple[int, ...]) -> Iterator[Trial]:
    for net in NETS:
        for seed in seeds:
            for first in _STARTS:
                start = State.load(start_file(folder, net, seed, first))
                for length in LENGTHS:
                    ends = {
                        who: State.load(end_file(folder, net, seed, first, length, who))
                        for who in (*machines, *CHEATS)
                    }
                    for one, other in permutations(machines, 2):
                        yield Trial(net, length, "", deviation(start, ends[one], ends[other]))
                    for cheat in CHEATS:
                        # Of a short segment it may be that nothing was left out.
                        if ends[cheat] == ends[machines[0]]:
                            continue
                        for auditor in machines:
                            found = deviation(start, ends[cheat], ends[auditor])
                            yield Trial(net, length, cheat, found)


def report(trials: list[Trial], threshold: float) -> None:
    print(
        f"{'steps':>5}  {'largest honest':>14}  {'of weights':>10}  {'in a tensor':>11}  "
        f"{'smallest cheat':>14}  {'which':>18}  {'FP':>6}  {'FN':>6}"
    )
    longest, wrongly_refused, wrongly_taken = 0, 0.0, 0.0
    separated = True
    for length in LENGTHS:
        honest = [one for one in trials if one.length == length and not one.cheat]
        cheats = [one for one in trials if one.length == length and one.cheat]
        refused = sum(one.figure > threshold for one in honest) / len(honest)
        taken = sum(one.figure <= threshold for one in cheats) / len(cheats)
        least = min(cheats, key=lambda one: one.figure)
        print(
            f"{length:>5}  {max(one.figure for one in honest):>14.6f}  "
            f"{max(one.found.weights for one in honest):>10.6f}  "
            f"{max(max(one.found.tensors.values()) for one in honest):>11.6f}  "
            f"{least.figure:>14.4f}  {least.cheat + ' ' + least.net:>18}  "
            f"{refused:>6.4f}  {taken:>6.4f}"
        )
        separated = separated and refused == taken == 0
        if separated:
            longest = length
        # Of the longest segment for which both are nought, or of the shortest that there is.
        if separated or length == LENGTHS[0]:
            wrongly_refused, wrongly_taken = refused, taken
    print(f"\n{'smallest by cheat':>17}  " + "  ".join(f"{length:>8}" for length in LENGTHS))
    for cheat in CHEATS:
        least_by = [
            min((t.figure for t in trials if (t.cheat, t.length) == (cheat, length)), default=None)
            for length in LENGTHS
        ]
        shown = "  ".join("       -" if one is None else f"{one:8.4f}" for one in least_by)
        print(f"{cheat:>17}  {shown}")
    print(f"\n{'honest by net':>17}  " + "  ".join(f"{length:>8}" for length in LENGTHS))
    for net in NETS:
        most = [
            max(t.figure for t in trials if (t.net, t.length, t.cheat) == (net, length, ""))
            for length in LENGTHS
        ]
        print(f"{net:>17}  " + "  ".join(f"{one:8.6f}" for one in most))
    print(f"\nthreshold {threshold}; honest comparisons and cheats met: {_counts(trials)}")
    print(
        json.dumps(
            {
                "tolerance_false_positive": wrongly_refused,
                "tolerance_false_negative": wrongly_taken,
                "tolerance_longest_segment": longest,
            }
        )
    )


def _counts(trials: list[Trial]) -> str:
    honest = sum(not one.cheat for one in trials)
    return f"{honest} and {len(trials) - honest}"


if __name__ == "__main__":
    main()
