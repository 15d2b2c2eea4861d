"""The market as its events tell it."""

from trainyard.protocol.ledger.book import Book
from trainyard.protocol.ledger.events import Event, UnknownEventError
from trainyard.protocol.ledger.replay import apply, replay

__all__ = ["Book", "Event", "UnknownEventError", "apply", "replay"]
