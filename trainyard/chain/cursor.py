"""The market's events, at least once and in the order of the chain, also across crashes and reorgs.

The cursor's place is a block with its hash. It moves when the consumer says that a batch is dealt
with (`keep`), so after a crash the same batch comes again. If the place is no longer on the chain,
the batch is an `Undone`: how far back the chain still is what it was, and the events that no longer
are.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trainyard.chain.blocks import BlockRef, Header, Log, head_of, header_at, headers_at
from trainyard.chain.book_text import UnreadableBookError, read_book, write_book
from trainyard.chain.codec import MalformedLogError, market_codec
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import ReorgTooDeepError
from trainyard.chain.places import KeepsPlaces, Places
from trainyard.chain.rpc import Rpc
from trainyard.chain.spans import Span
from trainyard.chain.store import Store
from trainyard.chain.walking import Walk, Walker
from trainyard.protocol.ledger import Book, Event


@dataclass(frozen=True, slots=True)
class Seen:
    """An event, and where it stands in the chain."""

    event: Event
    block: BlockRef
    index: int
    transaction: bytes


@dataclass(frozen=True, slots=True)
class Found:
    """All events of the blocks after `after` up to `to`."""

    after: BlockRef | None
    to: BlockRef
    events: tuple[Seen, ...]
    walk: Walk


@dataclass(frozen=True, slots=True)
class Undone:
    """The chain is another one after `to`; `events` are no more, the latest first."""

    after: BlockRef
    to: BlockRef
    events: tuple[Seen, ...]


Batch = Found | Undone


@dataclass(frozen=True, slots=True)
class KeptBook:
    """The market's book as of `block`, and all events after it up to the cursor's place."""

    book: Book
    block: int
    since: tuple[Seen, ...]


class Cursor:
    """Follows the market from `start`, the block of its deployment.

    `depth` is how far back a reorg can be followed; past it, a `ReorgTooDeepError` says what to do.
    With `confirmations`, blocks are taken only when so many more stand on them. Who keeps more than
    places in a database of its own gives those instead of a store, so that both move together.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        store: Store | KeepsPlaces,
        market: str,
        *,
        start: int,
        depth: int = 128,
        confirmations: int = 0,
        span: int = 2_000,
        thorough: bool = True,
    ) -> None:
        self._endpoints = endpoints
        # Books are kept in a store alone: who has a database of its own has them there.
        self._own: Places | None = None
        self._places: KeepsPlaces
        if isinstance(store, Store):
            self._own = self._places = Places(store, depth)
        else:
            self._places = store
        self._start, self._depth, self._confirmations = start, depth, confirmations
        self._walker = Walker(market, Span(span), depth=depth, thorough=thorough)

    @property
    def place(self) -> BlockRef | None:
        """The last block that was dealt with."""
        return self._places.last()

    def next(self) -> Batch | None:
        """What comes after the cursor's place; None if nothing does yet."""
        return self._endpoints.run(self._next)

    def keep(self, batch: Batch) -> None:
        """Move the cursor past a batch that was dealt with."""
        match batch:
            case Found():
                self._places.advance(batch.after, batch.walk)
            case Undone():
                self._places.go_back(batch.after, batch.to)

    def forget(self) -> None:
        """Begin again with the first block; for views that begin again as well."""
        self._places.clear()

    def keep_book(self, book: Book, block: int) -> None:
        """Keep a book as of `block`, at least `depth` behind the place, for `book`."""
        if self._own is None:
            raise TypeError("books are kept in a store alone")
        self._own.keep_book(block, write_book(book))

    def begin_book(self) -> None:
        """Begin again with the first block, and keep what a book is made of from there on."""
        self.forget()
        self.keep_book(Book(), self._start - 1)

    def book(self) -> KeptBook | None:
        """The book that was kept and what came since, up to the place; None if it is of no use."""
        kept = None if self._own is None else self._own.book()
        last = self._places.last()
        if kept is None:
            return None
        block, data = kept
        if last is not None and last.number < block:
            return None
        try:
            logs = self._places.logs_after(block)
            return KeptBook(read_book(data), block, tuple(map(_decoded, logs)))
        except (UnreadableBookError, MalformedLogError):
            return None

    def batches(self) -> Iterator[Batch]:
        """All batches up to the head; one is kept when the consumer comes back for the next."""
        while (batch := self.next()) is not None:
            yield batch
            self.keep(batch)

    def _next(self, rpc: Rpc) -> Batch | None:
        head, last = head_of(rpc), self._places.last()
        if last is not None and not self._stands(rpc, last, head):
            return self._undo(rpc, last, head)
        first = self._start if last is None else last.number + 1
        end = head.ref.number - self._confirmations
        if end < first:
            return None
        walk = self._walker.walk(rpc, first, end, head, last)
        events = tuple(_seen(rpc, log) for log in walk.logs)
        return Found(last, walk.to, events, walk)

    def _stands(self, rpc: Rpc, last: BlockRef, head: Header) -> bool:
        """Whether the chain still has the cursor's place, or the node is only behind it."""
        known = last
        if head.ref.number < last.number:
            below = self._places.at_most(head.ref.number)
            if below is None:
                raise rpc.error(f"its head is block {head.ref.number}, far behind {last}")
            known = below
        found = header_at(rpc, known.number)
        return found is not None and found.ref == known

    def _undo(self, rpc: Rpc, last: BlockRef, head: Header) -> Undone:
        ancestor = self._ancestor(rpc, head.ref.number)
        if ancestor is None:
            raise ReorgTooDeepError(
                f"the chain of {rpc.name} is another one for more than {self._depth} blocks before"
                f" {last}. If that endpoint is right, let the cursor forget its place, and build"
                f" every view again from block {self._start}"
            )
        logs = self._places.logs_after(ancestor.number)
        return Undone(last, ancestor, tuple(_seen(rpc, log) for log in reversed(logs)))

    def _ancestor(self, rpc: Rpc, head: int) -> BlockRef | None:
        """The latest block that both we and the node know."""
        known = [ref for ref in self._places.latest_first() if ref.number <= head]
        for start in range(0, len(known), _LOOK_BACK):
            some = known[start : start + _LOOK_BACK]
            theirs = headers_at(rpc, [ref.number for ref in some])
            for ours, header in zip(some, theirs, strict=True):
                if header.ref == ours:
                    return ours
        return None


# Most reorgs are of a block or two.
_LOOK_BACK = 8


def _seen(rpc: Rpc, log: Log) -> Seen:
    try:
        return _decoded(log)
    except MalformedLogError as error:
        raise rpc.error(f"sent a malformed log: {error}") from error


def _decoded(log: Log) -> Seen:
    event = market_codec().event(log.topics, log.data)
    return Seen(event, log.block, log.index, log.transaction)
