"""Files into the store: by name below a folder, or one alone; read back before they are named."""

import os
import re
from collections.abc import Mapping
from pathlib import Path

from dapp.errors import ApiError, invalid
from dapp.schemas.content import Uploaded
from dapp.uploads.kinds import kind_of, kind_of_folder
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.errors import InvalidPathError
from trainyard.content.names import ContentPath, check_name

_HEAD_BYTES = 64
# As many as the reader of multipart bodies takes.
_DEEPEST, MOST_FILES = 8, 1_000
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def safe_names(path: str) -> tuple[str, ...]:
    """The names of a path that a browser gave a file; what could lead elsewhere is refused."""
    names = tuple(path.replace("\\", "/").split("/"))
    try:
        for name in names:
            check_name(name)
    except InvalidPathError as error:
        raise invalid(str(error), field="file") from error
    if len(names) > _DEEPEST or _CONTROL.search(path):
        raise invalid(f"{path[:80]!r} is no name for a file", field="file")
    return names


def store_file(content: Content, path: Path, name: str) -> Uploaded:
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    built = content.add(path)
    _read_back(content, built.cid)
    return Uploaded(
        cid=str(built.cid),
        size=path.stat().st_size,
        files=1,
        kind=kind_of(name, head),
        name=name,
    )


def store_folder(content: Content, folder: Path, files: Mapping[str, Path]) -> Uploaded:
    """Lay the files out below `folder`, and store them as one tree."""
    size = 0
    for name, path in files.items():
        target = folder.joinpath(*safe_names(name))
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            raise ApiError(409, "twice", f"two files are called {name[:200]!r}", field="file")
        size += path.stat().st_size
        os.replace(path, target)
    root = folder
    entries = sorted(folder.iterdir())
    if len(entries) == 1 and entries[0].is_dir():
        # The folder that was dropped, and not the one that it lay in.
        root = entries[0]
    built = content.add(root)
    _read_back(content, built.cid)
    return Uploaded(
        cid=str(built.cid),
        size=size,
        files=len(files),
        kind=kind_of_folder([entry.name for entry in root.iterdir()]),
        name=root.name if root != folder else "folder",
    )


def _read_back(content: Content, cid: Cid) -> None:
    """INVARIANT: a CID is given out only for what the store really has, block by block."""
    checkup = content.verify(ContentPath(cid), keep=False)
    if checkup.faults:
        raise ApiError(503, "store", "the store does not have what was written to it")
