"""Data behind a CID: fetched, read in the sandbox, and written as content that workers read."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

import dapp
from dapp.errors import ApiError
from dapp.posting.engine import ask_engine, engine_turn, require_sandbox
from dapp.previewing.job import Previewed, PreviewJob
from dapp.schemas.data import DataPreview, PreviewRequest
from dapp.services import Services
from dapp.settings import scratch_folder
from dapp.uploads.quota import note_stored, require_room
from trainyard.content.cid import Cid
from trainyard.content.errors import InvalidPathError, LimitExceededError
from trainyard.content.names import ContentPath, check_name
from trainyard.content.reading import EntryKind
from trainyard.datasets import add_arrays
from trainyard.engine.errors import RunError
from trainyard.engine.plain_files import open_plain

_MODULE = "dapp.previewing.child"


def preview_data(services: Services, given: PreviewRequest) -> DataPreview:
    path = ContentPath.parse(given.cid)
    entry = services.reach.get(lambda content: content.stat(path))
    size = entry.size
    if entry.kind is EntryKind.DIRECTORY:
        size = _measure(services, entry.cid)
    if size > services.settings.upload_bytes:
        raise _too_large(services)
    require_sandbox(services)
    with scratch_folder(services.settings, "preview-") as name:
        folder = Path(name).resolve()
        source, out = folder / "source", folder / "out"
        out.mkdir()
        services.reach.get(lambda content: content.get(ContentPath(entry.cid), source))
        job = PreviewJob(
            source=source,
            out=out,
            kind=given.kind,
            target=given.target,
            ignore=tuple(given.ignore),
            image_size=given.image_size,
            test_percent=given.test_percent,
        )
        # The sandbox of itself shows the engine's package alone.
        shown = [source, Path(dapp.__file__).resolve().parent]
        with engine_turn(services):
            said = ask_engine(services, _MODULE, job, folder, readable=shown, writable=[out])
        try:
            found = Previewed.model_validate(said)
        except ValidationError as error:
            raise ApiError(422, "refused", "the data cannot be made sense of") from error
        parts = _write(services, found, out) if given.write else {}
    return DataPreview.model_validate(
        {
            "kind": found.kind,
            "source_cid": str(entry.cid),
            "records": found.records,
            "columns": found.columns,
            "target": found.target,
            "inputs": found.inputs,
            "first": found.first,
            "train": parts.get("train"),
            "test": parts.get("test"),
            "bytes": size,
            "notes": found.notes,
            "classes": found.classes,
            "predictable": found.predictable,
            "predicted": found.predicted,
        }
    )


def _measure(services: Services, folder: Cid) -> int:
    """Bytes of its files, of which no more are fetched than are looked at here."""
    most = services.settings.upload_bytes
    try:
        measured = services.reach.get(
            lambda content: content.measure(ContentPath(folder), most_bytes=most)
        )
    except LimitExceededError as error:
        raise _too_large(services) from error
    return measured.logical_bytes


def _too_large(services: Services) -> ApiError:
    most = services.settings.upload_bytes
    return ApiError(413, "too_large", f"it is more than the {most} bytes that are looked at here")


def _array(out: Path, name: str) -> np.memmap[Any, Any]:
    """An array that the child wrote.

    A stranger's data has named it, and may have had its way there: a name that leads elsewhere, or
    what is no plain file, is refused.
    """
    try:
        check_name(name)
        # Open, it stays what it is, whatever becomes of its name.
        with open_plain(out / name) as file:
            found = np.load(
                Path(f"/proc/self/fd/{file.fileno()}"), mmap_mode="r", allow_pickle=False
            )
    except (InvalidPathError, RunError, OSError, ValueError) as error:
        raise ApiError(422, "refused", f"{name[:80]!r} cannot be taken over") from error
    if not isinstance(found, np.memmap):
        raise ApiError(422, "refused", f"{name[:80]!r} is no array")
    return found


def _write(services: Services, found: Previewed, out: Path) -> dict[str, dict[str, Any]]:
    """The arrays as content, and the sections of a manifest that name them."""
    if found.target is None:
        return {}
    parts = {}
    for part, records in (("train", found.records), ("test", found.test_records)):
        if not records:
            continue
        arrays = {name: _array(out, f"{part}.{name}.npy") for name in (*found.inputs, found.target)}
        size = sum(array.nbytes for array in arrays.values())
        require_room(services, size)
        cid = add_arrays(services.content, arrays).cid
        note_stored(services, cid, size)
        parts[part] = {
            "kind": "npz",
            "path": f"ipfs://{cid}",
            "records": records,
            "features": {
                name: {"dtype": str(array.dtype), "shape": list(array.shape[1:])}
                for name, array in arrays.items()
            },
            "inputs": found.inputs,
            "target": found.target,
        }
    return parts
