"""What a worker does with a run that has ended: look at others' part in it, and seal it."""

import random

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.engine.auditing import inputs_in, recompute
from trainyard.engine.journal import Journal
from trainyard.engine.material import fetch_files
from trainyard.engine.offers import OFFERS, SIGNERS, read_signers
from trainyard.engine.rescoring import audit_score_of_folder
from trainyard.engine.results import Asked
from trainyard.engine.scoring import is_scored
from trainyard.engine.sealing import seal
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.manifest import Local, Manifest, RoundsPlan
from worker_agent.jobs import SealJob
from worker_agent.opening import open_sandbox
from worker_agent.pinning import note_pins, pinning
from worker_agent.progress import (
    CLAIM,
    DATA,
    RUN,
    SERVED,
    TRACE,
    WRONG,
    Shelf,
)
from worker_agent.recomputing import Recompute
from worker_agent.settings import Home, Settings


def seal_run(
    job: SealJob, settings: Settings, shelf: Shelf, content: Content, again: Recompute
) -> None:
    journal = Journal.read(shelf.path(RUN))
    wanted = Cid(Codec.RAW, bytes.fromhex(job.manifest))
    # What ran in the sandbox can write there, and it cannot change what the task is.
    if not wanted.matches(journal.manifest):
        raise PermanentError("the run is of another manifest than the task; nothing is submitted")
    if job.self_audits and shelf.read(CLAIM) is None:
        _audit_ourselves(job, settings, shelf, content, journal, again)
    pinned = set[Cid]()
    with pinning(Home(job.home)):
        result = seal(journal, content, served=job.served, is_open=job.is_open, pinned=pinned.add)
        note_pins(shelf, pinned)
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
        _score_ourselves(job, settings, shelf, content, journal)
        return
    files = fetch_files(manifest, content, shelf.path(DATA))
    segments = by_others(journal, manifest, job.slot)
    chosen = random.SystemRandom().sample(segments, min(job.self_audits, len(segments)))
    inputs = {segment: inputs_in(journal, manifest, segment) for segment in chosen}
    found = again(manifest, files, inputs)
    wrong = [
        answer
        for answer in found.answers
        if answer.state != journal.entries[answer.segment + 1].state
    ]
    if not wrong and found.start == journal.entries[0].state:
        return
    what = _name_of(manifest, wrong[0].segment) if wrong else "the first state"
    reason = (
        f"{what} comes out differently here: a peer sent wrong values, or this machine is "
        "faulty; nothing is submitted"
    )
    states = [state.hex() for state in journal.trace.states]
    shelf.write({"reason": reason, "segment": None, "states": states}, WRONG)
    if wrong:
        # To accuse others costs a bond if it is this machine that is faulty: it looks twice.
        segment, sandbox = wrong[0].segment, open_sandbox(settings, job.wall_s)
        [same] = recompute(manifest, files, {segment: inputs[segment]}, confinement=sandbox).answers
        if same.state == wrong[0].state:
            shelf.write({"reason": reason, "segment": segment, "states": states}, WRONG)
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


def _score_ourselves(
    job: SealJob, settings: Settings, shelf: Shelf, content: Content, journal: Journal
) -> None:
    """Compute the score again before we sign for a result that another one led to."""
    asked = Asked(
        manifest=Manifest.parse(journal.manifest).digest.hex(), root=journal.trace.root.hex()
    )
    found = audit_score_of_folder(
        content,
        journal.folder,
        asked,
        shelf.path(DATA),
        confinement=open_sandbox(settings, job.wall_s),
    )
    if not found.is_credible:
        raise PermanentError(
            f"the score of the result is not what the leader says{found.reason and ': '}"
            f"{found.reason}; nothing is submitted"
        )
