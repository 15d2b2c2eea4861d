"""Hashes and keeps states beside the computation of the next segment.

A hash takes one core, while an operation of the training takes all; a disk takes longer still.
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType

from trainyard.engine.journal import Entry, Journal
from trainyard.engine.state import State


class Writer:
    """Appends to a journal in a thread, one state at a time and in order.

    What a crash can take is the segment that is being written and the one being computed.
    """

    def __init__(self, journal: Journal, kept: Callable[[Entry], None]) -> None:
        """`kept` is called, in that thread, with each entry that is on disk."""
        self._journal, self._kept = journal, kept
        self._pool = ThreadPoolExecutor(1, "trainyard-writer")
        self._last: Future[None] | None = None

    def __enter__(self) -> "Writer":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pool.shutdown()
        if error is None:
            self._wait()

    def append(self, make: Callable[[], Entry], state: State) -> None:
        """Keep a state with the entry that `make` gives, which is where the state is hashed.

        Waits for the one before it, and raises if that could not be kept.
        """
        self._wait()
        self._last = self._pool.submit(self._write, make, state)

    def _wait(self) -> None:
        if self._last is not None:
            self._last.result()

    def _write(self, make: Callable[[], Entry], state: State) -> None:
        entry = make()
        self._journal.append(entry, state)
        self._kept(entry)
