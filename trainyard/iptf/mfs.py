"""Files that can still be changed: a folder behind `iptf://mfs`.

Every path is walked name by name from the folder's own descriptor, and no symbolic link is
followed, so nothing outside the folder can be reached whatever stands in it.
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trainyard.iptf.codes import ReadOnlyError

Names = Sequence[str]

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class MutableEntry:
    name: str
    directory: bool
    size: int
    mtime_ns: int


class Mfs:
    """A tree of files and directories under `root`, addressed by names."""

    def __init__(self, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root

    def path(self, names: Names) -> Path:
        """Where an entry stands on disk; raises as `stat` does if there is none."""
        self.stat(names)
        return self.root.joinpath(*names)

    def stat(self, names: Names) -> MutableEntry:
        if not names:
            return MutableEntry("", True, 0, self.root.stat().st_mtime_ns)
        with self._parent(names) as folder:
            return _entry(names[-1], os.lstat(names[-1], dir_fd=folder))

    def ls(self, names: Names) -> list[MutableEntry]:
        with self._folder(names) as folder, os.scandir(folder) as entries:
            kept = (_entry_or_none(entry) for entry in entries)
            return sorted((e for e in kept if e is not None), key=lambda entry: entry.name)

    def open(self, names: Names) -> int:
        """A descriptor to read a file by."""
        if not names:
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), "iptf://mfs")
        with self._parent(names) as folder:
            # Not blocking: a pipe in the folder must not stop the gate.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            return _regular(os.open(names[-1], flags, dir_fd=folder), names)

    def create(self, names: Names, *, append: bool) -> tuple[int, int]:
        """A descriptor to write a file by, and its position.

        A file that is made anew replaces the old one, which those who read it keep.
        """
        with self._parent(names) as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
            if append:
                fd = os.open(names[-1], flags | os.O_APPEND, 0o644, dir_fd=folder)
                fd = _regular(fd, names)
                return fd, os.fstat(fd).st_size
            with suppress(FileNotFoundError):
                os.unlink(names[-1], dir_fd=folder)
            return os.open(names[-1], flags | os.O_EXCL, 0o644, dir_fd=folder), 0

    def make_dir(self, names: Names, *, parents: bool) -> int:
        """Make a directory, and those above it if asked to; how many of `names` were there."""
        if not parents:
            if not names:
                raise FileExistsError(errno.EEXIST, "this is the root", "iptf://mfs")
            with self._parent(names) as folder:
                os.mkdir(names[-1], 0o755, dir_fd=folder)
            return len(names) - 1
        there = 0
        for depth in range(1, len(names) + 1):
            try:
                self.make_dir(names[:depth], parents=False)
            except FileExistsError:
                # Raises if it is no directory.
                with self._folder(names[:depth]):
                    there = depth
        return there

    def remove_file(self, names: Names) -> None:
        with self._parent(names) as folder:
            os.unlink(names[-1], dir_fd=folder)

    def remove_dir(self, names: Names) -> None:
        with self._parent(names) as folder:
            os.rmdir(names[-1], dir_fd=folder)

    def remove_tree(self, names: Names) -> None:
        with self._parent(names) as folder:
            shutil.rmtree(names[-1], dir_fd=folder)

    def rename(self, source: Names, target: Names) -> None:
        """Move a file or a directory; a file that is in the way is replaced."""
        with self._parent(source) as old, self._parent(target) as new:
            os.replace(source[-1], target[-1], src_dir_fd=old, dst_dir_fd=new)

    @contextmanager
    def _folder(self, names: Names) -> Iterator[int]:
        fd = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for name in names:
                below = os.open(name, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            yield fd
        finally:
            os.close(fd)

    @contextmanager
    def _parent(self, names: Names) -> Iterator[int]:
        if not names:
            raise ReadOnlyError("iptf://mfs itself can be neither written, renamed nor removed")
        with self._folder(names[:-1]) as fd:
            yield fd


def _regular(fd: int, names: Names) -> int:
    mode = os.fstat(fd).st_mode
    if not stat.S_ISREG(mode):
        os.close(fd)
        number = errno.EISDIR if stat.S_ISDIR(mode) else errno.EINVAL
        raise OSError(number, os.strerror(number), "/".join(names))
    return fd


def _entry(name: str, about: os.stat_result) -> MutableEntry:
    directory = stat.S_ISDIR(about.st_mode)
    if not directory and not stat.S_ISREG(about.st_mode):
        raise OSError(errno.ELOOP, "this is neither a file nor a directory", name)
    return MutableEntry(name, directory, 0 if directory else about.st_size, about.st_mtime_ns)


def _entry_or_none(entry: "os.DirEntry[str]") -> MutableEntry | None:
    """None for what is neither, or was removed meanwhile."""
    try:
        return _entry(entry.name, entry.stat(follow_symlinks=False))
    except OSError:
        return None
