"""Rebuilds a market from its events alone (rule V6)."""

from collections.abc import Iterable

from trainyard.protocol.ledger import panels, tasks, vault, workers
from trainyard.protocol.ledger.book import Book
from trainyard.protocol.ledger.events import Event, Handler, UnknownEventError, argument_name

HANDLERS: dict[str, Handler] = {
    **vault.HANDLERS,
    **workers.HANDLERS,
    **tasks.HANDLERS,
    **panels.HANDLERS,
}


def apply(book: Book, event: Event) -> None:
    """Change the book by one event. Each must come once, in the order of the chain."""
    handler = HANDLERS.get(event.name)
    if handler is None:
        raise UnknownEventError(f"no handler of the event {event.name}")
    handler(book, **{argument_name(name): value for name, value in event.args.items()})


def replay(events: Iterable[Event]) -> Book:
    """The market after `events`, which begin with its first."""
    book = Book()
    for event in events:
        apply(book, event)
    return book
