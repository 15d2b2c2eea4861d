"""Data behind a CID: fetched, read in the sandbox, and written as content that workers read."""

from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

import dapp
from dapp.errors import ApiError
from dapp.posting.engine import ask_engine, engine_turn
from dapp.previewing.job import Previewed, PreviewJob
from dapp.schemas.data import DataPreview, PreviewRequest
from dapp.services import Services
from dapp.settings import scratch_folder
from trainyard.content.names import ContentPath
from trainyard.content.reading import EntryKind
from trainyard.datasets import add_arrays

_MODULE = "dapp.previewing.child"


def preview_data(services: Services, given: PreviewRequest) -> DataPreview:
    path = ContentPath.parse(given.cid)
    entry = services.content.stat(path)
    size = entry.size
    if entry.kind is EntryKind.DIRECTORY:
        size = services.content.measure(path).logical_bytes
    if size > services.settings.upload_bytes:
        raise ApiError(413, "too_large", f"{size} bytes are more than is looked at here")
    with engine_turn(services), scratch_folder(services.settings, "preview-") as name:
        folder = Path(name).resolve()
        source, out = folder / "source", folder / "out"
        out.mkdir()
        services.content.get(path, source)
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
        }
    )


def _write(services: Services, found: Previewed, out: Path) -> dict[str, dict[str, Any]]:
    """The arrays as content, and the sections of a manifest that name them."""
    if found.target is None:
        return {}
    parts = {}
    for part, records in (("train", found.records), ("test", found.test_records)):
        if not records:
            continue
        arrays = {
            name: np.load(out / f"{part}.{name}.npy", mmap_mode="r", allow_pickle=False)
            for name in (*found.inputs, found.target)
        }
        cid = add_arrays(services.content, arrays).cid
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
