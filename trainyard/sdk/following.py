"""A task from its post to its end, as its requester sees it."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from trainyard.chain.blocks import head_of
from trainyard.chain.cursor import Cursor, Found, Seen
from trainyard.chain.errors import EndpointError, NoEndpointError, RevertedError
from trainyard.chain.keystore import KeystoreError
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
# For so long nobody may answer before that is worth a word.
_SILENCE_S = 10.0
# How often it is seen to that what was posted is in the chain still.
_STEP_S = 2.0
# After the end of the time to join, somebody else may end what is not ours to end.
_UNENDED_S = 60.0


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


@dataclass(frozen=True, slots=True)
class Known:
    """What a task is known by beside its number, which a reorganisation may give to another."""

    manifest: bytes
    requester: str
    # By which it was posted, if that is known.
    transaction: bytes | None = None

    def is_of(self, task: Task) -> bool:
        return (self.manifest, self.requester) == (task.terms.manifest, task.requester)


class Following:
    """Looks at one task again and again. To be closed.

    A task that somebody has seen already, as who posted it has, is waited for if it is not there.
    By what is `known` of it, it is found again under another number; whoever has its old number
    then is not taken for it.
    """

    def __init__(
        self,
        market: Market,
        number: int,
        known: Known | None = None,
        *,
        is_seen: bool = True,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.number = number
        self._market, place = market, market.place
        self._known, self._say = known, say
        self._transaction = None if known is None else known.transaction
        # The number that the chain gave to the transaction, as far as it is seen.
        self._posted_as = number
        self._store = Store(Path(":memory:"), chain_id=place.chain_id, market=place.market)
        self._cursor = Cursor(
            market.endpoints, self._store, place.market, start=place.start_block, thorough=False
        )
        self._view = BookView()
        self._feed = None if place.page is None else Feed(place.page, number)
        self._patience_s = _UNSEEN_S if is_seen else 0.0
        self._unseen_since: float | None = None
        self._silent_since: float | None = None
        self._is_silent = self._expired = self._is_left = False
        self._try_at = self._step_at = 0.0

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
                    seen += batch.events
                    self._note_posts(batch.events)
        except (EndpointError, NoEndpointError) as error:
            self._note_silence(error)
            if not seen:
                return None
        else:
            self._note_answer()
        task = self._own()
        self._keep_posted(is_lost=task is None)
        if task is None:
            self._require_patience()
            return None
        self._unseen_since = None
        name = namer(names_of(self.book, self.number))
        told = (sentence(one.event, name) for one in seen if task_of(one.event) == self.number)
        points = () if self._feed is None else tuple(self._feed.points())
        return Sight(task, tuple(one for one in told if one is not None), points)

    def _note_posts(self, events: Sequence[Seen]) -> None:
        """By which transaction the task was posted, and which number that has now."""
        for one in events:
            if one.event.name != "TaskPosted" or self._known is None:
                continue
            number = int(one.event.args["id"])
            if self._transaction is None and number == self.number:
                if self._known.is_of(self.book.tasks[number]):
                    self._transaction = one.transaction
            elif one.transaction == self._transaction:
                self._posted_as = number

    def _own(self) -> Task | None:
        """The task that is followed, under whichever number it has now."""
        tasks, known = self.book.tasks, self._known
        for number in (self.number, self._posted_as):
            task = tasks.get(number)
            if task is not None and (known is None or known.is_of(task)):
                if number != self.number:
                    self._say(f"the chain was reorganised: task {self.number} is {number} now")
                    self._rename(number)
                return task
        return None

    def _rename(self, number: int) -> None:
        self.number = number
        if self._feed is not None and self._market.place.page is not None:
            self._feed.close()
            self._feed = Feed(self._market.place.page, number)

    def _keep_posted(self, *, is_lost: bool) -> None:
        """Send again what a reorganisation took out of the chain, if it is ours."""
        market, now = self._market, time.monotonic()
        is_ours = self._known is not None and market.owner == self._known.requester
        if not is_ours or not market.is_unlocked or now < self._step_at:
            return
        self._step_at = now + _STEP_S
        try:
            market.keep_sent(is_lost=is_lost)
        except (EndpointError, NoEndpointError, KeystoreError):
            # The same bytes are there for the next try.
            return

    def _note_silence(self, error: EndpointError | NoEndpointError) -> None:
        now = time.monotonic()
        if self._silent_since is None:
            self._silent_since = now
        if not self._is_silent and now - self._silent_since >= _SILENCE_S:
            self._is_silent = True
            self._say(f"the chain does not answer, and is asked again until it does: {error}")

    def _note_answer(self) -> None:
        self._silent_since = None
        if self._is_silent:
            self._is_silent = False
            self._say("the chain answers again")

    def _require_patience(self) -> None:
        now = time.monotonic()
        if self._unseen_since is None:
            self._unseen_since = now
        if now - self._unseen_since < self._patience_s:
            return
        if self.number in self.book.tasks:
            raise TaskFailedError(
                self.number,
                "is another task since the chain was reorganised, and what was posted is not in "
                "it: 'trainyard tasks' lists what is there",
            )
        raise TaskFailedError(
            self.number, f"is not there: the market has {len(self.book.tasks)} tasks"
        )

    def end_what_nobody_took(self, task: Task) -> None:
        """Get the money back for which no workers were found in time."""
        if self._expired or task.state is not TaskState.OPEN:
            return
        if time.time() < task.deadline + _PATIENCE_S or time.monotonic() < self._try_at:
            return
        self._try_at = time.monotonic() + _AGAIN_S
        try:
            if self._market.owner == task.requester and self._market.is_unlocked:
                self._market.send(f"expire {self.number}", self._market.calls.expire(self.number))
                self._expired = True
            else:
                self._tell_who_can(task)
        except KeystoreError:
            self._tell_who_can(task)
        except (RevertedError, EndpointError, NoEndpointError):
            # By the chain's clock it is not time yet, somebody else did it, or nobody answers now.
            return

    def _tell_who_can(self, task: Task) -> None:
        """That nothing comes of it before somebody ends it, who is not to be found here."""
        late_s = self._market.endpoints.run(head_of).timestamp - task.deadline
        if late_s < _PATIENCE_S:
            return
        cancel = f"'trainyard cancel {self.number}' brings back the money of who posted it"
        if late_s >= _UNENDED_S:
            raise TaskFailedError(self.number, f"was taken by nobody in time: {cancel}")
        if not self._is_left:
            self._is_left = True
            self._say(f"nobody took it in time: {cancel}")


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
