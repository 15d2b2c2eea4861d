"""What is got from others: for strangers the store alone, and for all only so much at once."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TypeVar

from dapp.security.clients import asking
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.errors import BlockNotFoundError, InvalidCidError
from trainyard.content.names import ContentPath
from trainyard.content.ports import Batch, ContentStore, Usage
from trainyard.engine.material import check_file
from trainyard.protocol.errors import TransientError

_Found = TypeVar("_Found")
_REMEMBERED = 4_096
_LINKS_BYTES = 64 << 10
MOST_OF_ONE = 2


class BusyError(TransientError):
    """As many as may be are at it already; nobody waits in line for that."""


class Reach:
    """How many may wait at once for what others have: each of them holds a thread of the server."""

    def __init__(
        self,
        stored: Content,
        content: Content,
        most: int,
        on_kept: Callable[[Cid], None] = lambda cid: None,
    ) -> None:
        """`on_kept` hears of what is pinned for good."""
        self._stored, self._content, self._on_kept = stored, content, on_kept
        self._most, self._inside = most, Counter[str]()
        self._lock = threading.Lock()
        self._kept, self._named = OrderedDict[Cid, None](), OrderedDict[Cid, None]()

    @contextmanager
    def held(self) -> Iterator[None]:
        """BusyError where `most` are inside already, or some of the same client."""
        client = asking.get()
        with self._lock:
            if self._inside.total() >= self._most:
                raise BusyError(
                    "too much is being fetched from others at once; try again in a moment"
                )
            if client and self._inside[client] >= MOST_OF_ONE:
                raise BusyError(
                    f"{MOST_OF_ONE} things are being fetched for you from others already; "
                    "try again in a moment"
                )
            self._inside[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside[client] -= 1
                # Also drops those who are not inside any more.
                self._inside += Counter()

    def get(self, read: Callable[[Content], _Found]) -> _Found:
        """What `read` finds here, for which nobody waits, or else elsewhere."""
        with suppress(TransientError):
            return read(self._stored)
        with self.held():
            return read(self._content)

    def keep(self, path: ContentPath, most_bytes: int) -> Cid:
        """Fetch what is missing of a file, and pin it; refused where it is larger than that.

        Where all of it is here already, nobody waits for anybody.
        """
        with suppress(TransientError):
            found = self._stored.stat(path).cid
            if self._is_kept(found):
                return found
            return self._pin(self._stored, path, most_bytes)
        with self.held():
            return self._pin(self._content, path, most_bytes)

    def _pin(self, content: Content, path: ContentPath, most_bytes: int) -> Cid:
        check_file(content, path, most_bytes)
        # INVARIANT: a stranger's file costs us no more than it says. Links come beside its bytes.
        found = content.pin(path, most_bytes=most_bytes + most_bytes // 8 + _LINKS_BYTES)
        self._on_kept(found)
        self._note(self._kept, found)
        return found

    def note_named(self, *cids: Cid) -> None:
        """A task names these: what is below them may be fetched for whoever asks."""
        for cid in cids:
            self._note(self._named, cid)

    def is_named(self, text: str) -> bool:
        try:
            cid = Cid.parse(text)
        except InvalidCidError:
            return False
        with self._lock:
            return cid in self._named

    def _is_kept(self, cid: Cid) -> bool:
        """Whether it was noted lately that all of it is in our store, and pinned."""
        with self._lock:
            return cid in self._kept

    def _note(self, notes: "OrderedDict[Cid, None]", cid: Cid) -> None:
        with self._lock:
            notes[cid] = None
            notes.move_to_end(cid)
            if len(notes) > _REMEMBERED:
                # INVARIANT: memory is bounded; who asks for the result notes it again.
                notes.popitem(last=False)


class StoredOnly:
    """A store that is asked for nothing that it lacks: a node would ask its peers for that."""

    def __init__(self, store: ContentStore) -> None:
        self._store = store

    @property
    def name(self) -> str:
        return self._store.name

    def fetch(self, cid: Cid) -> bytes:
        if not self._store.has(cid):
            raise BlockNotFoundError(cid, self.name)
        return self._store.fetch(cid)

    def has(self, cid: Cid) -> bool:
        return self._store.has(cid)

    def batch(self) -> AbstractContextManager[Batch]:
        return self._store.batch()

    def pin(self, root: Cid) -> None:
        self._store.pin(root)

    def unpin(self, root: Cid) -> None:
        self._store.unpin(root)

    def pins(self) -> frozenset[Cid]:
        return self._store.pins()

    def collect(self) -> Usage:
        return self._store.collect()

    def usage(self) -> Usage:
        return self._store.usage()
