"""A book of the market that follows a cursor, also when the chain takes something back."""

from collections.abc import Iterable
from copy import deepcopy

from trainyard.chain.cursor import Batch, Found, Seen, Undone
from trainyard.protocol.ledger import Book, apply


class BookView:
    """Keeps the book as it was `depth` blocks ago beside the present one, and what came since.

    What is undone is found again from there. A view lives in memory and takes a cursor that begins
    with the market's first block (`Cursor.forget`), and whose depth is not larger.
    """

    def __init__(self, *, depth: int = 128) -> None:
        self.book = Book()
        self._depth, self._base, self._since = depth, Book(), list[Seen]()

    def take(self, batch: Batch) -> None:
        match batch:
            case Found():
                _apply(self.book, batch.events)
                self._since += batch.events
                self._settle(batch.to.number - self._depth)
            case Undone():
                self._since = [seen for seen in self._since if seen.block.number <= batch.to.number]
                self.book = deepcopy(self._base)
                _apply(self.book, self._since)

    def _settle(self, oldest: int) -> None:
        """What no reorg reaches any more goes into the base."""
        settled = [seen for seen in self._since if seen.block.number <= oldest]
        _apply(self._base, settled)
        del self._since[: len(settled)]


def _apply(book: Book, events: Iterable[Seen]) -> None:
    for seen in events:
        apply(book, seen.event)
