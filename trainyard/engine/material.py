"""What a run reads, as verified files on this machine, for processes that have no network."""

from dataclasses import dataclass
from pathlib import Path

from trainyard.content.content import Content, Report
from trainyard.content.names import ContentPath
from trainyard.content.reading import EntryKind
from trainyard.engine.errors import DataError, RunError, TooLargeError
from trainyard.engine.limits import most_state_bytes
from trainyard.engine.sources import check_own, fetch_source
from trainyard.protocol.manifest import Manifest, Source


@dataclass(frozen=True, slots=True)
class Files:
    """Where the parts of a manifest are on disk."""

    train: Path
    validation: Path | None = None
    test: Path | None = None
    initial_state: Path | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """Copies of a manifest's data that the user has, instead of fetched ones."""

    train: Path | None = None
    validation: Path | None = None
    test: Path | None = None


def fetch_files(
    manifest: Manifest,
    content: Content,
    folder: Path,
    *,
    own: Own | None = None,
    progress: Report | None = None,
) -> Files:
    """Fetch all that the manifest names, each into a place by its CID below `folder`.

    What the user has of their `own` is checked and left where it is.
    """
    own = own or Own()

    def find(source: Source, given: Path | None) -> Path:
        if given is None:
            return fetch_source(source, content, folder, progress=progress)
        check_own(source, content, given)
        return given.resolve()

    def find_any(name: str, source: Source | None, given: Path | None) -> Path | None:
        if source is not None:
            return find(source, given)
        if given is not None:
            raise DataError(f"the manifest has no records for {name}: leave {given} out")
        return None

    validation = manifest.training.validation
    state = None
    if manifest.initial_state is not None:
        folder.mkdir(parents=True, exist_ok=True)
        state = folder / f"{manifest.initial_state}.safetensors"
        place = ContentPath.parse(manifest.initial_state)
        check_file(content, place, most_state_bytes(manifest))
        content.get(place, state, progress=progress)
    return Files(
        train=find(manifest.data.train, own.train),
        validation=find_any(
            "validation", None if validation is None else validation.source, own.validation
        ),
        test=find_any("the test", manifest.data.test, own.test),
        initial_state=state,
    )


def check_file(content: Content, path: ContentPath, most: int) -> None:
    """Refuse what is no file, or larger than such a file of this run can be, before it is read."""
    entry = content.stat(path)
    if entry.kind is not EntryKind.FILE:
        raise RunError(f"{path} is no file, but a {entry.kind}")
    if entry.size > most:
        raise TooLargeError(f"{path} has {entry.size} bytes, and in this run it has at most {most}")
