"""The market beside what one would take instead: `make bench-end-to-end`.

    python -m benchmarks.end_to_end [--quick] [--nets ...]     tables; last, one line of JSON

LeNet-5 on MNIST and a CNN on CIFAR-10, with the same first weights, batches, optimiser, threads and
cores: by Keras' `fit`; by two workers of MultiWorkerMirroredStrategy, launched by hand; by two
clients of Flower under FedAvg; and by `trainyard.fit` on a devnet with real agents.

Time is from the call, or the launch; whoever starts processes for it pays for their start. Each way
keeps weights with their times as it goes on, after each epoch, round or some segments. Time to the
goal is until the first of them that reach the accuracy that is named, and on the market what comes
after the last step besides: audits, settling, fetching. The total is until the last weights are in
hand.

Processor time is that of all processes, those included that have ended
(`benchmarks.end_to_end_accounts`); training and checking are the processes that agents started for
a task, without the agents, which poll, and without agents that had no part in it. Where workers
train together each checks a segment before it signs, which counts as training.

Bytes are what passes from one party to another, without the records, which everybody has from the
start. On the market they are what workers send each other, by their journals, and all that passes
the gateways of workers, auditors and requester, both ways, headers and all; what nobody fetches is
not sent. For MultiWorkerMirroredStrategy they are what the loopback carries, so with the headers of
TCP and what workers say beside gradients; for Flower its parameters as they are serialised, both
ways.
"""

import os
import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.end_to_end_counting import counted
from benchmarks.end_to_end_figures import (
    COARSE,
    FIT,
    FLOWER,
    MIRRORED,
    REPLICATE,
    ROUNDS,
    SINGLE,
    SYNC,
    Row,
    Scaling,
    beside,
    figures,
)
from benchmarks.end_to_end_jobs import Job, Moments, Outcome, weights_file
from benchmarks.end_to_end_market import Traded, Yard, running_yard
from benchmarks.end_to_end_models import Trial, try_out
from benchmarks.end_to_end_nets import NETS, QUICK, RATE, Net, prepare
from benchmarks.reporting import report
from trainyard.engine.energy import BASES, Power, find_power
from trainyard.sdk.composing import SEGMENTS

_ROOT = Path(__file__).resolve().parent.parent
_FLOWER = _ROOT / "build" / "flower" / "bin" / "python"
_CORES = WORKERS = 2
_AUDITS = 2
_COPIES, _QUICK_COPIES = 3, 2
# What Flower and Ray would otherwise tell their makers, or keep at home.
_FLOWERS = {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}
_MODULES = {FIT: "end_to_end_fit", MIRRORED: "end_to_end_mirrored", FLOWER: "end_to_end_flower"}
_ON_MARKET: dict[str, dict[str, Any]] = {
    SINGLE: {"threads": _CORES},
    COARSE: {"threads": _CORES},
    SYNC: {"mode": "sync", "workers": WORKERS},
    ROUNDS: {"mode": "rounds", "workers": WORKERS, "rounds_wish": {"compression": "int8"}},
    REPLICATE: {"threads": _CORES, "verify": f"replicate:{_COPIES}"},
}
_REPEATED = (SINGLE, COARSE)


@dataclass(frozen=True, slots=True)
class _Measured:
    """A row that lacks its accuracies, and what they are to be found by."""

    row: Row
    trial: Trial


class Bench:
    """All measurements of one run, in one folder."""

    def __init__(self, folder: Path, nets: Sequence[Net], *, quick: bool) -> None:
        self._folder, self._nets, self._quick = folder, nets, quick
        self._power = find_power()

    def rows(self) -> list[Row]:
        for net in self._nets:
            prepare(net, self._folder / net.name)
        found: list[_Measured] = []
        for net in self._nets:
            ways = (FIT, FLOWER) if self._quick else (FIT, MIRRORED, FLOWER)
            found += [self._without_market(net, way) for way in ways]
        found += self._on_market()
        if not self._quick:
            # Once more at the end: what is compared should not be that the machine was another.
            again = {net.name: self._without_market(net, FIT, "-again") for net in self._nets}
            found = [
                replace(one, row=_mean(one.row, again[one.row.net].row))
                if one.row.way == FIT
                else one
                for one in found
            ]
        return self._tried(found)

    def _job(self, net: Net, way: str, suffix: str = "", **changes: Any) -> Job:
        folder = self._folder / net.name
        name = "".join(letter for letter in way.lower() if letter.isalpha())
        return replace(
            Job(
                data=folder,
                model=folder / "model.keras",
                folder=folder / f"{name}{suffix}",
                records=net.records,
                epochs=net.epochs,
                batch=net.batch,
                rate=RATE,
                local_steps=net.local_steps,
                steps_per_segment=-(-net.steps // net.segments),
                verify=f"audit:{_AUDITS}",
            ),
            **changes,
        )

    def _without_market(self, net: Net, way: str, suffix: str = "") -> _Measured:
        alone = way == FIT
        shape = {"threads": _CORES} if alone else {"workers": WORKERS}
        job = self._job(net, way, suffix, **shape)
        python = str(_FLOWER) if way == FLOWER else sys.executable
        cpu_s = counted(
            [python, "-m", f"benchmarks.{_MODULES[way]}", str(job.save())],
            job.folder,
            alone=not alone,
            environment=_FLOWERS | {"FLWR_HOME": str(job.folder / "flwr")},
        )
        outcome = Outcome.load(job)
        _tell(net, way, outcome)
        row = self._row(net, way, job, outcome, cpu_s, peer_bytes=outcome.sent_bytes)
        return _Measured(row, Trial(weights_file(job), net.goal, Moments.of(job)))

    def _on_market(self) -> Iterator[_Measured]:
        ways = [way for way in _ON_MARKET if not (self._quick and way == SYNC)]
        trainers = _QUICK_COPIES if self._quick else _COPIES
        with running_yard(self._folder / "net", trainers) as yard:
            for net in self._nets:
                yard.keep(self._job(net, SINGLE))
                for way in ways:
                    for number in range(net.repeats if way in _REPEATED else 1):
                        cut = net.coarse if way == COARSE else net
                        yield self._traded(yard, cut, way, f"-{number + 1}")

    def _traded(self, yard: Yard, net: Net, way: str, suffix: str) -> _Measured:
        changes = _ON_MARKET[way] | {"devnet": yard.net.place.folder}
        if self._quick and way == REPLICATE:
            changes |= {"verify": f"replicate:{_QUICK_COPIES}"}
        job = self._job(net, way, suffix, **changes)
        found = yard.train(job)
        if way != REPLICATE and found.audits != _AUDITS:
            raise SystemExit(f"{net.name}, {way}: {found.audits} of {_AUDITS} audits were done")
        _tell(net, way, found.outcome)
        row = self._row(
            net,
            way,
            job,
            found.outcome,
            found.cpu_s,
            peer_bytes=found.peer_bytes,
            content_bytes=found.content_bytes,
            gas=found.gas,
            segments=-(-job.steps // job.steps_per_segment),
            steps_s=found.steps_s,
            tail_s=found.outcome.seconds - found.moments[-1].at_s,
            **_checking(job, found),
        )
        trial = Trial(weights_file(job), net.goal, found.moments, found.manifest)
        return _Measured(row, trial)

    def _row(
        self, net: Net, way: str, job: Job, outcome: Outcome, cpu_s: float, **more: Any
    ) -> Row:
        return Row(
            net=net.name,
            way=way,
            goal=net.goal,
            steps=job.steps,
            seconds=outcome.seconds,
            accuracy=float("nan"),
            cpu_s=cpu_s,
            energy_j=_energy_j(self._power, cpu_s),
            **more,
        )

    def _tried(self, measured: Sequence[_Measured]) -> list[Row]:
        found = []
        for net in self._nets:
            own = [one for one in measured if one.row.net == net.name]
            folder = self._folder / net.name
            tried = try_out(
                folder / "model.keras", folder / "test", [one.trial for one in own], net.tried
            )
            found += [
                replace(one.row, accuracy=right.accuracy, reached_s=right.reached_s)
                for one, right in zip(own, tried, strict=True)
            ]
        return found


def _checking(job: Job, found: Traded) -> dict[str, float]:
    """Who trained, and who did it once more: auditors, or all workers but one.

    Those who trained are who took most; of the others some got ready, and had no part in it.
    """
    if job.verify.startswith("replicate"):
        first, *others = found.trainers
        return {"training_cpu_s": first, "checking_cpu_s": sum(others)}
    trained = sum(found.trainers[: job.workers])
    return {"training_cpu_s": trained, "checking_cpu_s": found.auditors}


def _energy_j(power: Power | None, cpu_s: float) -> float | None:
    """As the engine estimates it; with counters instead of watts, nothing is known of others."""
    return cpu_s * power.core_w if power is not None and power.counters is None else None


def _mean(row: Row, again: Row) -> Row:
    return replace(
        row,
        seconds=(row.seconds + again.seconds) / 2,
        cpu_s=(row.cpu_s + again.cpu_s) / 2,
    )


def _tell(net: Net, way: str, outcome: Outcome) -> None:
    print(f"{net.name}, {way}: {outcome.seconds:.1f} s", file=sys.stderr, flush=True)


def show(rows: Sequence[Row], power: Power | None, *, quick: bool) -> None:
    basis = "nothing is known" if power is None else f"codecarbon, {BASES[power.by]}"
    table = Table(
        title="From the call to the weights" + (", QUICK" if quick else ""),
        caption=f"energy is an estimate ({basis}); checking is CPU beside that of training",
    )
    table.add_column("net")
    table.add_column("way")
    headings = (
        "accuracy",
        "to goal s",
        "total s",
        "CPU s",
        "sent MB",
        "energy J",
        "gas",
        "checking",
    )
    for heading in headings:
        table.add_column(heading, justify="right")
    for row in rows:
        reached = row.to_goal_s
        table.add_row(
            f"{row.net} ≥ {row.goal:.2f}",
            row.way,
            f"{row.accuracy:.4f}",
            "not reached" if reached is None else f"{reached:.1f}",
            f"{row.seconds:.1f}",
            f"{row.cpu_s:.1f}",
            f"{row.sent_bytes / 1e6:.1f}" if row.sent_bytes else "-",
            "-" if row.energy_j is None else f"{row.energy_j:,.0f}",
            "-" if row.gas is None else f"{row.gas:,}",
            "-" if row.share is None else f"{row.share:.1%}",
        )
    Console(width=None if sys.stdout.isatty() else 120).print(table)


def _words(net: str, scaling: Scaling) -> str:
    training, audit = scaling.training, scaling.audit
    return (
        f"{net}: training {training.fixed:.1f} + {training.each:.4f} CPU-s a step, "
        f"an audit {audit.fixed:.1f} + {audit.each:.4f} a step of its segment"
    )


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="a short LeNet-5 alone")
    parser.add_argument("--nets", nargs="+", choices=list(NETS), default=list(NETS))
    options = parser.parse_args()
    if not _FLOWER.exists():
        raise SystemExit(f"Flower is not in {_FLOWER.parents[1]}: run 'make flower'")
    # The same two cores for all, however many there are; children inherit them.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:_CORES])
    nets = [QUICK] if options.quick else [NETS[name] for name in options.nets]
    # A short name: Ray puts sockets below it.
    folder = Path(tempfile.mkdtemp(prefix="e2e-"))
    try:
        rows = Bench(folder, nets, quick=options.quick).rows()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    scalings = {
        net.name: Scaling.of(
            [row for row in rows if row.net == net.name and row.way in (SINGLE, COARSE)], _AUDITS
        )
        for net in nets
    }
    show(rows, find_power(), quick=options.quick)
    told = figures(rows, scalings.values(), segments=SEGMENTS, audits=_AUDITS)
    more = beside(rows) | {"rows": [asdict(row) for row in rows]}
    caption = "; ".join(_words(net, scaling) for net, scaling in scalings.items())
    sys.exit(report("The market beside the rest", told, caption, more))


if __name__ == "__main__":
    main()
