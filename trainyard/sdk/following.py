"""A task from its post to its end, as its requester sees it."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from trainyard.chain.cursor import Cursor, Found, Seen
from trainyard.chain.errors import EndpointError, NoEndpointError, RevertedError
from trainyard.chain.store import Store
from trainyard.chain.views import BookView
from trainyard.protocol.explaining import namer, names_of
from trainyard.protocol.ledger.book import Book, Task
from trainyard.protocol.market import TaskState
from trainyard.protocol.moves import ENDED
from trainyard.protocol.telling import sentence, task_of
from trainyard.sdk.epochs import Point
from trainyard.sdk.errors import DetachedError, NotPostedError, TaskFailedError
from trainyard.sdk.feed import Feed
from trainyard.sdk.market import Market

_LOOK_S = 0.3
# After the end of the time to join, others may end the task as well; then it is ours to do.
_PATIENCE_S = 5
# Until it is tried again, where it was too early by the chain's clock.
_AGAIN_S = 5.0
# A node may be behind, and a reorganisation take a task away for a while.
_UNSEEN_S = 60.0


class Leaving(threading.Event):
    """Set by who wants to detach from another thread."""

    def __init__(self) -> None:
        super().__init__()
        # For who leaves when it is too late to detach, and all is done.
        self.detached: DetachedError | None = None


LEAVING: ContextVar[Leaving | None] = ContextVar("leaving", default=None)


@dataclass(frozen=True, slots=True)
class Sight:
    """What is new since the last look: sentences, figures, and the task as it is."""

    task: Task
    sentences: tuple[str, ...]
    points: tuple[Point, ...]

    @property
    def is_over(self) -> bool:
        return self.task.state in ENDED


class Following:
    """Looks at one task again and again. To be closed.

    A task that somebody has seen already, as who posted it has, is waited for if it is not there.
    """

    def __init__(self, market: Market, number: int, *, is_known: bool = True) -> None:
        self.number = number
        self._market, place = market, market.place
        self._store = Store(Path(":memory:"), chain_id=place.chain_id, market=place.market)
        self._cursor = Cursor(
            market.endpoints, self._store, place.market, start=place.start_block, thorough=False
        )
        self._view = BookView()
        self._feed = None if place.page is None else Feed(place.page, number)
        self._patience_s = _UNSEEN_S if is_known else 0.0
        self._unseen_since: float | None = None
        self._expired = False
        self._try_at = 0.0

    def close(self) -> None:
        self._store.close()
        if self._feed is not None:
            self._feed.close()

    @property
    def book(self) -> Book:
        return self._view.book

    def sights(self, *, look_s: float = _LOOK_S) -> Iterator[Sight]:
        """One sight after the other, until the task is over; the last one is of its end."""
        leaving = LEAVING.get() or threading.Event()
        while True:
            sight = self.look()
            if sight is not None:
                yield sight
                if sight.is_over:
                    return
                self.end_what_nobody_took(sight.task)
            if leaving.wait(look_s):
                raise DetachedError(self.number)

    def look(self) -> Sight | None:
        """What is new; None while nobody can be asked, or the task is not there yet."""
        seen: list[Seen] = []
        try:
            for batch in self._cursor.batches():
                self._view.take(batch)
                if isinstance(batch, Found):
                    seen += [one for one in batch.events if task_of(one.event) == self.number]
        except (EndpointError, NoEndpointError):
            if not seen:
                return None
        task = self.book.tasks.get(self.number)
        if task is None:
            self._require_patience()
            return None
        self._unseen_since = None
        name = namer(names_of(self.book, self.number))
        told = (sentence(one.event, name) for one in seen)
        points = () if self._feed is None else tuple(self._feed.points())
        return Sight(task, tuple(one for one in told if one is not None), points)

    def _require_patience(self) -> None:
        now = time.monotonic()
        if self._unseen_since is None:
            self._unseen_since = now
        if now - self._unseen_since >= self._patience_s:
            raise TaskFailedError(
                self.number, f"is not there: the market has {len(self.book.tasks)} tasks"
            )

    def end_what_nobody_took(self, task: Task) -> None:
        """Get the money back for which no workers were found in time."""
        is_ours = self._market.is_unlocked and self._market.owner == task.requester
        if not is_ours or self._expired or task.state is not TaskState.OPEN:
            return
        if time.time() < task.deadline + _PATIENCE_S or time.monotonic() < self._try_at:
            return
        try:
            self._market.send(f"expire {self.number}", self._market.calls.expire(self.number))
        except (RevertedError, EndpointError, NoEndpointError):
            # By the chain's clock it is not time yet, somebody else did it, or nobody answers now.
            self._try_at = time.monotonic() + _AGAIN_S
        else:
            self._expired = True


def require_wanted(*posted: int, unposted: Sequence[str] = ()) -> None:
    """That nobody has gone away before something is posted; these tasks of its kind are."""
    leaving = LEAVING.get()
    if leaving is None or not leaving.is_set():
        return
    if posted:
        raise DetachedError(*posted, predicts=True, unposted=unposted)
    raise NotPostedError("whoever asked for it has gone: nothing is posted, and nothing was paid")


def remember(*posted: int, predicts: bool = False) -> None:
    """Have whoever leaves from now on know these tasks, also if it gets no result any more."""
    leaving = LEAVING.get()
    if leaving is not None:
        leaving.detached = DetachedError(*posted, predicts=predicts)


def require_settled(number: int, task: Task) -> None:
    """TaskFailedError for a task that ended in any other way."""
    if task.state is TaskState.SETTLED:
        return
    if task.state is TaskState.CANCELLED:
        raise TaskFailedError(
            number, "was cancelled or found no workers in time; the money is credited to you"
        )
    why = "" if task.failure is None else f" ({task.failure.name.lower().replace('_', ' ')})"
    raise TaskFailedError(
        number,
        f"failed{why}: the escrow is credited to you, with a part of the stakes where somebody "
        f"cheated; 'trainyard explain {number}' tells what happened",
    )
