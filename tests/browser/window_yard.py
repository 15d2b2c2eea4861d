"""A market with tasks whose windows are open, and the page's server: no agent acts in it.

Says where everything is in one line of JSON, and ends when its input does.
"""

import json
import sys
import tempfile
from pathlib import Path

import structlog
from eth_account import Account

from benchmarks.anvil import running_anvil
from benchmarks.lives import ACCOUNTS, LiveMarket
from tests.dapp.server import dapp_for, settings_for
from tests.dapp.yard import Yard

_ETHER = 10**18


def main() -> None:
    # Its output is for the test alone.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with running_anvil(accounts=ACCOUNTS) as anvil, tempfile.TemporaryDirectory() as folder:
        market = LiveMarket(anvil)
        tasks = [market._audited(1) for _ in range(2)]
        visitor = Account.create()
        anvil.request("anvil_setBalance", visitor.address, hex(1_000 * _ETHER))
        settings = settings_for(Yard(market), Path(folder), confirmations=1)
        static = Path(__file__).resolve().parents[2] / "dapp" / "static"
        with dapp_for(settings, static=static) as client:
            place = {
                "url": str(client.base_url).split("/api/")[0],
                "rpc": anvil.url,
                "chain_id": anvil.web3.eth.chain_id,
                "people": {"requester": {"key": f"0x{bytes(visitor.key).hex()}"}},
                "tasks": tasks,
            }
            print(json.dumps(place), flush=True)
            sys.stdin.read()


if __name__ == "__main__":
    main()
