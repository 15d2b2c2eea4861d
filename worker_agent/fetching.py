"""What is fetched before a task is joined: its manifest, its data, the cards of its workers."""

from dataclasses import asdict, replace

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.engine.errors import RunError
from trainyard.engine.journal import write_whole
from trainyard.engine.material import fetch_files
from trainyard.engine.scoring import is_scored
from trainyard.engine.sources import declared_bytes
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest, ManifestError
from worker_agent.jobs import CardsJob, FetchJob
from worker_agent.joining import fetch_card, publish_block
from worker_agent.opening import bytes_in, within_bounds
from worker_agent.progress import DATA, FETCHED, MANIFEST, REFUSED, Fetched, Shelf
from worker_agent.settings import Home, Settings, limits_of
from worker_agent.speed import estimate_hours, estimate_joules, measured_speed


def fetch(job: FetchJob, home: Home, settings: Settings, shelf: Shelf, content: Content) -> None:
    """First what the manifest says that it takes, by which it may be passed over; then its data.

    Where our own store is served all of it stays there, so that auditors can have it from us. They
    need it, and if they do not get it the workers pay for that: a requester who has stopped serving
    must not be able to bring that about.
    """
    keep, folder = settings.content.listen is not None, shelf.path(DATA)
    try:
        manifest = manifest_of(job.manifest, shelf, content)
        _check_terms(job, manifest)
    except (ManifestError, RunError) as error:
        shelf.write({"reason": f"its manifest cannot be used: {error}"}, REFUSED)
        return
    copies, found = 2 if keep else 1, _foreseen(manifest, home, settings)
    said = replace(found, disk_bytes=_disk_bytes(manifest, copies * declared_bytes(manifest)))
    shelf.write(asdict(said), FETCHED)
    with within_bounds(content, settings, folder, keep=keep) as bounded:
        fetch_files(manifest, bounded, folder)
    if keep:
        publish_block(content, manifest.canonical)
    disk_bytes = _disk_bytes(manifest, copies * bytes_in(folder))
    shelf.write(asdict(replace(found, disk_bytes=disk_bytes, is_whole=True)), FETCHED)


def _foreseen(manifest: Manifest, home: Home, settings: Settings) -> Fetched:
    """What it takes here, but for the disk. `cores` are what its training is held to."""
    training, resources = manifest.training, manifest.resources
    cores = limits_of(settings.sandbox).cores
    hours = estimate_hours(manifest, measured_speed(home.speed), cores)
    threads = training.threads if cores is None else min(training.threads, cores)
    # Weights, what the optimiser keeps, gradients, and what a batch makes of it all.
    values = manifest.model.parameters * 5 + manifest.model.activations * training.batch
    return Fetched(
        mode=training.mode,
        workers=training.workers,
        segments=manifest.plan.segments,
        hours=hours,
        memory_bytes=max((resources and resources.memory_bytes) or 0, values * 4 + (1 << 30)),
        disk_bytes=0,
        energy_j=estimate_joules(hours, threads),
        is_whole=False,
    )


def _disk_bytes(manifest: Manifest, data_bytes: int) -> int:
    """Of data, and all states of the run, which are published too."""
    resources = manifest.resources
    state_bytes = manifest.predicted_bytes or manifest.model.parameters * 12
    states_bytes = 2 * state_bytes * (manifest.plan.segments + 1)
    return max((resources and resources.disk_bytes) or 0, data_bytes + states_bytes)


def manifest_of(digest: str, shelf: Shelf, content: Content) -> Manifest:
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
    if training.mode == "rounds" and training.workers == 1:
        raise RunError("rounds of one worker have nothing to merge: post it in mode single")
    if job.is_scored and not is_scored(manifest):
        raise RunError("only async is scored: post it with the policy Audit or Replicate")


def fetch_cards(job: CardsJob, content: Content) -> None:
    """All that can be had: one that nobody serves must not hide the others."""
    failure: TrainyardError | None = None
    for digest in job.cards:
        try:
            fetch_card(content, bytes.fromhex(digest))
        except TrainyardError as error:
            failure = error
    if failure is not None:
        raise failure
