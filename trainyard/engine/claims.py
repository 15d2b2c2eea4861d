"""The run behind a claim, of which nothing is believed that the chain does not have."""

from dataclasses import dataclass, replace
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content, Report
from trainyard.content.names import ContentPath
from trainyard.content.reading import EntryKind
from trainyard.engine.errors import OtherRunError
from trainyard.engine.evidence import STATES, Published
from trainyard.engine.results import Asked
from trainyard.protocol.commitments import Claim
from trainyard.protocol.results import LARGEST_RESULT_BYTES, Result, ResultError
from trainyard.protocol.trace import Trace


@dataclass(frozen=True, slots=True)
class ClaimedRun:
    """A published run whose trace has the root that the workers committed to."""

    result_cid: str
    result: Result
    published: Published

    @property
    def last(self) -> int:
        return len(self.published.states) - 1

    @property
    def last_state(self) -> ContentPath:
        """Where the last state lies."""
        place = self.published.result.child(STATES)
        return place.child(f"{self.last:06}.safetensors")

    @property
    def trace(self) -> Trace:
        return Trace([bytes.fromhex(state) for state in self.published.states])


def read_claimed(content: Content, manifest: bytes, claim: Claim) -> tuple[str, Result]:
    """The document behind a claim about the manifest of this digest, and its CID."""
    cid = Cid(Codec.RAW, claim.result)
    data = content.fetcher.get(cid).block
    if len(data) > LARGEST_RESULT_BYTES:
        raise ResultError("the result is too large to be one")
    return str(cid), Result.parse(bytes(data), manifest=manifest, root=claim.root)


def open_claimed(
    content: Content,
    manifest: bytes,
    claim: Claim,
    folder: Path,
    progress: Report | None = None,
) -> ClaimedRun:
    """The run that a claim stands for; its states are fetched into `folder` as they are asked."""
    cid, result = read_claimed(content, manifest, claim)
    published = Published.open(content, ContentPath.parse(result.run), folder, progress)
    run = ClaimedRun(cid, result, published)
    # INVARIANT: the run is the one of the claim on chain, and of this task's manifest.
    if run.trace.root.hex() != result.root or published.manifest.digest != manifest:
        raise OtherRunError("what is published is not the run that was claimed")
    return run


def run_named(content: Content, named: ContentPath, asked: Asked) -> tuple[ContentPath, Asked]:
    """The published run that is named by itself, or by the document behind a claim.

    What such a document says of its run is asked of the run too.
    """
    entry = content.stat(named)
    if entry.kind is not EntryKind.FILE:
        return named, asked
    if entry.size > LARGEST_RESULT_BYTES:
        raise ResultError(f"{named} is too large to be a result")
    result = Result.read(b"".join(content.cat(named)))
    asked.check(result.manifest, result.root)
    return ContentPath.parse(result.run), replace(asked, manifest=result.manifest, root=result.root)
