"""The files that are open at a gate."""

import itertools
import os
import threading
from dataclasses import dataclass, field

from trainyard.content.cid import Cid
from trainyard.content.errors import InvalidPathError, IsADirectoryContentError
from trainyard.content.names import ContentPath
from trainyard.content.reading import EntryKind
from trainyard.iptf.cache import Cache
from trainyard.iptf.codes import UnknownHandleError
from trainyard.iptf.filling import SMALL_BYTES, Filling
from trainyard.iptf.tree import MutablePath, Tree, parse_uri

# Files that nobody reads any more and that are not whole; the next reader goes on with them.
_IDLE_FILLINGS = 16
_KNOWN_SNAPSHOTS = 1 << 16


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that a process has open."""

    handle: int
    owner: int
    cid: Cid
    size: int
    filling: Filling | None = None


@dataclass(slots=True)
class _Shared:
    """A file on its way into the cache, and how many have it open."""

    filling: Filling
    users: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class OpenFiles:
    """Finds a file in the cache or begins to fill it, and remembers who reads what."""

    def __init__(self, tree: Tree, cache: Cache) -> None:
        self._tree, self._cache = tree, cache
        self._lock = threading.Lock()
        # Not from one: a handle of a gate that was restarted should be unknown here.
        self._numbers = itertools.count(int.from_bytes(os.urandom(6), "little") + 1)
        self._opened: dict[int, Opened] = {}
        self._shared: dict[Cid, _Shared] = {}
        self._snapshots: dict[tuple[int, ...], Cid] = {}

    def open(self, uri: str, owner: int) -> tuple[Opened, int, bool, bool]:
        """The file, a descriptor to read by, whether it is all there, and whether it may change."""
        place = parse_uri(uri)
        if isinstance(place, MutablePath):
            fd = self._tree.mfs.open(place.names)
            try:
                cid = self._snapshot(fd)
            except BaseException:
                os.close(fd)
                raise
            return self._register(owner, cid, os.fstat(fd).st_size), fd, True, True
        if not isinstance(place, ContentPath):
            raise IsADirectoryContentError(f"{uri} is a directory")
        entry = self._tree.entry(place)
        if entry.kind is EntryKind.DIRECTORY:
            raise IsADirectoryContentError(f"{uri} is a directory")
        if entry.kind is EntryKind.SYMLINK:
            raise InvalidPathError(f"{uri} is a symbolic link, which is not followed")
        fd_or_none = self._cache.open(entry.cid, entry.size)
        if fd_or_none is not None:
            return self._register(owner, entry.cid, entry.size), fd_or_none, True, False
        shared = self._share(entry.cid, entry.size)
        try:
            with shared.lock:
                if entry.size <= SMALL_BYTES and not shared.filling.complete:
                    shared.filling.fetch_whole()
            fd = shared.filling.reader()
        except BaseException:
            self._unshare(entry.cid)
            raise
        opened = self._register(owner, entry.cid, entry.size, shared.filling)
        return opened, fd, shared.filling.complete, False

    def ensure(self, handle: int, offset: int, length: int) -> tuple[int, bool]:
        """Wait until a range is verified in the file behind the descriptor."""
        opened = self.get(handle)
        if opened.filling is None:
            return opened.size, True
        return opened.filling.ensure(offset, length)

    def get(self, handle: int) -> Opened:
        with self._lock:
            opened = self._opened.get(handle)
        if opened is None:
            raise UnknownHandleError(f"handle {handle} is not open at this gate")
        return opened

    def release(self, handle: int) -> None:
        with self._lock:
            opened = self._opened.pop(handle, None)
        if opened is not None and opened.filling is not None:
            self._unshare(opened.cid)

    def release_all(self, owner: int) -> list[int]:
        """Close what a process had open that is gone; the handles that were closed."""
        with self._lock:
            handles = [opened.handle for opened in self._opened.values() if opened.owner == owner]
        for handle in handles:
            self.release(handle)
        return handles

    def end(self) -> None:
        """Remove what is not whole from the cache."""
        with self._lock:
            for shared in self._shared.values():
                shared.filling.abandon()

    def _register(self, owner: int, cid: Cid, size: int, filling: Filling | None = None) -> Opened:
        with self._lock:
            opened = Opened(next(self._numbers), owner, cid, size, filling)
            self._opened[opened.handle] = opened
        return opened

    def _share(self, cid: Cid, size: int) -> _Shared:
        with self._lock:
            shared = self._shared.get(cid)
            if shared is None:
                filling = Filling(self._tree.content, self._cache, cid, size)
                shared = self._shared[cid] = _Shared(filling)
            shared.users += 1
            self._prune()
        return shared

    def _unshare(self, cid: Cid) -> None:
        with self._lock:
            shared = self._shared[cid]
            shared.users -= 1
            if shared.users == 0:
                shared.filling.leave()
            self._prune()

    def _prune(self) -> None:
        """Let go of the files that nobody has open and that are whole, or one too many."""
        idle = [cid for cid, shared in self._shared.items() if shared.users == 0]
        resting = [cid for cid in idle if not self._shared[cid].filling.streaming]
        whole = [cid for cid in resting if self._shared[cid].filling.complete]
        partial = [cid for cid in resting if cid not in whole]
        for cid in whole + partial[: max(0, len(partial) - _IDLE_FILLINGS)]:
            self._shared.pop(cid).filling.close()

    def _snapshot(self, fd: int) -> Cid:
        """Store what a changing file holds now, so that the run that reads it can be reproduced."""
        about = os.fstat(fd)
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        with self._lock:
            known = self._snapshots.get(key)
        if known is not None:
            return known
        with open(os.dup(fd), "rb", buffering=0) as file:
            cid = self._tree.content.add(file, pin=False).cid
        os.lseek(fd, 0, os.SEEK_SET)
        with self._lock:
            if len(self._snapshots) >= _KNOWN_SNAPSHOTS:
                self._snapshots.clear()
            self._snapshots[key] = cid
        return cid
