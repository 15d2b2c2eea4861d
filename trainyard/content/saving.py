"""Writing verified content to disk, and going on where an earlier try was cut off."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.content.disk import sync_file_system, sync_folder
from trainyard.content.errors import InvalidPathError, StoreError
from trainyard.content.reading import Entry, EntryKind, Piece, Walk

Advance = Callable[[int, str], None]


def part_of(target: Path, cid: Cid) -> Path:
    """Where a file stands until all of it is there: beside its target, under a name of ours."""
    return target.with_name(f".{cid}.part")


def save_file(walk: Walk, entry: Entry, target: Path, advance: Advance) -> None:
    """Write the file to `target`, which stays as it was until all of it is there."""
    with _disk_errors(target):
        _save(walk, entry, target, part_of(target, entry.cid), advance)
        sync_folder(target.parent)


def save_tree(walk: Walk, root: Cid, target: Path, advance: Advance) -> None:
    """Write a directory. A fresh target takes all from one stream; else file by file."""
    with _disk_errors(target):
        # Outside the tree, so that no name in it can meet a part's.
        parts = target.with_name(f".{root}.parts")
        parts.mkdir(exist_ok=True)
        if not target.exists():
            _save_fresh_tree(walk, root, target, parts, advance)
        elif not target.is_dir() or target.is_symlink():
            raise InvalidPathError(f"{target} is in the way: it is no directory")
        else:
            _resume_tree(walk, root, target, parts, advance)
        sync_file_system(target)
        shutil.rmtree(parts)


def _save_fresh_tree(walk: Walk, root: Cid, target: Path, parts: Path, advance: Advance) -> None:
    for item in walk.tree(root):
        place = target.joinpath(*item.names)
        match item.entry.kind:
            case EntryKind.DIRECTORY:
                place.mkdir()
            case EntryKind.FILE:
                part = parts / str(item.entry.cid)
                _write(part, 0, item.pieces, advance, durable=False)
                os.replace(part, place)
            case EntryKind.SYMLINK:
                raise InvalidPathError(
                    f"{'/'.join(item.names)} is a symbolic link, which is not written"
                )


def _resume_tree(walk: Walk, root: Cid, target: Path, parts: Path, advance: Advance) -> None:
    for entry in list(walk.ls(root)):
        place = target / entry.name
        if place.is_symlink() or entry.kind is EntryKind.SYMLINK:
            raise InvalidPathError(f"{place} is a symbolic link, which is not followed")
        if entry.kind is EntryKind.DIRECTORY:
            place.mkdir(exist_ok=True)
            _resume_tree(walk, entry.cid, place, parts, advance)
        else:
            _save(walk, entry, place, parts / str(entry.cid), advance)


def _save(walk: Walk, entry: Entry, target: Path, part: Path, advance: Advance) -> None:
    if target.is_symlink() or (target.exists() and not target.is_file()):
        raise InvalidPathError(f"{target} is in the way: it is no file")
    if target.exists() and _is_whole(walk, entry, target):
        advance(entry.size, "already here")
        return
    kept = _verified_prefix(walk, entry, part) if part.exists() else 0
    advance(kept, "already here")
    pieces = walk.read(entry.cid, kept) if kept < entry.size or not entry.size else iter(())
    _write(part, kept, pieces, advance)
    os.replace(part, target)


def _is_whole(walk: Walk, entry: Entry, target: Path) -> bool:
    if target.stat().st_size != entry.size:
        return False
    if entry.cid.codec is Codec.RAW:
        return entry.cid.matches(target.read_bytes())
    return 0 < entry.size == _verified_prefix(walk, entry, target)


def _verified_prefix(walk: Walk, entry: Entry, part: Path) -> int:
    """How many bytes of `part`, from its start, are those of the file."""
    end = 0
    with part.open("rb") as file:
        for cid, start, size in walk.raw_leaves(entry.cid):
            leaf = file.read(size)
            # An empty leaf, or a short one, would match at the end of the file.
            if len(leaf) != size or not cid.matches(leaf):
                break
            end = start + size
    return end


def _write(
    path: Path, start: int, pieces: Iterator[Piece], advance: Advance, *, durable: bool = True
) -> None:
    # Never through a link that somebody put in the way.
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with open(handle, "wb", buffering=0) as file:
        file.truncate(start)
        file.seek(start)
        for piece in pieces:
            view = memoryview(piece.data)
            while view:
                view = view[file.write(view) :]
            advance(len(piece.data), piece.source)
        if durable:
            os.fsync(file.fileno())


@contextmanager
def _disk_errors(target: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot write {target}: {error.strerror or error}. "
            f"What arrived is kept; the same command goes on from there."
        ) from error
