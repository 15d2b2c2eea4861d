"""What a run reads, as verified files on this machine, for processes that have no network."""

from dataclasses import dataclass
from pathlib import Path

from trainyard.content.content import Content, Report
from trainyard.content.names import ContentPath
from trainyard.content.reading import EntryKind
from trainyard.engine.errors import RunError, TooLargeError
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.sources import fetch_source
from trainyard.protocol.manifest import Manifest, Source


@dataclass(frozen=True, slots=True)
class Files:
    """Where the parts of a manifest are on disk."""

    train: Path
    validation: Path | None = None
    test: Path | None = None
    initial_state: Path | None = None


def fetch_files(
    manifest: Manifest, content: Content, folder: Path, *, progress: Report | None = None
) -> Files:
    """Fetch all that the manifest names, each into a place by its CID below `folder`."""

    def fetch(source: Source | None) -> Path | None:
        return None if source is None else fetch_source(source, content, folder, progress=progress)

    validation = manifest.training.validation
    state = None
    if manifest.initial_state is not None:
        state = folder / f"{manifest.initial_state}.safetensors"
        place = ContentPath.parse(manifest.initial_state)
        check_file(content, place, most_state_bytes(manifest))
        content.get(place, state, progress=progress)
    return Files(
        train=fetch_source(manifest.data.train, content, folder, progress=progress),
        validation=fetch(None if validation is None else validation.source),
        test=fetch(manifest.data.test),
        initial_state=state,
    )


def check_file(content: Content, path: ContentPath, most: int) -> None:
    """Refuse what is no file, or larger than such a file of this run can be, before it is read."""
    entry = content.stat(path)
    if entry.kind is not EntryKind.FILE:
        raise RunError(f"{path} is no file, but a {entry.kind}")
    if entry.size > most:
        raise TooLargeError(f"{path} has {entry.size} bytes, and in this run it has at most {most}")
