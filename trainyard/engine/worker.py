"""One worker of a run, as a process of its own: `python -m trainyard.engine.worker JOB`.

It reads its job and its data from files, keeps a journal, and talks to nobody but the peers in its
job. So whoever starts it can put it into a sandbox and put tunnels between it and its peers.
"""

import os
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

from trainyard.engine.addresses import Addresses
from trainyard.engine.causes import cause, is_lost_peer, lasting_cause
from trainyard.engine.costs import step_bytes
from trainyard.engine.energy import Energy, Meter, Power
from trainyard.engine.errors import RunError
from trainyard.engine.events import Ended, Failed, Finished, Started, Stepped, tell
from trainyard.engine.figures import Figures, Sums
from trainyard.engine.journal import Entry, Journal, Measured, Validated, held
from trainyard.engine.offers import Signers
from trainyard.engine.scoring import is_scored, score_of
from trainyard.engine.state import State
from trainyard.engine.summaries import SUMMARIES, Summaries
from trainyard.engine.tested import keep_tested
from trainyard.engine.writing import Writer
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest

if TYPE_CHECKING:
    from trainyard.engine.predicting import Predicting
    from trainyard.engine.rounds import RoundsTraining
    from trainyard.engine.training import Evaluation, Material, Outcome, Training

_TELL_EVERY_S = 0.2
MODEL = "model.keras"
EXIT_FAILED, EXIT_LOST_PEER = 1, 75


class Job(BaseModel):
    """All that a worker is given."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    manifest: Path
    folder: Path
    train: Path
    validation: Path | None = None
    test: Path | None = None
    initial_state: Path | None = None
    slot: int = 0
    # Where the workers are reached, in the order of slots; none for a run of one process.
    peers: tuple[str, ...] = ()
    # The folder in which the workers of rounds meet.
    exchange: Path | None = None
    # The one core that it may use; any if not given.
    core: int | None = None
    # What this machine takes, if that is known.
    power: Power | None = None
    # By whom each of them signs what it sends, in the order of slots.
    signers: Signers = ()
    # In mode async: where all are reached, and whether this is the job of who leads.
    cluster: Addresses | None = None
    leads: bool = False


def main() -> None:
    job = Job.model_validate_json(Path(sys.argv[1]).read_bytes())
    if job.core is not None:
        os.sched_setaffinity(0, {job.core})
    try:
        work(job)
    except TrainyardError as error:
        tell(Failed(slot=job.slot, reason=str(error)))
        sys.exit(EXIT_FAILED)
    except Exception as error:
        reason = lasting_cause(error)
        if reason is not None:
            tell(Failed(slot=job.slot, reason=f"worker {job.slot}: {reason}"))
            _leave(EXIT_FAILED)
        if not is_lost_peer(error) or not (job.peers or job.cluster):
            raise
        tell(Failed(slot=job.slot, reason=cause(error), lost_peer=True))
        _leave(EXIT_LOST_PEER)


def _leave(status: int) -> None:
    """End at once: TensorFlow would wait for peers that are gone, or that wait for this one."""
    sys.stdout.flush()
    os._exit(status)


def work(job: Job) -> None:
    """Compute all segments that the journal does not have yet."""
    data = job.manifest.read_bytes()
    manifest = Manifest.parse(data)
    if job.exchange is not None:
        rounds = open_rounds(job, manifest)

        from trainyard.engine.round_worker import work_rounds

        work_rounds(job, rounds, job.exchange)
        return
    if job.cluster is not None and not job.leads:
        _set_up(manifest)

        from trainyard.engine.parameter_server import work_for

        work_for(job.cluster, job.slot, manifest.training.threads)
        return
    with held(job.folder):
        journal = Journal.open(job.folder, data)
        tested = None
        if manifest.training.predicts:
            # It has nothing but its states to show.
            _compute(job, manifest, journal, open_predicting(job, manifest))
        else:
            training = open_training(job, manifest)
            tested = _conclude(job, manifest, training, _compute(job, manifest, journal, training))
        tell(Ended(slot=job.slot, root=journal.trace.root.hex(), tested=tested))


def open_predicting(job: Job, manifest: Manifest) -> "Predicting":
    _set_up(manifest)

    from trainyard.engine.data import open_folder
    from trainyard.engine.predicting import Predicting
    from trainyard.engine.program import build_network

    data = open_folder(manifest.data.train, job.train)
    return Predicting(manifest, build_network(manifest), data)


def open_training(job: Job, manifest: Manifest) -> "Training":
    """What computes the segments of a manifest that trains, in any mode."""
    if manifest.training.mode == "rounds":
        return open_rounds(job, manifest)
    _set_up(manifest)

    if job.cluster is not None:
        from trainyard.engine.asynchronous import open_async

        return open_async(manifest, _open_material(job, manifest), job.cluster)

    from trainyard.engine.program import build
    from trainyard.engine.training import Place, Training

    place = None
    if job.peers:
        from trainyard.engine.cluster import join

        if len(job.peers) != manifest.training.workers:
            raise RunError(
                f"the manifest is for {manifest.training.workers} workers, "
                f"and {len(job.peers)} are named"
            )
        place = Place(job.slot, join(job.peers, job.slot))
    return Training(manifest, build(manifest), _open_material(job, manifest), place)


def _set_up(manifest: Manifest) -> None:
    """Before anything that imports TensorFlow is imported."""
    from trainyard.engine import runtime
    from trainyard.engine.classes import require_class

    require_class(manifest)
    runtime.start(manifest.training.threads)


def open_rounds(job: Job, manifest: Manifest) -> "RoundsTraining":
    _set_up(manifest)

    from trainyard.engine.program import build
    from trainyard.engine.rounds import RoundsTraining

    return RoundsTraining(manifest, build(manifest), _open_material(job, manifest))


def _open_material(job: Job, manifest: Manifest) -> "Material":
    from trainyard.engine.data import open_folder
    from trainyard.engine.training import Material, validation_source

    source = validation_source(manifest)
    validation = None
    if source is not None:
        if job.validation is None:
            raise RunError("the manifest has records to validate with, and the job has not")
        validation = open_folder(source, job.validation)
    return Material(open_folder(manifest.data.train, job.train), validation)


def initial_weights(job: Job) -> State | None:
    """The state whose weights the manifest begins with, if not by its seed."""
    return None if job.initial_state is None else State.load(job.initial_state)


def _compute(
    job: Job, manifest: Manifest, journal: Journal, training: "Training | Predicting"
) -> State:
    """All segments that the journal does not have yet; the last state."""
    plan = manifest.plan
    tell(
        Started(
            slot=job.slot, resumed=len(journal.entries), steps=plan.steps, segments=plan.segments
        )
    )
    if not journal.entries or manifest.training.predicts:
        state = training.start(initial_weights(job))
    if not journal.entries:
        entry = Entry(number=0, state=state.hash.hex(), step=0)
        journal.append(entry, state)
        tell(Finished(slot=job.slot, entry=entry))
    else:
        state = journal.state(len(journal.entries) - 1)
    telling = Telling(job.slot, manifest.training.batch)
    # Of an async run this is only who leads: nobody measures what its workers take.
    meter = Meter(None if job.leads else job.power)
    summaries = Summaries(job.folder / SUMMARIES)
    segments = range(len(journal.entries) - 1, plan.segments)

    def kept(entry: Entry) -> None:
        tell(Finished(slot=job.slot, entry=entry))
        # The workers of a run all have the same figures: those of the first are enough.
        if job.slot == 0:
            summaries.write(entry)

    with Writer(journal, kept) as writer:
        for segment in segments:
            outcome = training.run(segment, state, telling)
            steps = _step(outcome.state) - _step(state)
            state = outcome.state
            sent_bytes = steps * step_bytes(manifest) if job.peers or job.leads else 0
            writer.append(partial(_entry, outcome, sent_bytes, meter.take()), state)
    return state


def _conclude(job: Job, manifest: Manifest, training: "Training", state: State) -> Measured | None:
    """What one of the workers does with the last state."""
    if job.slot != 0:
        return None
    tested = finish(job, manifest, training, state)
    if tested is not None:
        keep_tested(job.folder, tested)
    if is_scored(manifest):
        score_of(manifest, training, state, tested).save(job.folder)
    return tested


def finish(job: Job, manifest: Manifest, training: "Training", state: State) -> Measured | None:
    """Keep the trained model in Keras' own form, and try it on the records for that."""
    training.export(state, job.folder / MODEL)
    return try_out(job, manifest, training, state)


def try_out(job: Job, manifest: Manifest, training: "Training", state: State) -> Measured | None:
    """What a state makes of the test records, if there are any."""
    from trainyard.engine.data import open_folder

    source = manifest.data.test
    if source is None or job.test is None:
        return None
    return measured(training.evaluate(state, source, open_folder(source, job.test)))


class Telling:
    """Tells of steps, but not of more than somebody can follow."""

    def __init__(self, slot: int, batch: int) -> None:
        self._slot, self._batch = slot, batch
        self._told_at = time.monotonic()
        self._since = 0

    def __call__(self, step: int, sums: Sums) -> None:
        self._since += 1
        passed = time.monotonic() - self._told_at
        if passed >= _TELL_EVERY_S:
            pace = self._since * self._batch / passed
            tell(Stepped(slot=self._slot, step=step, loss=sums.loss, examples_per_s=pace))
            self._told_at += passed
            self._since = 0


def _entry(outcome: "Outcome", sent_bytes: int, energy: Energy | None) -> Entry:
    began = time.perf_counter()
    _ = outcome.state.hash
    hash_s = time.perf_counter() - began
    return Entry(
        number=outcome.segment + 1,
        state=outcome.state.hash.hex(),
        step=_step(outcome.state),
        stop=outcome.stop,
        trained=None if outcome.figures is None else measured(outcome.figures),
        validated=validated(outcome.evaluations),
        train_s=outcome.train_s,
        trace_s=outcome.trace_s + hash_s,
        sent_bytes=sent_bytes,
        energy=energy,
    )


def _step(state: State) -> int:
    return int(state.tensors["run/step"])


def measured(figures: Figures) -> Measured:
    return Measured(loss=figures.loss, metrics=figures.metrics, examples=figures.examples)


def validated(evaluations: Sequence["Evaluation"]) -> tuple[Validated, ...]:
    return tuple(
        Validated(epoch=one.epoch, step=one.step, **measured(one.figures).model_dump())
        for one in evaluations
    )


if __name__ == "__main__":
    main()
