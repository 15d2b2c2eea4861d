"""What the reflog is told, so that a run can be done again on what it found.

Under a CID nothing changes. Below iptf://mfs it does, so whatever a run takes from there without
having put it there itself is stored as it was: the files, and of a directory that is listed its
names.
"""

import io
import threading
from collections.abc import Iterable

from trainyard.content.build import build_directory, build_file
from trainyard.content.cid import Cid
from trainyard.content.names import ContentPath
from trainyard.iptf.files import OpenFiles
from trainyard.iptf.intervals import Intervals
from trainyard.iptf.mfs import MutableEntry
from trainyard.iptf.reflog import Reflog
from trainyard.iptf.tree import MutablePath, Tree, parse_uri

_KNOWN = 1 << 16


class Recorder:
    """The reflog of a gate, over the files that it speaks of."""

    def __init__(self, tree: Tree, files: OpenFiles, reflog: Reflog) -> None:
        self._tree, self._files, self._reflog = tree, files, reflog
        self._lock = threading.Lock()
        self._found: set[tuple[int, str]] = set()
        self._outlines: dict[tuple[tuple[str, bool], ...], Cid] = {}

    def opened(self, run: int, uri: str, cid: Cid, size: int) -> None:
        self._reflog.opened(run, uri, str(cid), size)

    def read(
        self, run: int, handle: int, uri: str, cid: str, ranges: Intervals, count: int
    ) -> None:
        """Add what was read of a file; of one that changed meanwhile also as it is now."""
        if not count:
            return
        size = self._reflog.read(run, uri, cid, ranges, count)
        now = self._files.look_again(handle, uri)
        if size is None or now is None or str(now[0]) == cid:
            return
        new, new_size = now
        if new_size > size:
            # It grew. A reader that never came to the new bytes has read what stood there at first.
            ranges = ranges.within(size, new_size)
        if ranges.total():
            self._reflog.opened(run, uri, str(new), new_size, opens=0)
            self._reflog.read(run, uri, str(new), ranges, ranges.total())

    def listed(self, run: int, uri: str) -> None:
        """Record a directory whose names are handed out."""
        place = parse_uri(uri)
        if isinstance(place, ContentPath):
            self._reflog.opened(run, f"ipfs://{place}", str(self._tree.entry(place).cid), 0)
        elif isinstance(place, MutablePath) and _is_text(str(place)):
            entries: Iterable[MutableEntry] = self._tree.mfs.ls(place.names)
            if not self._reflog.is_own(run, str(place)):
                # Its own it names as it likes, by the time of day for instance.
                own = self._reflog.put_in(run, str(place))
                entries = (entry for entry in entries if entry.name not in own)
            outline = self._outline(tuple((entry.name, entry.directory) for entry in entries))
            self._reflog.opened(run, str(place), str(outline), 0)

    def found(self, run: int, place: MutablePath) -> None:
        """Record that a directory is there, unless the run has made it."""
        uri = str(place)
        if not place.names or not _is_text(uri):
            return
        with self._lock:
            if (run, uri) in self._found:
                return
        if not self._reflog.is_own(run, uri):
            self._reflog.folder(run, uri, made=False)
        with self._lock:
            if len(self._found) >= _KNOWN:
                self._found.clear()
            self._found.add((run, uri))

    def made(self, run: int, place: MutablePath, there: int) -> None:
        """Record that a directory was made, of whose names the first few were there already."""
        self.found(run, MutablePath(place.names[:there]))
        for depth in range(there + 1, len(place.names) + 1):
            uri = str(MutablePath(place.names[:depth]))
            if _is_text(uri):
                self._reflog.folder(run, uri, made=True)

    def wrote(self, run: int, place: MutablePath, position: int) -> None:
        """Record that a file is open for writing, at its start or after what it holds."""
        self.found(run, place.parent)
        if position > 0:
            self._take(run, place)
        self._reflog.wrote(run, str(place))

    def renaming(self, run: int, source: MutablePath, target: MutablePath) -> bool:
        """Record what is about to be moved; whether it is the run's own."""
        self.found(run, target.parent)
        self._take(run, source)
        return self._reflog.is_own(run, str(source))

    def renamed(self, run: int, source: MutablePath, target: MutablePath, *, own: bool) -> None:
        if own:
            self._reflog.wrote(run, str(target))
        else:
            self._reflog.moved(run, str(source), str(target))

    def _take(self, run: int, place: MutablePath) -> None:
        """Record all that stands at a place and is not the run's own, as if the run read it."""
        if not place.names or self._reflog.is_own(run, str(place)):
            return
        if self._tree.mfs.stat(place.names).directory:
            self.found(run, place)
            for entry in self._tree.mfs.ls(place.names):
                self._take(run, place.child(entry.name))
        else:
            cid, size = self._files.snapshot(place)
            self.opened(run, str(place), cid, size)

    def _outline(self, names: tuple[tuple[str, bool], ...]) -> Cid:
        """Store a directory of these names, with nothing in what they name."""
        with self._lock:
            known = self._outlines.get(names)
        if known is not None:
            return known
        with self._tree.content.store.batch() as batch:
            folder, file = build_directory((), batch.put), build_file(io.BytesIO(), batch.put)
            entries = ((name, folder if directory else file) for name, directory in names)
            cid = build_directory(entries, batch.put).cid
        with self._lock:
            if len(self._outlines) >= _KNOWN:
                self._outlines.clear()
            self._outlines[names] = cid
        return cid


def _is_text(uri: str) -> bool:
    """Whether the reflog can hold it: names on disk need not be UTF-8, what SQLite keeps must."""
    try:
        uri.encode()
    except UnicodeEncodeError:
        return False
    return True
