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
    # Another descriptor of a file that may still change, to see at the end what became of it.
    live_fd: int | None = None


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
        cache.reclaim = self._reclaim
        self._lock = threading.Lock()
        # Not from one: a handle of a gate that was restarted should be unknown here.
        self._numbers = itertools.count(int.from_bytes(os.urandom(6), "little") + 1)
        self._opened: dict[int, Opened] = {}
        self._shared: dict[Cid, _Shared] = {}
        self._snapshots: dict[tuple[int, ...], tuple[Cid, int]] = {}

    def open(self, uri: str, owner: int) -> tuple[Opened, int, bool, bool]:
        """The file, a descriptor to read by, whether it is all there, and whether it may change."""
        place = parse_uri(uri)
        if isinstance(place, MutablePath):
            fd = self._tree.mfs.open(place.names)
            try:
                cid, size = self._snapshot(fd)
                opened = self._register(owner, cid, size, live_fd=os.dup(fd))
            except BaseException:
                os.close(fd)
                raise
            return opened, fd, True, True
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

    def snapshot(self, place: MutablePath) -> tuple[Cid, int]:
        """Store a file of iptf://mfs as it is now; its CID and size."""
        fd = self._tree.mfs.open(place.names)
        try:
            return self._snapshot(fd)
        finally:
            os.close(fd)

    def look_again(self, handle: int, uri: str) -> tuple[Cid, int] | None:
        """As `snapshot`, of a file that is or was open; None if it cannot change, or is gone."""
        place = parse_uri(uri)
        if not isinstance(place, MutablePath):
            return None
        with self._lock:
            opened = self._opened.get(handle)
            fd = None if opened is None or opened.live_fd is None else os.dup(opened.live_fd)
        if fd is None:  # it was opened at a gate that was restarted since
            try:
                fd = self._tree.mfs.open(place.names)
            except OSError:
                return None
        try:
            return self._snapshot(fd)
        finally:
            os.close(fd)

    def get(self, handle: int) -> Opened:
        with self._lock:
            opened = self._opened.get(handle)
        if opened is None:
            raise UnknownHandleError(f"handle {handle} is not open at this gate")
        return opened

    def release(self, handle: int) -> None:
        with self._lock:
            opened = self._opened.pop(handle, None)
        if opened is None:
            return
        if opened.filling is not None:
            self._unshare(opened.cid)
        if opened.live_fd is not None:
            os.close(opened.live_fd)

    def release_all(self, owner: int) -> None:
        """Close what a process had open that is gone."""
        with self._lock:
            handles = [opened.handle for opened in self._opened.values() if opened.owner == owner]
        for handle in handles:
            self.release(handle)

    def end(self) -> None:
        """Remove what is not whole from the cache."""
        with self._lock:
            for shared in self._shared.values():
                shared.filling.abandon()

    def _register(
        self,
        owner: int,
        cid: Cid,
        size: int,
        filling: Filling | None = None,
        live_fd: int | None = None,
    ) -> Opened:
        with self._lock:
            opened = Opened(next(self._numbers), owner, cid, size, filling, live_fd)
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

    def _prune(self, idle_fillings: int = _IDLE_FILLINGS) -> None:
        """Let go of the files that nobody has open and that are whole, or one too many."""
        idle = [cid for cid, shared in self._shared.items() if shared.users == 0]
        resting = [cid for cid in idle if not self._shared[cid].filling.busy]
        whole = [cid for cid in resting if self._shared[cid].filling.complete]
        partial = [cid for cid in resting if cid not in whole]
        for cid in whole + partial[: max(0, len(partial) - idle_fillings)]:
            self._shared.pop(cid).filling.close()

    def _reclaim(self) -> None:
        """The cache is over its bound: what nobody reads and is not whole goes first."""
        with self._lock:
            self._prune(idle_fillings=0)

    def _snapshot(self, fd: int) -> tuple[Cid, int]:
        """Store what a changing file holds now, so that the run that reads it can be reproduced."""
        about = os.fstat(fd)
        key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns)
        with self._lock:
            known = self._snapshots.get(key)
        if known is not None:
            return known
        # Opened anew: whoever shares the descriptor shares its position too.
        with open(f"/proc/self/fd/{fd}", "rb", buffering=0) as file:
            built = self._tree.content.add(file, pin=False)
        with self._lock:
            if len(self._snapshots) >= _KNOWN_SNAPSHOTS:
                self._snapshots.clear()
            self._snapshots[key] = built.cid, built.size
        return built.cid, built.size
