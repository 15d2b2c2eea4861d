"""What an auditor does whose segment lies after the end of a run: look at how it came to that end.

Nothing follows from a run that is over, so its segments are right and cost nothing. What was drawn
there is spent on the segments that were really computed, once the run is open.
"""

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.names import ContentPath
from trainyard.engine.results import Asked, Audit, audit_result
from trainyard.engine.unsealing import NotServedError
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.results import Result
from worker_agent.fetching import manifest_of
from worker_agent.jobs import LookJob
from worker_agent.opening import open_sandbox
from worker_agent.progress import EVIDENCE, LOOKED, WRONG, Shelf
from worker_agent.settings import Settings


def look_behind(job: LookJob, settings: Settings, shelf: Shelf, content: Content) -> None:
    manifest = manifest_of(job.manifest, shelf, content)
    folder = shelf.path(EVIDENCE, "behind")
    folder.mkdir(parents=True, exist_ok=True)
    asked = Asked(manifest=job.manifest, root=job.root)
    try:
        digest, root = bytes.fromhex(job.result), bytes.fromhex(job.root)
        data = content.fetcher.get(Cid(Codec.RAW, digest)).block
        run = ContentPath.parse(Result.parse(data, manifest=manifest.digest, root=root).run)
        sandbox = open_sandbox(settings, job.wall_s)
        first = audit_result(content, run, [job.segment], folder, asked=asked, confinement=sandbox)
        wrong = _wrong(first)
        if wrong is not None:
            # To accuse others costs a bond if it is this machine that is faulty: it looks twice.
            again = audit_result(content, run, [wrong], folder, asked=asked, confinement=sandbox)
            wrong = wrong if _wrong(again) == wrong else None
    except TrainyardError as error:
        raise NotServedError(f"the run is not shown: {error}") from error
    if wrong is not None:
        reason = f"segment {wrong}, before the end of the run, comes out differently here"
        shelf.write({"reason": reason, "segment": wrong, "states": list(first.states)}, WRONG)
    shelf.write({"segment": job.segment, "wrong": wrong}, LOOKED)


def _wrong(found: Audit) -> int | None:
    """The first segment that is not what the run says."""
    return next((one.segment for one in found.verdicts if one.claimed != one.found), None)
