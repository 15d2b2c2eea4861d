"""The market as a requester sees it: events as they come, and the book that they make."""

from collections.abc import Iterator
from pathlib import Path

from eth_account.signers.local import LocalAccount

from trainyard.chain.calls import Call, MarketCalls
from trainyard.chain.client import MarketClient
from trainyard.chain.cursor import Cursor, Found, Seen
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.outbox import Outbox
from trainyard.chain.quantities import number_in
from trainyard.chain.store import Store
from trainyard.chain.views import BookView
from trainyard.devnet.devnet import Devnet
from trainyard.protocol.ledger.book import Book


class Requester:
    """An account that posts tasks and watches what becomes of them."""

    def __init__(self, devnet: Devnet, account: LocalAccount, folder: Path) -> None:
        self.account, self.calls = account, MarketCalls(devnet.market)
        self.endpoints = Endpoints([devnet.url], chain_id=devnet.chain_id)
        self.client = MarketClient(self.endpoints, devnet.market)
        self._store = Store(folder, chain_id=devnet.chain_id, market=devnet.market)
        self._outbox = Outbox(self.endpoints, self._store, account, confirmations=2)
        self._cursor = Cursor(self.endpoints, self._store, devnet.market, start=devnet.start_block)
        self._cursor.forget()
        self._view = BookView()
        self.seen: list[Seen] = []

    def close(self) -> None:
        self._store.close()

    @property
    def book(self) -> Book:
        return self._view.book

    def send(self, key: str, call: Call) -> None:
        self._outbox.submit(key, call)

    def look(self) -> Iterator[Seen]:
        """What is new since the last look."""
        self._outbox.step()
        for batch in self._cursor.batches():
            self._view.take(batch)
            if isinstance(batch, Found):
                self.seen += batch.events
                yield from batch.events

    @property
    def block(self) -> int:
        """Up to which block all is seen."""
        place = self._cursor.place
        return 0 if place is None else place.number

    def wealth(self, address: str, block: int | None = None) -> int:
        """All that an account has: in its purse, as credit, and as bond.

        The purse is that at a `block`, or the newest; the others are as far as all is seen.
        """
        when = "latest" if block is None else hex(block)
        purse = self.endpoints.run(
            lambda rpc: number_in(rpc, rpc.request("eth_getBalance", address, when))
        )
        worker = self.book.workers.get(address)
        account = self.book.accounts.get(address)
        return purse + (account.credit if account else 0) + (worker.bond if worker else 0)

    def sent(self, since: int, until: int) -> set[bytes]:
        """All transactions of the blocks after `since` up to `until`."""
        blocks = (
            self.endpoints.call("eth_getBlockByNumber", hex(number), False)
            for number in range(since + 1, until + 1)
        )
        return {bytes.fromhex(one[2:]) for block in blocks for one in block["transactions"]}

    def gas(self, transactions: set[bytes]) -> dict[str, tuple[int, int]]:
        """What transactions used and cost, by their sender."""
        used: dict[str, tuple[int, int]] = {}
        for one in transactions:
            receipt = self.endpoints.call("eth_getTransactionReceipt", f"0x{one.hex()}")
            sender = str(receipt["from"]).lower()
            gas, cost = used.get(sender, (0, 0))
            taken = int(receipt["gasUsed"], 16)
            used[sender] = gas + taken, cost + taken * int(receipt["effectiveGasPrice"], 16)
        return used
