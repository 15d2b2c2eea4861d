"""A whole market read at once, for whoever wants to know and keeps nothing."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from trainyard.chain.blocks import Header, head_of, headers_at
from trainyard.chain.cursor import Cursor, Found, Seen, Undone
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.store import Store
from trainyard.chain.views import BookView
from trainyard.protocol.ledger import Book


@dataclass(frozen=True, slots=True)
class Reading:
    """The market as its events up to `head` tell it."""

    book: Book
    events: tuple[Seen, ...]
    head: Header


def read_market(endpoints: Endpoints, market: str, start: int) -> Reading:
    """Read everything since `start`, the block of the market's deployment.

    Of old blocks only those that have logs are asked for: nobody acts by what is read here.
    """
    view, events = BookView(), list[Seen]()
    with closing(Store(Path(":memory:"), chain_id=endpoints.chain_id, market=market)) as store:
        for batch in Cursor(endpoints, store, market, start=start, thorough=False).batches():
            view.take(batch)
            match batch:
                case Found():
                    events += batch.events
                case Undone():
                    events = [seen for seen in events if seen.block.number <= batch.to.number]
    return Reading(view.book, tuple(events), endpoints.run(head_of))


def times_of(endpoints: Endpoints, blocks: set[int]) -> dict[int, int]:
    """When blocks were made, by their own stamps."""
    headers = endpoints.run(lambda rpc: headers_at(rpc, sorted(blocks)))
    return {header.ref.number: header.timestamp for header in headers}
