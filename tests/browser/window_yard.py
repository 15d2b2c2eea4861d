"""A market with tasks in most states, and the page's server: no agent acts in it.

Says where everything is in one line of JSON, and ends when its input does.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import structlog
from eth_account import Account
from eth_account.hdaccount import ETHEREUM_DEFAULT_PATH, key_from_seed, seed_from_mnemonic
from eth_utils.crypto import keccak

from benchmarks.anvil import running_anvil
from benchmarks.lives import ACCOUNTS, LiveMarket
from tests.dapp.server import dapp_for, settings_for
from tests.dapp.yard import Yard
from trainyard.protocol.market import Policy

_ETHER = 10**18
# Anvil's own, of which it makes the accounts that it unlocks.
_PHRASE = "test test test test test test test test test test test junk"
# More than the account's page shows at once, of tasks and of notifications.
_MANY = 24
_CARD = keccak(text="card")


def main() -> None:
    # Its output is for the test alone.
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    with running_anvil(accounts=ACCOUNTS) as anvil, tempfile.TemporaryDirectory() as folder:
        market = LiveMarket(anvil)
        tasks = _play(market)
        visitor = Account.create()
        anvil.request("anvil_setBalance", visitor.address, hex(1_000 * _ETHER))
        settings = settings_for(Yard(market), Path(folder), confirmations=1)
        static = Path(__file__).resolve().parents[2] / "dapp" / "static"
        with dapp_for(settings, static=static) as client:
            place = {
                "url": str(client.base_url).split("/api/")[0],
                "rpc": anvil.url,
                "chain_id": anvil.web3.eth.chain_id,
                "market": str(market.address),
                "people": {
                    "requester": {"key": f"0x{bytes(visitor.key).hex()}"},
                    "poster": {"key": f"0x{_first_key(market.requester).hex()}"},
                },
                "stranger": market.challenger,
                "tasks": tasks,
            }
            print(json.dumps(place), flush=True)
            sys.stdin.read()


def _play(market: LiveMarket) -> dict[str, Any]:
    """Tasks by their state. What moves the clock comes first, so that all windows are open."""
    _post_many(market)
    market.absence()
    failed = market.count
    market.audit(1)
    settled = market.count
    cancelled = market.post(Policy.AUDIT, 1)
    market.call("cancel", cancelled, by=market.requester)
    submitted = market._submitted(Policy.AUDIT, 1)
    auditing = market._submitted(Policy.AUDIT, 1)
    market.call("draw", auditing, by=market.requester)
    return {
        "failed": failed,
        "settled": settled,
        "cancelled": cancelled,
        "submitted": submitted,
        "auditing": auditing,
        "windows": [market._audited(1) for _ in range(4)],
    }


def _post_many(market: LiveMarket) -> None:
    """Tasks that a worker has joined, in two blocks."""
    first = market.count + 1
    terms = market.terms(Policy.AUDIT, 1).as_tuple()
    market.call_in_one_block([(market.requester, market.encode("post", terms))] * _MANY)
    joins = [
        (market.workers[number % len(market.workers)], market.encode("join", number, _CARD, []))
        for number in range(first, first + _MANY)
    ]
    market.call_in_one_block(joins)
    assert market.count == first + _MANY - 1


def _first_key(owner: str) -> bytes:
    key = key_from_seed(seed_from_mnemonic(_PHRASE, ""), ETHEREUM_DEFAULT_PATH)
    assert Account.from_key(key).address == owner
    return key


if __name__ == "__main__":
    main()
