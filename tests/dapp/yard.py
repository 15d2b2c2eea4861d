"""The market of the tests, and what they do with an index of it."""

from typing import Any

from sqlalchemy import select
from web3 import HTTPProvider

from benchmarks.lives import LiveMarket
from dapp.database.engine import Database
from dapp.database.models import DERIVED
from dapp.indexer.indexing import Chain, Indexer, Tell
from trainyard.chain.endpoints import Endpoints


class Yard:
    def __init__(self, live: LiveMarket) -> None:
        self.live, self.anvil = live, live.anvil
        assert isinstance(live.anvil.web3.provider, HTTPProvider)
        self.url = live.anvil.url
        self.chain_id = live.anvil.web3.eth.chain_id
        self.market = str(live.address)
        # The block of the deployment: the three contracts are the first that were mined.
        self.start = 3

    def endpoints(self) -> Endpoints:
        return Endpoints([self.url], chain_id=self.chain_id, timeout_s=30.0)

    def indexer(
        self,
        database: Database,
        *,
        depth: int = 128,
        span: int = 2_000,
        tell: Tell = lambda step: None,
    ) -> Indexer:
        chain = Chain(self.chain_id, self.market, self.start)
        return Indexer(database, self.endpoints(), chain, depth=depth, span=span, tell=tell)


def rows_of(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """All that the chain says, as the rows have it."""
    with database.reading() as session:
        return {
            table.__tablename__: sorted(
                map(tuple, session.execute(select(table.__table__)).all()), key=repr
            )
            for table in DERIVED
        }
