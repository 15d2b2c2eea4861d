"""The market beside what one would take instead: `make bench-end-to-end`.

    python -m benchmarks.end_to_end [--quick] [--nets ...]     tables; last, one line of JSON

All of it takes about an hour on two cores, the quick form about three minutes.

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
a task, without the agents, which poll, and without agents that had no part in it. The gateways by
which agents show their content are such processes too, so what they take is within training and
checking. Where workers train together each checks a segment before it signs, which counts as
training.

Bytes are what passes from one party to another, without the records, which everybody has from the
start, also in the stores of the market. On the market they are what workers send each other, as
their journals compute it from the sizes of payloads, without the headers of TCP and TLS; and all
that passes the gateways of workers, auditors and requester, both ways, headers and all; what nobody
fetches is not sent. For MultiWorkerMirroredStrategy they are what the loopback carries, so with the
headers of TCP and what workers say beside gradients; for Flower its parameters as they are
serialised, both ways. Mode rounds is measured with its int8, a quarter of the bytes, where Flower
sends float32 as it does by itself.

The market and the agents are set as those of any devnet, so that what a task waits for challengers
is part of its time; the line of JSON has it apart too.

Each row is a line of JSON on stderr as soon as it is measured, without its accuracy, which is found
at the end. A way that fails is told of in the table and by the exit code, and the others go on.
"""

import json
import os
import shutil
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.end_to_end_counting import counted
from benchmarks.end_to_end_figures import (
    COARSE,
    FIT,
    FLOWER,
    MIRRORED,
    QUICK_LACKS,
    REPLICATE,
    ROUNDS,
    SINGLE,
    SYNC,
    Row,
    Scaling,
    apart,
    beside,
    figures,
)
from benchmarks.end_to_end_jobs import Job, Moments, Outcome, weights_file
from benchmarks.end_to_end_market import Traded, Yard, running_yard
from benchmarks.end_to_end_models import Trial, try_out
from benchmarks.end_to_end_nets import NETS, QUICK, RATE, Net, prepare
from benchmarks.end_to_end_tables import Failure, lines_of, show
from benchmarks.reporting import report
from trainyard.engine.energy import BASES, Power, find_watts

_ROOT = Path(__file__).resolve().parent.parent
_FLOWER = _ROOT / "build" / "flower" / "bin" / "python"
_CORES = WORKERS = 2
_AUDITS = 2
_COPIES = 3
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
# Of the quick form. A job so short does not tell how audits grow, and starting takes most of it.
_LEFT_OUT = (SYNC, COARSE, REPLICATE)
# For what a command leaves behind to end by itself.
_GRACE_S, _QUICK_GRACE_S = 20.0, 3.0


@dataclass(frozen=True, slots=True)
class Measured:
    """A row that lacks its accuracies, and what they are to be found by."""

    row: Row
    trial: Trial


class Bench:
    """All measurements of one run, in one folder."""

    def __init__(self, folder: Path, nets: Sequence[Net], *, quick: bool) -> None:
        self._folder, self._nets, self._quick = folder, nets, quick
        self._grace_s = _QUICK_GRACE_S if quick else _GRACE_S
        self._power = find_watts()
        self.failures: list[Failure] = []

    def rows(self) -> list[Row]:
        """All that came to an end; `failures` has the rest."""
        for net in self._nets:
            prepare(net, self._folder / net.name)
        ways = (FIT, FLOWER) if self._quick else (FIT, MIRRORED, FLOWER)
        found: list[Measured] = []
        for net in self._nets:
            for way in ways:
                found += self.tried_out(net, way, partial(self._without_market, net, way))
        found += self._on_market()
        if not self._quick:
            # Keras once more at the end: what is compared should not be that the machine was
            # another. Where it fails this time, the first time counts.
            for net in self._nets:
                if any((one.row.net, one.row.way) == (net.name, FIT) for one in found):
                    again = partial(self._without_market, net, FIT, "-again")
                    found += self.tried_out(net, FIT, again)
        return averaged(self._with_accuracies(found))

    def tried_out(self, net: Net, way: str, measure: Callable[[], Measured]) -> list[Measured]:
        """One more measurement, or one more failure: what there is already is worth hours."""
        try:
            found = measure()
        except (Exception, SystemExit) as error:
            self._fail(net, way, error)
            return []
        _tell(asdict(found.row))
        return [found]

    def _fail(self, net: Net, way: str, error: BaseException) -> None:
        failure = Failure(net.name, way, f"{type(error).__name__}: {error}")
        _tell({"failed": str(failure)})
        self.failures.append(failure)

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
                steps_per_segment=net.steps_per_segment,
                verify=f"audit:{_AUDITS}",
            ),
            **changes,
        )

    def _without_market(self, net: Net, way: str, suffix: str = "") -> Measured:
        alone = way == FIT
        shape = {"threads": _CORES} if alone else {"workers": WORKERS}
        job = self._job(net, way, suffix, **shape)
        python = str(_FLOWER) if way == FLOWER else sys.executable
        cpu_s = counted(
            [python, "-m", f"benchmarks.{_MODULES[way]}", str(job.save())],
            job.folder,
            alone=not alone,
            environment=_FLOWERS | {"FLWR_HOME": str(job.folder / "flwr")},
            grace_s=self._grace_s,
        )
        outcome = Outcome.load(job)
        row = self._row(net, way, job, outcome, cpu_s, peer_bytes=outcome.sent_bytes)
        return Measured(row, Trial(weights_file(job), net.goal, Moments.of(job)))

    def _on_market(self) -> list[Measured]:
        ways = [way for way in _ON_MARKET if not (self._quick and way in _LEFT_OUT)]
        trainers = WORKERS if self._quick else max(WORKERS, _COPIES)
        found: list[Measured] = []
        try:
            with running_yard(self._folder / "net", trainers) as yard:
                for net in self._nets:
                    yard.keep(self._job(net, SINGLE))
                    for way in ways:
                        cut = net.coarse if way == COARSE else net
                        for number in range(net.repeats if way in _REPEATED else 1):
                            measure = partial(self._traded, yard, cut, way, f"-{number + 1}")
                            found += self.tried_out(net, way, measure)
        except (Exception, SystemExit) as error:
            # No way of any network can be gone on a devnet that is not there.
            for net in self._nets:
                self._fail(net, "the market", error)
        return found

    def _traded(self, yard: Yard, net: Net, way: str, suffix: str) -> Measured:
        changes = _ON_MARKET[way] | {"devnet": yard.net.place.folder}
        job = self._job(net, way, suffix, **changes)
        found = yard.train(job, most=net.moments)
        if way != REPLICATE and found.audits != _AUDITS:
            raise SystemExit(f"{found.audits} of {_AUDITS} audits agree")
        row = self._row(
            net,
            way,
            job,
            found.outcome,
            found.cpu_s,
            peer_bytes=found.peer_bytes,
            content_bytes=found.content_bytes,
            gas=found.gas,
            segments=found.segments,
            steps_s=found.steps_s,
            tail_s=found.outcome.seconds - found.moments[-1].at_s,
            challenge_s=found.challenge_s,
            **checking(job, found),
        )
        trial = Trial(weights_file(job), net.goal, found.moments, found.manifest)
        return Measured(row, trial)

    def _row(
        self, net: Net, way: str, job: Job, outcome: Outcome, cpu_s: float, **more: Any
    ) -> Row:
        return Row(
            net=net.name,
            way=way,
            goal=net.goal,
            steps=job.steps,
            seconds=outcome.seconds,
            cpu_s=cpu_s,
            energy_j=_energy_j(self._power, cpu_s),
            **more,
        )

    def _with_accuracies(self, measured: Sequence[Measured]) -> list[Row]:
        found = []
        for net in self._nets:
            own = [one for one in measured if one.row.net == net.name]
            folder = self._folder / net.name
            trials = [one.trial for one in own]
            try:
                tried = try_out(folder / "model.keras", folder / "test", trials, net.tried)
            except SystemExit as error:
                self._fail(net, "trying its weights", error)
                found += [one.row for one in own]
                continue
            found += [
                replace(one.row, accuracy=right.accuracy, reached_s=right.reached_s)
                for one, right in zip(own, tried, strict=True)
            ]
        return found


def checking(job: Job, found: Traded) -> dict[str, float]:
    """Who trained, and who did it once more: auditors, or all workers but one.

    Those who trained are who took most; of the others some got ready, and had no part in it.
    """
    if job.verify.startswith("replicate"):
        first, *others = found.trainers
        return {"training_cpu_s": first, "checking_cpu_s": sum(others)}
    trained = sum(found.trainers[: job.workers])
    return {"training_cpu_s": trained, "checking_cpu_s": found.auditors}


def _energy_j(power: Power | None, cpu_s: float) -> float | None:
    """By the watts of a core in use, on all machines: counters would have others' work in them."""
    return None if power is None else cpu_s * power.core_w


def averaged(rows: Sequence[Row]) -> list[Row]:
    """One row of what Keras was measured twice for; all others as they are."""
    found: list[Row] = []
    for row in rows:
        place = next(
            (n for n, one in enumerate(found) if (one.net, one.way) == (row.net, FIT)), None
        )
        if row.way == FIT and place is not None:
            found[place] = _mean(found[place], row)
        else:
            found.append(row)
    return found


def _mean(row: Row, again: Row) -> Row:
    return replace(
        row,
        seconds=(row.seconds + again.seconds) / 2,
        cpu_s=(row.cpu_s + again.cpu_s) / 2,
        reached_s=_mean_of(row.reached_s, again.reached_s),
        energy_j=_mean_of(row.energy_j, again.energy_j),
    )


def _mean_of(one: float | None, other: float | None) -> float | None:
    """None where either is: what was reached once in two times was not reached."""
    return None if one is None or other is None else (one + other) / 2


def _tell(document: Mapping[str, Any]) -> None:
    """At once, and as one line: what comes later may fail."""
    print(json.dumps(document), file=sys.stderr, flush=True)


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
    folder = Path(tempfile.mkdtemp(prefix="e2e-"))
    bench = Bench(folder, nets, quick=options.quick)
    try:
        rows = bench.rows()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    scalings = {
        net.name: Scaling.of(
            [row for row in rows if row.net == net.name and row.way in (SINGLE, COARSE)], _AUDITS
        )
        for net in nets
    }
    power = find_watts()
    basis = "nothing is known" if power is None else f"codecarbon, {BASES[power.by]}"
    show(rows, bench.failures, basis, quick=options.quick)
    failed = list(map(str, bench.failures))
    told = figures(rows, scalings, audits=_AUDITS, failed=failed)
    told, unmeasured = apart(told, QUICK_LACKS if options.quick else ())
    more = beside(rows) | unmeasured | {"failed": failed, "rows": [asdict(row) for row in rows]}
    sys.exit(report("The market beside the rest", told, lines_of(scalings), more))


if __name__ == "__main__":
    main()
