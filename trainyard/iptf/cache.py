"""Verified files on disk, named by their CID, up to a bound; the least recently opened go first.

Several gates may share one cache. A file has its name only once all of it is verified, it never
changes after, and whoever has it open keeps it when it is removed.
"""

import fcntl
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.iptf.codes import Code, code_of

# After an eviction a little is free, so that not every new file makes the next.
_FULL_AFTER = 0.9
# How much of the bound one gate adds before it looks what others have added.
_LOOK_AFTER = 1 / 16
_YOUNG_S = 60.0


class Cache:
    """Files under `root`/files, and those on their way under `root`/partial."""

    def __init__(self, root: Path, limit_bytes: int) -> None:
        self.root, self.limit_bytes = root, limit_bytes
        self._files, self._partial = root / "files", root / "partial"
        self._make_folders()
        self._lock = threading.Lock()
        self._sweep()
        self._added = 0
        self._bytes = sum(size for _, size, _ in self._listed())

    def open(self, cid: Cid, size: int) -> int | None:
        """A descriptor to read the file by, or None if it is not here."""
        path = self._files / str(cid)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        # A crash may have cut the file short. One block is not brought to disk before it has its
        # name, which for thousands of small files would take minutes; it is verified here instead.
        if os.fstat(fd).st_size != size or (
            cid.codec is Codec.RAW and not cid.matches(os.pread(fd, size, 0))
        ):
            os.close(fd)
            with suppress(FileNotFoundError):
                path.unlink()
            return None
        with suppress(FileNotFoundError):
            os.utime(path)
        return fd

    def begin(self, cid: Cid, size: int) -> "PartialFile":
        """A file of this size, still without bytes, to be filled and then kept."""
        self._make_folders()  # somebody may have emptied the cache
        return PartialFile(self._partial, cid, size)

    def keep(self, partial: "PartialFile") -> None:
        """Give a file that is whole its name. One larger than the bound is not kept."""
        if partial.size > self.limit_bytes:
            return
        if partial.cid.codec is not Codec.RAW:
            os.fdatasync(partial.fd)
        os.fchmod(partial.fd, 0o400)
        try:
            partial.move(self._files / str(partial.cid))
        except FileNotFoundError:  # somebody emptied the cache; whoever has the file open reads on
            return
        with self._lock:
            self._bytes += partial.size
            self._added += partial.size
            if self._bytes > self.limit_bytes or self._added > self.limit_bytes * _LOOK_AFTER:
                self._evict(self.limit_bytes)

    def make_room(self) -> None:
        """Give half of what is kept back to a disk that is full."""
        with self._lock:
            self._evict(sum(size for _, size, _ in self._listed()) // 2)

    def usage_bytes(self) -> int:
        return sum(size for _, size, _ in self._listed())

    def _make_folders(self) -> None:
        for folder in (self._files, self._partial):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = folder.stat()
            # INVARIANT: what stands under a CID's name was verified by a gate of this user.
            if about.st_uid != os.getuid() or about.st_mode & 0o022:
                raise PermissionError(
                    f"the cache {folder} can be written by others: name another by IPTF_CACHE"
                )

    def _evict(self, limit_bytes: int) -> None:
        files = sorted(self._listed())
        total = sum(size for _, size, _ in files)
        goal = limit_bytes if total <= limit_bytes else limit_bytes * _FULL_AFTER
        for _, size, path in files:
            if total <= goal:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size
        self._bytes, self._added = total, 0

    def _listed(self) -> Iterator[tuple[int, int, str]]:
        """When each file was last opened, its size, and where it is."""
        with os.scandir(self._files) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    about = entry.stat(follow_symlinks=False)
                    yield about.st_mtime_ns, about.st_size, entry.path

    def _sweep(self) -> None:
        """Remove what gates left behind that are gone: their locks ended with them."""
        for path in self._partial.iterdir():
            with suppress(OSError), path.open("rb") as file:
                # One so young may be about to be locked.
                if time.time() - os.fstat(file.fileno()).st_mtime < _YOUNG_S:
                    continue
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()


class PartialFile:
    """A sparse file of a known size. Its owner knows which of its bytes are there."""

    def __init__(self, folder: Path, cid: Cid, size: int) -> None:
        self.cid, self.size = cid, size
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


def is_full(error: OSError) -> bool:
    return code_of(error) is Code.RESOURCE_EXHAUSTED
