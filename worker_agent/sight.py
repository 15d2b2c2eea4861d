"""The chain as the agent sees it now."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import structlog

from trainyard.chain.blocks import head_of
from trainyard.chain.cursor import Cursor, Found
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import ReorgTooDeepError
from trainyard.chain.fees import FeePolicy
from trainyard.chain.quantities import number_in
from trainyard.chain.receipts import tip_of
from trainyard.chain.views import BookView
from trainyard.protocol.ledger.book import Book

# So many events are applied again at a start, or fewer.
_MANY_EVENTS = 500


@dataclass(frozen=True, slots=True)
class Sight:
    """One look at the chain: the market's book, the head, and the chain's time."""

    book: Book
    block: int
    now: int
    # What the account holds in the chain's own currency.
    purse: int
    # What a unit of gas costs, with the tip that we offer.
    gas_price: int = 0
    # How long ago the head was made, by the chain's time at its first sight and ours since.
    age_s: int = 0
    # Blocks of which the book knows nothing yet.
    lag: int = 0
    # In which blocks tasks were posted, and opened to challenges; of late only.
    posted: Mapping[int, int] = field(default_factory=dict)
    opened: Mapping[int, int] = field(default_factory=dict)


class Watcher:
    """Follows the market from its first block on, or from where the last run came to."""

    def __init__(
        self, endpoints: Endpoints, cursor: Cursor, who: str, fees: FeePolicy | None = None
    ) -> None:
        self._endpoints, self._cursor, self._who = endpoints, cursor, who
        self._fees = fees or FeePolicy()
        self._seen: tuple[int, int, float] | None = None
        self.events = 0
        # How often the chain took something back.
        self.reorgs = 0
        kept = cursor.book()
        if kept is None:
            self._begin()
        else:
            self._view = BookView(kept)

    def look(self) -> Sight:
        try:
            self._follow()
        except ReorgTooDeepError as error:
            # Whatever the chain is now is what counts.
            structlog.get_logger().warning("read the market anew", reason=str(error))
            self.reorgs += 1
            self._begin()
            self._follow()
        head = self._endpoints.run(head_of)
        if self._seen is None or self._seen[0] != head.ref.number:
            self._seen = head.ref.number, head.timestamp, time.monotonic()
        # By the chain's own time and what has passed since: this machine's clock may be wrong.
        number, timestamp, seen_at = self._seen
        now = timestamp + int(time.monotonic() - seen_at)
        purse = self._endpoints.run(
            lambda rpc: number_in(rpc, rpc.request("eth_getBalance", self._who, "latest"))
        )
        gas_price = self._fees.price(head, self._endpoints.run(tip_of))
        place = self._cursor.place
        lag = max(0, number - place.number) if place is not None else 0
        return Sight(
            self._view.book,
            number,
            now,
            purse,
            gas_price,
            now - timestamp,
            lag,
            self._view.blocks_of("TaskPosted"),
            self._view.blocks_of("WindowStarted"),
        )

    def _begin(self) -> None:
        self._cursor.begin_book()
        self._view = BookView()

    def _follow(self) -> None:
        while (batch := self._cursor.next()) is not None:
            # In this order: what cannot be kept, as on a full disk, comes again, and a view takes
            # nothing twice. A crash between the two costs nothing: the next view begins with what
            # was kept.
            self._cursor.keep(batch)
            self._view.take(batch)
            if isinstance(batch, Found):
                self.events += len(batch.events)
            else:
                self.reorgs += 1
            self._keep_book()

    def _keep_book(self) -> None:
        """Now and then, for it is large; until then its events are kept."""
        if self._view.settled >= _MANY_EVENTS:
            self._cursor.keep_book(self._view.base, self._view.base_block)
            self._view.settled = 0
