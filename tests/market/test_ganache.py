"""What Ganache does otherwise than other chains, and what must go well all the same."""

import time
from pathlib import Path

import tests.quiet_web3  # noqa: F401
from trainyard.chain.calls import MarketCalls
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.journal import State
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import Options


def test_what_waits_for_a_block_is_not_mined_twice(tmp_path: Path) -> None:
    """It mines a transaction as often as it was sent before the block."""
    with Devnet(options=Options(chain="ganache", block_time_s=2)) as devnet:
        endpoints = Endpoints([devnet.url], chain_id=devnet.chain_id)
        store = Store(tmp_path / "store", chain_id=devnet.chain_id, market=devnet.market)
        account = devnet.accounts["requester"]
        outbox = Outbox(endpoints, store, account, confirmations=1)
        outbox.submit("deposit", MarketCalls(devnet.market).deposit(7, value=7))
        while outbox.entry("deposit").state is State.PENDING:
            outbox.step()
            time.sleep(0.05)
        assert MarketClient(endpoints, devnet.market).account(account.address).credit == 7
        store.close()
