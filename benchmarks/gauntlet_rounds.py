"""A run in rounds of two workers, the first of which may cheat: a process of `benchmarks.gauntlet`.

`python -m benchmarks.gauntlet_rounds JOB` computes all parts and merges one after the other, as the
cheating agent does them, and keeps them as a run that can be audited.
"""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.engine import worker
from trainyard.engine.exchange import Exchange
from trainyard.engine.journal import Entry, Journal
from trainyard.engine.launching import EXCHANGE
from trainyard.engine.state import State
from trainyard.engine.worker import Job
from trainyard.protocol.manifest import Local, Manifest
from worker_agent.cheating.plan import PLAN, Plan
from worker_agent.cheating.tampering import CheatingRounds

if TYPE_CHECKING:
    from trainyard.engine.rounds import RoundsTraining


def main() -> None:
    job = Job.model_validate_json(Path(sys.argv[1]).read_bytes())
    data = job.manifest.read_bytes()
    training = worker.open_rounds(job, Manifest.parse(data))
    cheating: RoundsTraining | CheatingRounds = training
    if (job.folder / PLAN).exists():
        cheating = CheatingRounds(training, Plan.read(job.folder))
    _compute(training, cheating, Journal.open(job.folder, data), job.folder / EXCHANGE)


def _compute(
    honest: "RoundsTraining",
    first: "RoundsTraining | CheatingRounds",
    journal: Journal,
    folder: Path,
) -> None:
    """The worker of slot 0, which leads, computes by `first`."""
    exchange, plan = Exchange(folder), honest.plan
    exchange.prepare()
    globe = honest.start()
    own: dict[int, State] = {}
    _keep(journal, globe)
    for number in range(plan.rounds):
        sent: dict[int, State] = {}
        for slot in range(plan.workers):
            training = honest if slot else first
            part = training.local(Local(number, slot), globe, own.get(slot))
            own[slot] = part.state
            if part.delta is not None:
                sent[slot] = part.delta
                exchange.put(part.delta)
            _keep(journal, part.state)
        globe = first.merge(number, globe, sent)
        _keep(journal, globe)


def _keep(journal: Journal, state: State) -> None:
    number = len(journal.entries)
    step = int(state.tensors["run/step"])
    journal.append(Entry(number=number, state=state.hash.hex(), step=step), state)


if __name__ == "__main__":
    main()
