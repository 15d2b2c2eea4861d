"""Verified files on disk, named by their CID, up to a bound; the least recently opened go first.

Several gates may share one cache. A file has its name only once all of it is verified, it never
changes after, and whoever has it open keeps it when it is removed. A disk may change it all the
same: a file of one block is hashed at every open, and of a larger one, whose CID is not the hash of
its bytes, that hash is kept beside it and compared at its first open in each gate.
"""

import fcntl
import hashlib
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.content.limits import MIB
from trainyard.iptf.codes import Code, code_of

# After an eviction a little is free, so that not every new file makes the next.
_FULL_AFTER = 0.9
# How much of the bound one gate adds before it looks what others have added.
_LOOK_AFTER = 1 / 16
_YOUNG_S = 60.0
# Of which st_blocks counts.
_BLOCK_BYTES = 512
_PIECE_BYTES = MIB


class Cache:
    """Files under `root`/files and their hashes in sums; those on their way in partial."""

    def __init__(self, root: Path, limit_bytes: int) -> None:
        self.root, self.limit_bytes = root, limit_bytes
        self._files, self._partial, self._sums = root / "files", root / "partial", root / "sums"
        # Called when the bound is passed, to let go of what is on its way for nobody.
        self.reclaim: Callable[[], None] = lambda: None
        self._make_folders()
        self._lock = threading.Lock()
        # The files whose bytes this gate has hashed, by inode: another gate may have renewed one.
        self._hashed: dict[Cid, int] = {}
        self._hashing: dict[Cid, threading.Lock] = {}
        self._sweep()
        self._added = 0
        self._bytes = self.usage_bytes()

    def open(self, cid: Cid, size: int) -> int | None:
        """A descriptor to read the file by, or None if it is not here."""
        path = self._files / str(cid)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            good = os.fstat(fd).st_size == size and self._is_good(fd, cid, size)
        except BaseException:
            os.close(fd)
            raise
        if not good:
            os.close(fd)
            self._remove(path)
            return None
        with suppress(FileNotFoundError):
            os.utime(path)
        return fd

    def begin(self, cid: Cid, size: int) -> "PartialFile":
        """A file of this size, still without bytes, to be filled and then kept."""
        self._make_folders()  # somebody may have emptied the cache
        return PartialFile(self._partial, cid, size, self._grew)

    def keep(self, partial: "PartialFile") -> None:
        """Give a file that is whole its name. One larger than the bound is not kept."""
        if partial.size > self.limit_bytes:
            return
        os.fchmod(partial.fd, 0o400)
        try:
            if partial.cid.codec is not Codec.RAW:
                os.fdatasync(partial.fd)
                self._keep_sum(partial)
            partial.move(self._files / str(partial.cid))
        except FileNotFoundError:  # somebody emptied the cache; whoever has the file open reads on
            return
        except OSError as error:
            if not is_full(error):
                raise
            return
        with self._lock:
            if self._bytes > self.limit_bytes:
                self._evict()

    def make_room(self) -> None:
        """Give half of what is kept back to a disk that is full."""
        self.reclaim()
        with self._lock:
            kept = sum(size for _, size, _ in self._listed())
            self._evict(self.usage_bytes() - kept + kept // 2)

    def usage_bytes(self) -> int:
        """What the cache takes of the disk, with what is on its way into it."""
        return sum(size for _, size, _ in self._listed()) + self._partial_bytes()

    def _is_good(self, fd: int, cid: Cid, size: int) -> bool:
        """Whether a file holds what was verified; a crash or the disk may have changed it."""
        # One block is not brought to disk before it has its name, which for thousands of small
        # files would take minutes; it is verified here instead.
        if cid.codec is Codec.RAW:
            return cid.matches(os.pread(fd, size, 0))
        inode = os.fstat(fd).st_ino
        with self._lock:
            hashing = self._hashing.setdefault(cid, threading.Lock())
        with hashing:  # many threads may open it at once: one looks, the others wait
            if self._hashed.get(cid) == inode:
                return True
            try:
                kept = (self._sums / str(cid)).read_text()
            except (FileNotFoundError, UnicodeDecodeError):
                return False
            if kept != _sum(fd):
                return False
            self._hashed[cid] = inode
            return True

    def _keep_sum(self, partial: "PartialFile") -> None:
        # INVARIANT: a file of several blocks has its sum before it has its name.
        fd, aside = tempfile.mkstemp(dir=self._partial)
        try:
            with open(fd, "w") as file:
                file.write(_sum(partial.fd))
            os.replace(aside, self._sums / str(partial.cid))
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(aside)
            raise
        self._hashed[partial.cid] = os.fstat(partial.fd).st_ino

    def _grew(self, count: int) -> None:
        """A file on its way has so many bytes more."""
        with self._lock:
            self._bytes += count
            self._added += count
            if self._added <= self.limit_bytes * _LOOK_AFTER:
                return
            self._added = 0
            over = self.usage_bytes() > self.limit_bytes
        if over:
            self.reclaim()
        with self._lock:
            self._evict()

    def _make_folders(self) -> None:
        for folder in (self._files, self._partial, self._sums):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = folder.stat()
            # INVARIANT: what stands under a CID's name was verified by a gate of this user.
            if about.st_uid != os.getuid() or about.st_mode & 0o022:
                raise PermissionError(
                    f"the cache {folder} can be written by others: name another by IPTF_CACHE"
                )

    def _evict(self, limit_bytes: int | None = None) -> None:
        limit = self.limit_bytes if limit_bytes is None else limit_bytes
        files = sorted(self._listed())
        total = sum(size for _, size, _ in files) + self._partial_bytes()
        goal = limit if total <= limit else limit * _FULL_AFTER
        for _, size, path in files:
            if total <= goal:
                break
            self._remove(Path(path))
            total -= size
        self._bytes, self._added = total, 0

    def _remove(self, path: Path) -> None:
        for each in (path, self._sums / path.name):
            with suppress(FileNotFoundError):
                each.unlink()

    def _listed(self) -> Iterator[tuple[int, int, str]]:
        """When each file was last opened, its size, and where it is."""
        with suppress(FileNotFoundError), os.scandir(self._files) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    about = entry.stat(follow_symlinks=False)
                    yield about.st_mtime_ns, about.st_size, entry.path

    def _partial_bytes(self) -> int:
        """What files that are not whole take; their holes take nothing."""
        total = 0
        with suppress(FileNotFoundError), os.scandir(self._partial) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    about = entry.stat(follow_symlinks=False)
                    total += min(about.st_size, about.st_blocks * _BLOCK_BYTES)
        return total

    def _sweep(self) -> None:
        """Remove what gates left behind that are gone: their locks ended with them."""
        for sum_ in self._sums.iterdir():
            with suppress(FileNotFoundError):
                # The file of one so young may be about to follow.
                young = time.time() - sum_.stat().st_mtime < _YOUNG_S
                if not young and not (self._files / sum_.name).exists():
                    sum_.unlink()
        for path in self._partial.iterdir():
            with suppress(OSError), path.open("rb") as file:
                # One so young may be about to be locked.
                if time.time() - os.fstat(file.fileno()).st_mtime < _YOUNG_S:
                    continue
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


class PartialFile:
    """A sparse file of a known size. Its owner knows which of its bytes are there."""

    def __init__(self, folder: Path, cid: Cid, size: int, grew: Callable[[int], None]) -> None:
        self.cid, self.size = cid, size
        self._grew = grew
        self.fd, name = tempfile.mkstemp(dir=folder)
        self._path: Path | None = Path(name)
        try:
            fcntl.flock(self.fd, fcntl.LOCK_EX)
            os.ftruncate(self.fd, size)
        except OSError:
            self.close()
            raise

    def reader(self) -> int:
        """Another descriptor, through which the file cannot be changed."""
        return os.open(f"/proc/self/fd/{self.fd}", os.O_RDONLY | os.O_CLOEXEC)

    def write(self, offset: int, data: bytes | memoryview) -> None:
        view = memoryview(data)
        while view:
            count = os.pwrite(self.fd, view, offset)
            offset += count
            view = view[count:]
            self._grew(count)

    def move(self, path: Path) -> None:
        if self._path is not None:
            os.replace(self._path, path)
            self._path = None

    def unlink(self) -> None:
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def close(self) -> None:
        self.unlink()
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1


def _sum(fd: int) -> str:
    digest = hashlib.sha256()
    at = 0
    while piece := os.pread(fd, _PIECE_BYTES, at):
        digest.update(piece)
        at += len(piece)
    return digest.hexdigest()


def is_full(error: OSError) -> bool:
    return code_of(error) is Code.RESOURCE_EXHAUSTED
