"""What workers serve of a segment before they open their trace, checked against its root."""

from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from pydantic import ValidationError

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.names import ContentPath
from trainyard.engine.auditing import deltas_named, sources_of
from trainyard.engine.auditor import Inputs
from trainyard.engine.errors import StateError, TooLargeError
from trainyard.engine.limits import most_inputs_bytes, most_state_bytes
from trainyard.engine.material import check_file
from trainyard.engine.sealing import INPUTS, SEAL, SegmentInputs, strip_seal
from trainyard.protocol.errors import TrainyardError, TransientError
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.results import LARGEST_RESULT_BYTES, Result, ResultError
from trainyard.protocol.trace import verify


class NotServedError(TransientError):
    """What a segment is computed from is not served, or is not what the trace has."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence behind a claim, of which nothing is believed that the root does not prove."""

    content: Content
    manifest: Manifest
    root: bytes
    place: ContentPath
    folder: Path

    @classmethod
    def open(
        cls, content: Content, manifest: Manifest, result: bytes, root: bytes, folder: Path
    ) -> "Evidence":
        """Read the result document behind a claim."""
        try:
            data = content.fetcher.get(Cid(Codec.RAW, result)).block
            if len(data) > LARGEST_RESULT_BYTES:
                raise ResultError("the result is too large")
            found = Result.parse(data, manifest=manifest.digest, root=root)
            place = ContentPath.parse(found.evidence)
        except TrainyardError as error:
            raise NotServedError(f"the result is not served: {error}") from error
        folder.mkdir(parents=True, exist_ok=True)
        return cls(content, manifest, root, place, folder)

    def inputs(self, segment: int) -> Inputs:
        """All that `segment` is computed from, on this machine."""
        place = self.place.child(f"{segment:06}")
        try:
            known = self._shown(place)
            numbers, absence = sources_of(self.manifest, segment, known)
            states = tuple(self._state(place, number, known[number]) for number in numbers)
            names = deltas_named(self.manifest, segment, states)
            deltas = tuple(self._fetch(place, f"delta-{name}", name) for name in names)
        except StateError as error:
            # The bytes are those of the trace: who committed to them has committed to nonsense.
            return Inputs(states=(), nonsense=str(error))
        except NotServedError:
            raise
        except TrainyardError as error:
            raise NotServedError(f"segment {segment} is not served: {error}") from error
        return Inputs(states=states, deltas=deltas, absence=absence)

    def _shown(self, place: ContentPath) -> list[str]:
        """The hashes that are proven; an empty text for those that are not shown."""
        path = place.child(INPUTS)
        check_file(self.content, path, most_inputs_bytes(self.manifest))
        try:
            found = SegmentInputs.model_validate_json(b"".join(self.content.cat(path)))
        except ValidationError as error:
            raise NotServedError(f"{path} names no inputs") from error
        segments = self.manifest.plan.segments
        known = [""] * (segments + 1)
        for number, shown in found.states.items():
            proof = [bytes.fromhex(one) for one in shown.proof]
            if not verify(self.root, segments, number, bytes.fromhex(shown.hash), proof):
                raise NotServedError(f"{path} does not prove state {number}")
            known[number] = shown.hash
        return known

    def _state(self, place: ContentPath, number: int, digest: str) -> Path:
        if not digest:
            raise NotServedError(f"{place} does not show state {number}")
        return self._fetch(place, f"state-{number}", digest)

    def _fetch(self, place: ContentPath, name: str, digest: str) -> Path:
        target = self.folder / f"{digest}.safetensors"
        if target.exists() and _digest(target) == digest:
            return target
        path = place.child(name)
        try:
            check_file(self.content, path, most_state_bytes(self.manifest) + len(SEAL))
        except TooLargeError as error:
            raise StateError(f"too large for a state of this manifest: {error}") from error
        fetched = self.folder / f".{digest}.sealed"
        self.content.get(path, fetched)
        is_sealed = strip_seal(fetched, target)
        fetched.unlink()
        if not is_sealed or _digest(target) != digest:
            target.unlink(missing_ok=True)
            raise NotServedError(f"{path} is not the state that the trace has")
        return target


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()
