"""What an auditor, evaluator or referee does: fetch what is served, compute, keep the answer."""

import time
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.errors import SourceError, UnavailableError
from trainyard.content.names import ContentPath
from trainyard.engine.auditor import Inputs
from trainyard.engine.confining import Confinement
from trainyard.engine.material import Files, fetch_files
from trainyard.engine.rescoring import audit_score_of_result
from trainyard.engine.results import Asked, is_over
from trainyard.engine.unsealing import Evidence, NotServedError
from trainyard.protocol.commitments import scores_answer
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import UNSERVED
from trainyard.protocol.results import NONSENSE, Result, points
from worker_agent.fetching import manifest_of
from worker_agent.jobs import AnswerJob
from worker_agent.opening import open_sandbox, within_bounds
from worker_agent.progress import (
    ANSWERS,
    DATA,
    EVIDENCE,
    Shelf,
    answer_name,
)
from worker_agent.recomputing import Recompute
from worker_agent.settings import Settings

# How long the drawn segment of a task is asked for before that counts as a failure, and how often.
_SERVING_S, _AGAIN_S = 15.0, 0.2


def answer(
    job: AnswerJob, settings: Settings, shelf: Shelf, content: Content, again: Recompute
) -> None:
    name = answer_name(job.panel, job.seat)

    def keep(value: bytes, scores: list[int], reason: str, *, is_idle: bool = False) -> None:
        found = {
            "value": value.hex(),
            "scores": scores,
            "reason": reason,
            "about": job.about,
            "is_idle": is_idle,
        }
        shelf.write(found, ANSWERS, name)

    try:
        manifest, files = _material(job, settings, shelf, content)
        if job.is_scored:
            scores, reason = _scores(
                job, manifest, content, shelf, open_sandbox(settings, job.wall_s)
            )
            keep(scores_answer(scores), scores, reason)
            if reason:
                raise NotServedError(reason)
        else:
            inputs = _served(job, manifest, content, shelf)
            value, reason = _state(job.segment, manifest, files, inputs, again)
            keep(value, [], reason, is_idle=_is_idle(value, inputs))
    except NotServedError as error:
        # Kept as an answer, to be given only if nothing better comes in time.
        known = shelf.read(ANSWERS, name)
        if known is None or known["about"] != job.about:
            keep(UNSERVED, [], str(error))
        raise


def _material(
    job: AnswerJob, settings: Settings, shelf: Shelf, content: Content
) -> tuple[Manifest, Files]:
    """What a segment is computed with; it belongs to what has to be served."""
    try:
        manifest = manifest_of(job.manifest, shelf, content)
        with within_bounds(content, settings, shelf.path(DATA)) as bounded:
            return manifest, fetch_files(manifest, bounded, shelf.path(DATA))
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
) -> tuple[bytes, str]:
    [answer] = again(manifest, files, {segment: inputs}).answers
    if answer.state is None:
        return NONSENSE, answer.reason
    return bytes.fromhex(answer.state), ""


def _is_idle(found: bytes, inputs: Inputs) -> bool:
    """Whether a segment starts from the end of its run: in rounds too, that is the first state."""
    return any(map(is_over, inputs.states[:1])) and found != NONSENSE


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
