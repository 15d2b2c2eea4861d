"""How surely a cheat is caught: `python -m benchmarks.gauntlet [--quick]`.

Whether a cheat changes a segment is measured: each is trained by the cheating agent's own engine,
and every segment computed again by an honest one. Which segments are looked at is then drawn by the
market's own rule, over thousands of block hashes. The full form trains with several seeds and plays
whole tasks on a real chain, also with cheats that only a market has. The last line is JSON.
"""

import json
import subprocess
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from itertools import repeat
from pathlib import Path
from statistics import mean
from typing import Literal, TypeAlias

from rich.console import Console
from rich.table import Table

from benchmarks.gauntlet_chain import play_tasks
from benchmarks.gauntlet_nets import NETS, manifest_of, write_records
from benchmarks.reporting import code_of
from trainyard.engine.auditing import audit
from trainyard.engine.journal import Journal, write_whole
from trainyard.engine.material import Files
from trainyard.engine.supervisor import Jobs
from trainyard.engine.worker import Job
from trainyard.protocol.draws import draw_segments, panel_seed
from trainyard.protocol.incentives import detection, detection_theory
from trainyard.protocol.manifest import Manifest
from worker_agent.cheating.forging import fewer_records, noise, other_rate, reordered, spoil
from worker_agent.cheating.plan import Cheat, Plan

SEGMENTS, STEPS_PER_SEGMENT = 16, 2
# In a cluster and in rounds; of these each worker's part is a segment, and so is each merge.
WORKERS = 2
# Workers of one machine have a network of their own, where every port is free.
_PEERS = tuple(f"127.0.0.1:{20_000 + slot}" for slot in range(WORKERS))
_Mode: TypeAlias = Literal["single", "sync", "rounds"]
_MODES: tuple[_Mode, ...] = ("single", "sync", "rounds")
AUDITS = (1, 2, 4)
_DRAWS, _QUICK_DRAWS = 20_000, 4_000
_FRACTION = 0.25
# In rounds one of two workers cheats, and only in its own parts or merges.
_PART_IN_ROUNDS = 0.25
# Some draws are luckier than others.
_SPREAD = 0.03
_SEEDS = 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One run that somebody trained, honest if there is no plan."""

    name: str
    net: str
    plan: Plan | None = None
    seed: int = 0
    mode: _Mode = "single"
    # The part of its segments that comes out wrong at least, as the cheat is planned.
    least: float = 0.9

    def on(self, net: str, seed: int) -> "Trial":
        """The same with another network, other numbers, and other segments to cheat on."""
        plan = self.plan and self.plan.model_copy(update={"seed": seed})
        return replace(self, net=net, seed=seed, plan=plan)

    @property
    def manifest(self) -> Manifest:
        return manifest_of(
            self.net,
            self.seed,
            SEGMENTS,
            STEPS_PER_SEGMENT,
            workers=1 if self.mode == "single" else WORKERS,
            local_steps=2 * STEPS_PER_SEGMENT if self.mode == "rounds" else None,
        )

    @property
    def module(self) -> str:
        if self.mode == "rounds":
            return "benchmarks.gauntlet_rounds"
        if self.mode == "sync":
            return "trainyard.engine.supervisor"
        is_skipped = self.plan is not None and self.plan.cheat in (Cheat.LAZY, Cheat.SKIP)
        return "worker_agent.cheating.engine" if is_skipped else "trainyard.engine.worker"


@dataclass(frozen=True, slots=True)
class Found:
    """A run, and for each of its segments whether an honest auditor comes to something else."""

    trial: Trial
    wrong: tuple[bool, ...]

    @property
    def fraction(self) -> float:
        return sum(self.wrong) / len(self.wrong)


_CHEATS = (
    Trial("lazy", "mlp", Plan(cheat=Cheat.LAZY)),
    Trial("skip", "mlp", Plan(cheat=Cheat.SKIP, fraction=_FRACTION), least=_FRACTION),
    Trial("half", "mlp", Plan(cheat=Cheat.SKIP, fraction=_FRACTION, done=0.5), least=_FRACTION),
    Trial("lr", "mlp", Plan(cheat=Cheat.LR)),
    Trial("data", "mlp", Plan(cheat=Cheat.DATA)),
    Trial("order", "mlp", Plan(cheat=Cheat.ORDER)),
    Trial("spoilt", "mlp", Plan(cheat=Cheat.GARBAGE)),
    Trial("garbage", "mlp", Plan(cheat=Cheat.GARBAGE), mode="sync"),
    Trial("delta", "mlp", Plan(cheat=Cheat.DELTA), mode="rounds", least=_PART_IN_ROUNDS),
    Trial("merge", "mlp", Plan(cheat=Cheat.MERGE), mode="rounds", least=_PART_IN_ROUNDS),
)
_MEANING = {
    "lazy": "states made up",
    "skip": "segments left out",
    "half": "half of the steps of segments left out",
    "lr": "another learning rate",
    "data": "half of the records",
    "order": "another order of the records",
    "spoilt": "bytes that are no states",
    "garbage": "in a cluster, gradients of noise sent to the other worker",
    "delta": "in rounds, another delta than computed",
    "merge": "in rounds, another merge than computed",
}


_FORGED_RECORDS = {Cheat.DATA: fewer_records, Cheat.ORDER: reordered}


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one network, no chain")
    options = parser.parse_args()
    nets = ["mlp"] if options.quick else list(NETS)
    seeds = range(1 if options.quick else _SEEDS)
    cheats = [one.on(net, seed) for net in nets for seed in seeds for one in _CHEATS]
    honest = [
        Trial("honest", net, seed=seed, mode=mode)
        for net in NETS
        for seed in seeds
        for mode in _MODES
    ]
    with tempfile.TemporaryDirectory(prefix="trainyard-gauntlet-") as name:
        found = list(measure(Path(name), [*cheats, *honest]))
    draws = _QUICK_DRAWS if options.quick else _DRAWS
    figures, goals = show(found, draws)
    if options.quick:
        console = Console(width=None if sys.stdout.isatty() else 100)
        console.print("cheats that only a market has are played by the full form alone")
    else:
        played = play_tasks()
        # Whoever was wronged on the chain counts like who would have been by an audit.
        played["honest_slashed"] += figures["honest_slashed"]
        figures |= played
        # On the chain each is caught, or it is no market.
        goals |= dict.fromkeys(played.keys() - {"honest_slashed"}, 1.0)
    print(json.dumps(figures))
    sys.exit(code_of(missed(figures, goals)))


def missed(figures: Mapping[str, float], goals: Mapping[str, float]) -> list[str]:
    """What was caught too seldom, and whether anybody honest was harmed."""
    seldom = [name for name, goal in goals.items() if figures[name] < goal]
    return seldom + [name for name in ("honest_slashed",) if figures[name]]


def measure(folder: Path, trials: Sequence[Trial]) -> Iterator[Found]:
    """Train each, and compute all of it again; two at once, since a start takes the longest."""
    write_records(folder / "records")
    with ThreadPoolExecutor(max_workers=2) as pool:
        places = [folder / str(index) for index in range(len(trials))]
        yield from pool.map(_try_out, trials, places, repeat(folder / "records"))


def _try_out(trial: Trial, folder: Path, records: Path) -> Found:
    manifest = trial.manifest
    run = folder / "run"
    _train(trial, manifest, folder, records)
    journal = Journal.read(run)
    answers = audit(run, Files(train=records), range(manifest.plan.segments)).answers
    claimed = [entry.state for entry in journal.entries[1:]]
    return Found(
        trial,
        tuple(answer.state != state for answer, state in zip(answers, claimed, strict=True)),
    )


def _train(trial: Trial, manifest: Manifest, folder: Path, records: Path) -> None:
    """As the cheating agent's runner does it, without the agent."""
    run, path = folder / "run", folder / "manifest.json"
    run.mkdir(parents=True)
    cheat = trial.plan and trial.plan.cheat
    path.write_bytes(other_rate(manifest) if cheat is Cheat.LR else manifest.canonical)
    train = records
    if cheat in _FORGED_RECORDS:
        train = _FORGED_RECORDS[cheat](records, folder / "forged")
    if trial.plan is not None:
        trial.plan.write(run)
    own, job = Job(manifest=path, folder=run, train=train), folder / "job.json"
    job.write_text((_joint(trial, own) if trial.mode == "sync" else own).model_dump_json())
    done = subprocess.run(
        [sys.executable, "-m", trial.module, str(job)], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"{trial.name}: {done.stdout[-500:]}{done.stderr[-500:]}")
    if cheat is Cheat.LR:
        write_whole(run / "manifest.json", manifest.canonical)
    if cheat is Cheat.GARBAGE and trial.mode == "single":
        spoil(run, seed=trial.seed)


def _joint(trial: Trial, own: Job) -> Jobs:
    """A cluster whose second worker is the cheat: the first one adds up what it is sent."""
    train, inputs = own.train, tuple(trial.manifest.data.train.inputs)
    if trial.plan is not None:
        train = noise(train, own.folder.parent / "forged", inputs)
    first = own.model_copy(update={"peers": _PEERS})
    update = {"slot": 1, "folder": own.folder.parent / "other", "train": train}
    return Jobs(jobs=(first, first.model_copy(update=update)))


def rate(wrong: Sequence[bool], audits: int, draws: int) -> float:
    """How often a block draws a segment that is wrong."""
    blocks = _drawn(len(wrong), audits, draws)
    return sum(any(wrong[segment] for segment in drawn) for drawn in blocks) / draws


@cache
def _drawn(segments: int, audits: int, draws: int) -> tuple[tuple[int, ...], ...]:
    """What blocks draw, which is the same whatever is wrong."""
    seeds = (
        panel_seed(sha256(b"block %d" % number).digest(), task=1 + number % 97)
        for number in range(draws)
    )
    return tuple(tuple(draw_segments(seed, segments, audits)) for seed in seeds)


def goal_of(trial: Trial) -> float:
    """How surely the cheat has to be caught, by theory and as it is planned."""
    return detection_theory(trial.least, AUDITS[-1]) - _SPREAD


def _by_cheat(found: Sequence[Found]) -> dict[tuple[str, str], list[Found]]:
    runs: dict[tuple[str, str], list[Found]] = {}
    for one in found:
        if one.trial.plan is not None:
            runs.setdefault((one.trial.name, one.trial.net), []).append(one)
    return runs


def show(found: Sequence[Found], draws: int) -> tuple[dict[str, float], dict[str, float]]:
    """Print it; the figures, and what they have to be at least."""
    table = Table(
        title="How often a cheat is caught",
        caption=f"n segments, of which k are drawn and the part f is wrong; {draws} draws",
    )
    for heading in ("cheat", "network", "runs", "n", "f", "k", "caught", "1-(1-f)^k", "exact"):
        table.add_column(heading, justify="left" if heading in ("cheat", "network") else "right")
    figures: dict[str, float] = {}
    goals: dict[str, float] = {}
    for (name, net), runs in _by_cheat(found).items():
        for audits in AUDITS:
            caught = [rate(one.wrong, audits, draws) for one in runs]
            fraction = mean(one.fraction for one in runs)
            theory = mean(detection_theory(one.fraction, audits) for one in runs)
            exact = mean(detection(one.wrong, audits) for one in runs)
            table.add_row(
                *(_MEANING[name], net, str(len(runs)), str(len(runs[0].wrong))),
                *(f"{fraction:.2f}", str(audits)),
                *(f"{mean(caught):.4f}", f"{theory:.4f}", f"{exact:.4f}"),
            )
            # Of all runs the least counts, with the most audits.
            if audits == AUDITS[-1]:
                known = figures.get(f"{name}_detected", 1.0)
                figures[f"{name}_detected"] = min(known, round(min(caught), 6))
                # Not by what was found wrong: who finds nothing would miss nothing.
                goals[f"{name}_detected"] = goal_of(runs[0].trial)
    honest = [one for one in found if one.trial.plan is None]
    slashed = sum(any(one.wrong) for one in honest)
    console = Console(width=None if sys.stdout.isatty() else 100)
    console.print(table)
    looked = sum(len(one.wrong) for one in honest)
    console.print(f"honest runs whose {looked} segments were all audited: {len(honest)}")
    console.print(f"of those, slashed: {slashed}")
    return {**figures, "honest_slashed": slashed}, goals


if __name__ == "__main__":
    main()
