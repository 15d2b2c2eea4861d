"""One piece of work for a task, as a process of its own: `python -m worker_agent.work JOB`.

It has no key. What it is to do stands in its job, what it did in the task's folder, and why it
could not on its standard output.
"""

import json
import random
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.errors import SourceError, UnavailableError
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import Recomputed, inputs_in, recompute
from trainyard.engine.auditor import Inputs
from trainyard.engine.confining import Confinement
from trainyard.engine.errors import RunError
from trainyard.engine.journal import Journal, write_whole
from trainyard.engine.material import Files, fetch_files
from trainyard.engine.offers import OFFERS, SIGNERS, read_signers
from trainyard.engine.rescoring import audit_score_of_folder, audit_score_of_result
from trainyard.engine.results import Asked
from trainyard.engine.scoring import is_scored
from trainyard.engine.sealing import seal
from trainyard.engine.standby import Standby, standing_by
from trainyard.engine.unsealing import Evidence, NotServedError
from trainyard.protocol.commitments import scores_answer
from trainyard.protocol.errors import PermanentError, TrainyardError
from trainyard.protocol.manifest import Local, Manifest, ManifestError, RoundsPlan
from trainyard.protocol.market import UNSERVED
from trainyard.protocol.results import NONSENSE, Result, points
from worker_agent.jobs import AnswerJob, CardsJob, FetchJob, Job, SealJob, StandbyJob, read_job
from worker_agent.joining import fetch_card
from worker_agent.opening import open_agent_content, open_sandbox
from worker_agent.progress import (
    ANSWERS,
    CLAIM,
    DATA,
    EVIDENCE,
    FETCHED,
    REFUSED,
    RUN,
    SERVED,
    TRACE,
    WRONG,
    Shelf,
    answer_name,
)
from worker_agent.settings import Home, Settings, read_settings
from worker_agent.speed import estimate_hours, measured_speed

MANIFEST = "manifest.json"
_LOOK_S = 1.0
# How long the drawn segment of a task is asked for before that counts as a failure, and how often.
_SERVING_S, _AGAIN_S = 15.0, 0.2

# Computes segments of a task in the sandbox, each from its inputs.
Recompute = Callable[[Manifest, Files, Mapping[int, Inputs]], Recomputed]


def main() -> None:
    # In order: what runs in the sandbox has folders and control groups that are to be removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    job = read_job(Path(sys.argv[1]))
    home = Home(job.home)
    shelf = Shelf(home.task(job.task))
    settings = read_settings(home)
    content = open_agent_content(home, settings)
    try:
        match job:
            case FetchJob():
                _fetch(job, home, shelf, content)
            case CardsJob():
                _fetch_cards(job, content)
            case StandbyJob():
                _stand_by(job, settings, shelf, content)
            case SealJob() | AnswerJob():
                again = partial(_recompute_afresh, settings)
                _check_or_answer(job, settings, shelf, content, again)
    except TrainyardError as error:
        print(json.dumps({"reason": str(error)}), flush=True)
        sys.exit(1)
    finally:
        content.close()


# Before joining


def _fetch(job: FetchJob, home: Home, shelf: Shelf, content: Content) -> None:
    try:
        manifest = _manifest(job.manifest, shelf, content)
        _check_terms(job, manifest)
    except (ManifestError, RunError) as error:
        shelf.write({"reason": f"its manifest cannot be used: {error}"}, REFUSED)
        return
    fetch_files(manifest, content, shelf.path(DATA))
    size = sum(path.stat().st_size for path in shelf.path(DATA).rglob("*") if path.is_file())
    # Weights, what the optimiser keeps, gradients, and what a batch makes of it all.
    values = manifest.model.parameters * 5 + manifest.model.activations * manifest.training.batch
    resources = manifest.resources
    state_bytes = manifest.model.parameters * 12
    document = {
        "mode": manifest.training.mode,
        "workers": manifest.training.workers,
        "segments": manifest.plan.segments,
        "hours": estimate_hours(manifest, measured_speed(home.folder / "speed.json")),
        "memory_bytes": max((resources and resources.memory_bytes) or 0, values * 4 + (1 << 30)),
        "disk_bytes": max(
            (resources and resources.disk_bytes) or 0,
            size + 2 * state_bytes * (manifest.plan.segments + 1),
        ),
    }
    shelf.write(document, FETCHED)


def _manifest(digest: str, shelf: Shelf, content: Content) -> Manifest:
    path, cid = shelf.path(MANIFEST), Cid(Codec.RAW, bytes.fromhex(digest))
    # What a crash or a full disk cut short is not what the requester wrote.
    if not path.exists() or not cid.matches(path.read_bytes()):
        data = content.fetcher.get(cid).block
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    manifest = Manifest.parse(path.read_bytes())
    if manifest.digest.hex() != digest:
        raise RunError("it is not in its canonical form: post the digest of that")
    return manifest


def _check_terms(job: FetchJob, manifest: Manifest) -> None:
    training = manifest.training
    if manifest.environment not in (None, job.env_class):
        raise RunError("it is for another environment class than the task")
    if job.is_audited and manifest.plan.segments != job.segments:
        raise RunError(
            f"it makes {manifest.plan.segments} segments, and the task says {job.segments}"
        )
    # Without audits each slot may do all of it alone; but together they have to be as many.
    if training.workers != job.slots and (job.is_audited or training.workers > 1):
        raise RunError(f"it is for {training.workers} workers, and the task has {job.slots} slots")
    if job.is_audited and training.mode == "async":
        raise RunError("async cannot be audited: post it with the policy Score")
    if job.is_scored and not is_scored(manifest):
        raise RunError("only async is scored: post it with the policy Audit or Replicate")


def _fetch_cards(job: CardsJob, content: Content) -> None:
    """All that can be had: one that nobody serves must not hide the others."""
    failure: TrainyardError | None = None
    for digest in job.cards:
        try:
            fetch_card(content, bytes.fromhex(digest))
        except TrainyardError as error:
            failure = error
    if failure is not None:
        raise failure


# Ahead of what comes next


def _stand_by(job: StandbyJob, settings: Settings, shelf: Shelf, content: Content) -> None:
    with ExitStack() as parts:
        ready: Standby | None = None
        if job.inputs is not None:
            manifest = _manifest(job.manifest, shelf, content)
            files = fetch_files(manifest, content, shelf.path(DATA))
            folder = shelf.path(job.inputs).absolute()
            folder.mkdir(parents=True, exist_ok=True)
            ready = parts.enter_context(
                standing_by(manifest, files, open_sandbox(settings, is_tried=False), [folder])
            )
        told = _told(ready)
        if not isinstance(told, SealJob | AnswerJob):
            return
        if ready is None:
            again: Recompute = partial(_recompute_afresh, settings)
        else:
            again = partial(_recompute_by, ready)
        _check_or_answer(told, settings, shelf, content, again)


def _told(ready: Standby | None) -> Job | None:
    """What is to be done; None if whoever could say it is gone."""
    while not select.select([sys.stdin], [], [], _LOOK_S)[0]:
        if ready is not None:
            ready.look()
    path = sys.stdin.readline().strip()
    return read_job(Path(path)) if path else None


def _recompute_afresh(
    settings: Settings, manifest: Manifest, files: Files, segments: Mapping[int, Inputs]
) -> Recomputed:
    return recompute(manifest, files, segments, confinement=open_sandbox(settings))


def _recompute_by(
    ready: Standby, manifest: Manifest, files: Files, segments: Mapping[int, Inputs]
) -> Recomputed:
    return ready.recompute(segments)


def _check_or_answer(
    job: SealJob | AnswerJob, settings: Settings, shelf: Shelf, content: Content, again: Recompute
) -> None:
    if isinstance(job, SealJob):
        _seal(job, settings, shelf, content, again)
    else:
        _answer(job, settings, shelf, content, again)


# After training


def _seal(
    job: SealJob, settings: Settings, shelf: Shelf, content: Content, again: Recompute
) -> None:
    journal = Journal.read(shelf.path(RUN))
    # What ran in the sandbox can write there, and this file it cannot.
    if journal.manifest != shelf.path(MANIFEST).read_bytes():
        raise PermanentError("the run is of another manifest than the task; nothing is submitted")
    if job.self_audits and shelf.read(CLAIM) is None:
        _audit_ourselves(job, settings, shelf, content, journal, again)
    result = seal(journal, content, served=job.served, is_open=job.is_open)
    shelf.write({"states": [state.hex() for state in journal.trace.states]}, TRACE)
    shelf.write({"segments": list(job.served), "is_open": job.is_open}, SERVED)
    shelf.write({"result": result.digest.hex(), "root": result.root}, CLAIM)


def _audit_ourselves(
    job: SealJob,
    settings: Settings,
    shelf: Shelf,
    content: Content,
    journal: Journal,
    again: Recompute,
) -> None:
    """Compute some segments again before we sign for what others had a part in.

    What was found wrong once stays so: trying again would end with segments that happen to be good.
    """
    known = shelf.read(WRONG)
    if known is not None:
        raise PermanentError(known["reason"])
    manifest = Manifest.parse(journal.manifest)
    if is_scored(manifest):
        _score_ourselves(settings, shelf, content, journal)
        return
    files = fetch_files(manifest, content, shelf.path(DATA))
    segments = by_others(journal, manifest, job.slot)
    chosen = random.SystemRandom().sample(segments, min(job.self_audits, len(segments)))
    inputs = {segment: inputs_in(journal, manifest, segment) for segment in chosen}
    found = again(manifest, files, inputs)
    wrong = [
        f"{_name_of(manifest, answer.segment)} comes"
        for answer in found.answers
        if answer.state != journal.entries[answer.segment + 1].state
    ]
    if found.start != journal.entries[0].state:
        wrong.append("the first state comes")
    if wrong:
        reason = (
            f"{wrong[0]} out differently here: a peer sent wrong values, or this machine is "
            "faulty; nothing is submitted"
        )
        shelf.write({"reason": reason}, WRONG)
        raise PermanentError(reason)


def by_others(journal: Journal, manifest: Manifest, slot: int | None) -> list[int]:
    """The segments that we have only others' word for.

    In rounds each worker is liable for its own parts, and we merged by ourselves: left are the
    others' parts, and those of our slot if it was somebody else's before.
    """
    plan = manifest.plan
    if not isinstance(plan, RoundsPlan) or slot is None:
        return list(range(plan.segments))
    signers = read_signers((journal.folder / OFFERS / SIGNERS).read_bytes())
    is_ours_alone = isinstance(signers[slot], str)
    parts = {segment: plan.part(segment) for segment in range(plan.segments)}
    return [
        segment
        for segment, part in parts.items()
        if isinstance(part, Local) and not (is_ours_alone and part.slot == slot)
    ]


def _name_of(manifest: Manifest, segment: int) -> str:
    plan = manifest.plan
    part = plan.part(segment) if isinstance(plan, RoundsPlan) else None
    if not isinstance(part, Local):
        return f"segment {segment}"
    return f"segment {segment}, the part of worker {part.slot} in round {part.round},"


def _score_ourselves(settings: Settings, shelf: Shelf, content: Content, journal: Journal) -> None:
    """Compute the score again before we sign for a result that another one led to."""
    asked = Asked(
        manifest=Manifest.parse(journal.manifest).digest.hex(), root=journal.trace.root.hex()
    )
    found = audit_score_of_folder(
        content, journal.folder, asked, shelf.path(DATA), confinement=open_sandbox(settings)
    )
    if not found.is_credible:
        raise PermanentError(
            f"the score of the result is not what the leader says{found.reason and ': '}"
            f"{found.reason}; nothing is submitted"
        )


# As auditor, evaluator and referee


def _answer(
    job: AnswerJob, settings: Settings, shelf: Shelf, content: Content, again: Recompute
) -> None:
    name = answer_name(job.panel, job.seat)

    def keep(value: bytes, scores: list[int], reason: str) -> None:
        found = {"value": value.hex(), "scores": scores, "reason": reason, "about": job.about}
        shelf.write(found, ANSWERS, name)

    try:
        manifest, files = _material(job, shelf, content)
        if job.is_scored:
            scores, reason = _scores(job, manifest, content, shelf, open_sandbox(settings))
            keep(scores_answer(scores), scores, reason)
            if reason:
                raise NotServedError(reason)
        else:
            inputs = _served(job, manifest, content, shelf)
            keep(*_state(job.segment, manifest, files, inputs, again))
    except NotServedError as error:
        # Kept as an answer, to be given only if nothing better comes in time.
        known = shelf.read(ANSWERS, name)
        if known is None or known["about"] != job.about:
            keep(UNSERVED, [], str(error))
        raise


def _material(job: AnswerJob, shelf: Shelf, content: Content) -> tuple[Manifest, Files]:
    """What a segment is computed with; it belongs to what has to be served."""
    try:
        manifest = _manifest(job.manifest, shelf, content)
        return manifest, fetch_files(manifest, content, shelf.path(DATA))
    except (UnavailableError, SourceError) as error:
        raise NotServedError(f"the task's data is not served: {error}") from error


def _open(job: AnswerJob, manifest: Manifest, content: Content, shelf: Shelf) -> Evidence:
    result, root = bytes.fromhex(job.result), bytes.fromhex(job.root)
    return Evidence.open(content, manifest, result, root, shelf.path(EVIDENCE))


def _served(job: AnswerJob, manifest: Manifest, content: Content, shelf: Shelf) -> Inputs:
    """What the segment is computed from: the workers learn of the draw when the auditors do."""
    until = time.monotonic() + _SERVING_S
    while True:
        try:
            return _open(job, manifest, content, shelf).inputs(job.segment)
        except NotServedError:
            if time.monotonic() > until:
                raise
            time.sleep(_AGAIN_S)


def _state(
    segment: int, manifest: Manifest, files: Files, inputs: Inputs, again: Recompute
) -> tuple[bytes, list[int], str]:
    [answer] = again(manifest, files, {segment: inputs}).answers
    if answer.state is None:
        return NONSENSE, [], answer.reason
    return bytes.fromhex(answer.state), [], ""


def _scores(
    job: AnswerJob, manifest: Manifest, content: Content, shelf: Shelf, sandbox: Confinement
) -> tuple[list[int], str]:
    """A score for each entry, and why some have none. Who shows nothing harms itself alone."""
    found, missing = list[int](), ""
    for slot, entry in enumerate(job.entries):
        try:
            folder = shelf.path(EVIDENCE, f"{slot}")
            score = 0 if entry is None else _score(entry, manifest, content, folder, sandbox)
            found.append(score)
        except NotServedError as error:
            found.append(0)
            missing = missing or f"of entry {slot}: {error}"
    return found, missing


def _score(
    entry: tuple[str, str],
    manifest: Manifest,
    content: Content,
    folder: Path,
    sandbox: Confinement,
) -> int:
    digest, root = map(bytes.fromhex, entry)
    Evidence.open(content, manifest, digest, root, folder)
    data = content.fetcher.get(Cid(Codec.RAW, digest)).block
    result = Result.parse(data, manifest=manifest.digest, root=root)
    try:
        found = audit_score_of_result(
            content,
            ContentPath.parse(result.run),
            Asked(manifest=manifest.digest.hex(), root=root.hex()),
            folder,
            confinement=sandbox,
        ).found
    except TrainyardError as error:
        raise NotServedError(f"the result is not served: {error}") from error
    return 0 if found is None else points(found.figures.loss, found.figures.metrics)


if __name__ == "__main__":
    main()
