"""One file on its way into the cache, and those who wait for parts of it."""

import threading
from contextlib import closing
from typing import cast

from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.content.limits import MIB
from trainyard.content.names import ContentPath
from trainyard.iptf.cache import Cache, is_full
from trainyard.iptf.intervals import Intervals

# A file up to this size is fetched whole when it is opened: one answer, and nothing to wait for.
SMALL_BYTES = MIB
# A reader this far before the stream waits for it rather than fetch the same bytes again.
_NEAR_BYTES = 8 * MIB
# What a jump fetches beyond the bytes that were asked for.
_JUMP_BYTES = MIB
# So little is streamed to its end even if nobody reads on; a jump into a file so small starts it.
_LITTLE_BYTES = 64 * MIB


class Filling:
    """Verified bytes of one CID, streamed into a sparse file from the first read on."""

    def __init__(self, content: Content, cache: Cache, cid: Cid, size: int) -> None:
        self.cid, self.size = cid, size
        self._content, self._cache = content, cache
        self._partial = cache.begin(cid, size)
        self._changed = threading.Condition()
        self._have = Intervals()
        self._streaming = False
        self._fetches = 0
        self._stop = False
        self._at = 0
        self._failure: Exception | None = None
        self._failures = 0
        self._keeping = threading.Lock()
        self._kept = False

    @property
    def complete(self) -> bool:
        with self._changed:
            return self._have.covers(0, self.size)

    @property
    def busy(self) -> bool:
        """Whether bytes are being written to it, for a reader or for nobody."""
        with self._changed:
            return self._streaming or self._fetches > 0

    def reader(self) -> int:
        return self._partial.reader()

    def fetch_whole(self) -> None:
        """Fetch all of it now, and keep it."""
        self._fetch(0, self.size)
        self._keep()

    def ensure(self, offset: int, length: int) -> tuple[int, bool]:
        """Wait until a range is verified; how far it goes on, and whether all is here."""
        end = min(offset + length, self.size)
        with self._changed:
            if not self._have.covers(offset, end) and self._within_stream(offset):
                self._await_stream(offset, end)
            gap = self._have.first_gap(end, offset)
        while gap is not None:
            start, stop = gap
            with self._changed:
                # Read on a little, up to what is here already.
                ahead = self._have.first_gap(min(stop + _JUMP_BYTES, self.size), start)
            self._fetch(start, ahead[1] if ahead else stop)
            with self._changed:
                gap = self._have.first_gap(end, offset)
        with self._changed:
            return self._have.covered_until(offset), self._have.covers(0, self.size)

    def leave(self) -> None:
        """Nobody has it open any more: stream on only if little is left."""
        with self._changed:
            self._stop = self.size - self._have.total() > _LITTLE_BYTES

    def close(self) -> None:
        """Only while it is not busy."""
        self._partial.close()

    def abandon(self) -> None:
        """The process ends: keep what is whole, and leave nothing else behind."""
        with self._changed:
            self._stop = True
            complete = self._have.covers(0, self.size)
        if complete:
            self._keep()
        self._partial.unlink()

    def _within_stream(self, offset: int) -> bool:
        """Whether the stream will soon be at `offset`; starts it if so."""
        if self._streaming and not self._stop:
            return offset < self._at + _NEAR_BYTES
        start = self._have.covered_until(0)
        if not start <= offset < start + _NEAR_BYTES and self.size > _LITTLE_BYTES:
            return False
        # One that was told to stop may still be at it; another reader may start the next first.
        self._changed.wait_for(lambda: not (self._streaming and self._stop))
        if not self._streaming:
            thread = threading.Thread(target=self._stream, name=f"fill {self.cid}", daemon=True)
            thread.start()
            self._streaming, self._stop, self._at = True, False, start
        return offset < self._at + _NEAR_BYTES

    def _await_stream(self, offset: int, end: int) -> None:
        failures = self._failures
        self._changed.wait_for(
            lambda: (
                self._have.covers(offset, end) or not self._streaming or self._failures > failures
            )
        )
        if not self._have.covers(offset, end) and self._failures > failures:
            raise cast(Exception, self._failure)

    def _stream(self) -> None:
        """Fetch gap by gap until nothing is missing."""
        try:
            while gap := self._next_gap():
                self._fetch(*gap, stoppable=True)
            if not self._stopped():
                self._keep()
        except Exception as error:  # whoever waits gets it, and the next read starts again
            with self._changed:
                self._failure = error
                self._failures += 1
        finally:
            with self._changed:
                self._streaming = False
                self._changed.notify_all()

    def _stopped(self) -> bool:
        with self._changed:
            return self._stop

    def _next_gap(self) -> tuple[int, int] | None:
        with self._changed:
            gap = None if self._stop else self._have.first_gap(self.size)
            if gap is not None:
                self._at = gap[0]
            return gap

    def _fetch(self, start: int, end: int, *, stoppable: bool = False) -> None:
        with self._changed:
            self._fetches += 1
        try:
            self._write(start, end, stoppable=stoppable)
        finally:
            with self._changed:
                self._fetches -= 1

    def _write(self, start: int, end: int, *, stoppable: bool) -> None:
        # Without bounds the whole file comes in one stream, if there is a source that streams.
        length = None if start == 0 and end == self.size else end - start
        with closing(self._content.cat(ContentPath(self.cid), start, length)) as pieces:  # type: ignore[type-var]
            for piece in pieces:
                try:
                    self._partial.write(start, piece)
                except OSError as error:
                    if not is_full(error):
                        raise
                    self._cache.make_room()
                    self._partial.write(start, piece)
                with self._changed:
                    self._have.add(start, start + len(piece))
                    start += len(piece)
                    if stoppable:
                        self._at = start
                    self._changed.notify_all()
                    if stoppable and self._stop:
                        return

    def _keep(self) -> None:
        with self._keeping:
            if not self._kept:
                self._cache.keep(self._partial)
                self._kept = True
