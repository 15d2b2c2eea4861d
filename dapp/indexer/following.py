"""The thread that keeps the index at the head of the chain."""

import threading
import time
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from dapp.indexer.indexing import Indexer
from trainyard.chain.blocks import BlockRef, head_of
from trainyard.chain.endpoints import Endpoints
from trainyard.protocol.errors import TrainyardError

_LONGEST_WAIT_S = 30.0


class Follower:
    """Looks every `poll_s`; what fails is tried again, later and later."""

    def __init__(
        self,
        open_indexer: Callable[[], Indexer],
        endpoints: Endpoints,
        *,
        poll_s: float,
        on_step: Callable[[Indexer], None],
        on_head: Callable[[int, int], None],
    ) -> None:
        self._open, self._endpoints, self._poll_s = open_indexer, endpoints, poll_s
        self._on_step, self._on_head = on_step, on_head
        self._ended, self._wake = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="indexer", daemon=True)
        self.head: int | None = None
        self._seen: BlockRef | None = None
        self.indexed: int | None = None
        self._looked_at = time.monotonic()
        self.why = "it has not looked yet"

    @property
    def lag(self) -> int | None:
        if self.head is None or self.indexed is None:
            return None
        return max(0, self.head - self.indexed)

    @property
    def silent_s(self) -> float:
        """How long ago the last look ended that went well."""
        return time.monotonic() - self._looked_at

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()

    def wake(self) -> None:
        """Look now."""
        self._wake.set()

    def _run(self) -> None:
        log, failures = structlog.get_logger(), 0
        indexer: Indexer | None = None
        while not self._ended.is_set():
            try:
                if indexer is None:
                    indexer = self._open()
                self._look(indexer)
                failures, self.why = 0, ""
            except (TrainyardError, SQLAlchemyError, OSError) as error:
                failures += 1
                self.why = str(error).splitlines()[0][:300] if str(error) else repr(error)
                log.warning("index waits", reason=self.why, failures=failures)
            except Exception:
                # A supervisor: whatever it is, the next look may go well, and readiness tells.
                failures += 1
                self.why = "an unexpected failure, see the log"
                log.exception("index failed")
                indexer = None
            wait_s = min(self._poll_s * 2 ** min(failures, 10), _LONGEST_WAIT_S)
            self._wake.wait(wait_s)
            self._wake.clear()

    def _look(self, indexer: Indexer) -> None:
        head = self._endpoints.run(head_of)
        is_new, self.head = head.ref != self._seen, head.ref.number
        while not self._ended.is_set() and indexer.step():
            self._on_step(indexer)
            place = indexer.place
            self.indexed = None if place is None else place.number
        place = indexer.place
        self.indexed = None if place is None else place.number
        self._looked_at = time.monotonic()
        if is_new:
            self._seen = head.ref
            self._on_head(head.ref.number, head.timestamp)
