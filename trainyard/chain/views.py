"""A book of the market that follows a cursor, also when the chain takes something back."""

from collections.abc import Iterable
from copy import deepcopy

from trainyard.chain.cursor import Batch, Found, KeptBook, Seen, Undone
from trainyard.protocol.ledger import Book, apply


class BookView:
    """Keeps the book as it was `depth` blocks ago beside the present one, and what came since.

    What is undone is found again from there. A view takes a cursor that begins with the market's
    first block (`Cursor.forget`), or where the book was `kept`, and whose depth is not larger.
    """

    def __init__(self, kept: KeptBook | None = None, *, depth: int = 128) -> None:
        self._depth = depth
        self.base = Book() if kept is None else kept.book
        # Of which block the base is, and how many events came into it here.
        self.base_block = -1 if kept is None else kept.block
        self.settled = 0
        self._since = [] if kept is None else list(kept.since)
        self.book = deepcopy(self.base)
        _apply(self.book, self._since)

    def take(self, batch: Batch) -> None:
        match batch:
            case Found():
                _apply(self.book, batch.events)
                self._since += batch.events
                self._settle(batch.to.number - self._depth)
            case Undone():
                self._since = [seen for seen in self._since if seen.block.number <= batch.to.number]
                self.book = deepcopy(self.base)
                _apply(self.book, self._since)

    def blocks_of(self, event: str) -> dict[int, int]:
        """The blocks of the last `depth` in which tasks had this event, by the task."""
        return {
            seen.event.args["id"]: seen.block.number
            for seen in self._since
            if seen.event.name == event
        }

    def _settle(self, oldest: int) -> None:
        """What no reorg reaches any more goes into the base."""
        settled = [seen for seen in self._since if seen.block.number <= oldest]
        _apply(self.base, settled)
        del self._since[: len(settled)]
        self.settled += len(settled)
        self.base_block = max(self.base_block, oldest)


def _apply(book: Book, events: Iterable[Seen]) -> None:
    for seen in events:
        apply(book, seen.event)
