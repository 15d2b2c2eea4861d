"""Receiving the next blocks while the last ones are checked."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress

from trainyard.content.cid import Cid
from trainyard.content.limits import KIB, MIB

_MOST_BYTES = 8 * MIB
# Small blocks count for something too.
_BLOCK_BYTES = KIB

Received = tuple[Cid, bytes]


class ReadAhead(Iterator[Received]):
    """A stream of blocks, received by a thread of its own until a few MiB wait to be taken.

    Errors come where they would have come. Hashing and receiving both leave the interpreter to
    others, so the two go on at once.
    """

    def __init__(self, blocks: Iterator[Received]) -> None:
        self._blocks = blocks
        self._changed = threading.Condition()
        self._waiting: deque[Received] = deque()
        self._waiting_bytes = 0
        self._ended = self._closed = False
        self._failure: BaseException | None = None
        threading.Thread(target=self._receive, name="read ahead", daemon=True).start()

    def __next__(self) -> Received:
        with self._changed:
            self._changed.wait_for(self._is_ready)
            if not self._waiting:
                if self._failure is not None:
                    raise self._failure
                raise StopIteration
            cid, block = self._waiting.popleft()
            self._waiting_bytes -= len(block) + _BLOCK_BYTES
            self._changed.notify_all()
            return cid, block

    def wait(
        self, timeout_s: float | None = None, *, unless: Callable[[], bool] = lambda: False
    ) -> bool:
        """Whether the next block, or the end, is here; ends early by `wake`, if then `unless`."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_ready() or unless(), timeout_s)
            return self._is_ready()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def _is_ready(self) -> bool:
        return bool(self._waiting) or self._ended or self._closed

    def close(self) -> None:
        """Take no more. The thread ends, and closes the stream, when what it waits for comes."""
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def _receive(self) -> None:
        try:
            for cid, block in self._blocks:
                with self._changed:
                    self._changed.wait_for(
                        lambda: self._waiting_bytes < _MOST_BYTES or self._closed
                    )
                    if self._closed:
                        return
                    self._waiting.append((cid, block))
                    self._waiting_bytes += len(block) + _BLOCK_BYTES
                    self._changed.notify_all()
        except BaseException as error:  # whoever takes the next block gets it
            self._failure = error
        finally:
            with suppress(Exception):
                self._blocks.close()  # type: ignore[attr-defined]
            with self._changed:
                self._ended = True
                self._changed.notify_all()
