"""Lets the tests run at the chain's pace: what brownie does for people at a console is left out.

Nearly half of its requests had answers that nobody here looks at: at each transaction a snapshot to
undo it by, the price of gas and the latest block, twice, and at each revert a trace of every step
with all memory, which for a draw takes many seconds. The market sees none of it: the same
transactions go to the same Ganache, one by one, and what is asserted about them is read from it.
"""

import gc
import inspect
import os
from pathlib import Path
from typing import Any

from brownie import web3
from brownie.exceptions import decode_typed_error
from brownie.network.account import _PrivateKeyAccount
from brownie.network.rpc import Rpc
from brownie.network.state import Chain
from brownie.network.transaction import TransactionReceipt
from urllib3.connectionpool import connection_from_url
from web3 import HTTPProvider

_TIMEOUT_S = 30
_HEADERS = {"Content-Type": "application/json"}


class Loopback(HTTPProvider):
    """Talks to a chain on this machine, over connections that stay open and behind no proxy."""

    def __init__(self, uri: str) -> None:
        # Asked at each call otherwise, to check each against it, and at each revert of the chain.
        constant = {"eth_chainId", "web3_clientVersion"}
        super().__init__(uri, cache_allowed_requests=True, cacheable_requests=constant)
        self._pool = connection_from_url(uri, maxsize=4, timeout=_TIMEOUT_S, retries=False)

    def _make_request(self, method: str, request_data: bytes) -> bytes:
        answer = self._pool.urlopen("POST", "/", body=request_data, headers=_HEADERS)
        if answer.status != 200:
            raise ConnectionError(f"{method} was answered with {answer.status}: {answer.data!r}")
        return answer.data


def keep_chain_in_memory() -> None:
    """To be called before brownie connects."""
    preload = Path(__file__).with_name("ganache_preload.js")
    os.environ["NODE_OPTIONS"] = f'{os.environ.get("NODE_OPTIONS", "")} --require "{preload}"'


def keep_pace() -> None:
    """To be called once brownie has connected."""
    web3.provider = Loopback(web3.provider.endpoint_uri)
    # It asks for the latest block and the price of gas, to fill in what brownie has set already.
    web3.middleware_onion.remove("gas_price_strategy")
    for name in ("mine", "revert", "sleep", "snapshot"):
        # Wrapped in a look at the whole stack, to warn people who call them from a console.
        setattr(Rpc, name, inspect.getclosurevars(getattr(Rpc, name)).nonlocals["fn"])
    Chain._add_to_undo_buffer = _nothing_to_undo
    Chain.mine = _mine
    TransactionReceipt._await_confirmation = _confirm
    TransactionReceipt._raise_if_reverted = _raise_if_reverted
    _PrivateKeyAccount._pending_nonce = _next_nonce
    # Each revert of the chain collects garbage, and would walk all of brownie and web3 for it.
    gc.collect()
    gc.freeze()


def _nothing_to_undo(chain: Chain, *_: Any) -> None:
    pass


def _mine(chain: Chain, blocks: int = 1) -> None:
    web3.provider.make_request("evm_mine", [{"blocks": blocks}])


def _confirm(tx: Any, *_: Any) -> None:
    """Ganache answers once a transaction is in its block: there is nothing to wait for."""
    tx._set_from_receipt(web3.eth.get_transaction_receipt(tx.txid))
    tx._confirmed.set()


def _next_nonce(account: Any) -> int:
    """For the same reason, nothing is pending."""
    return account.nonce


_look_for_the_reason = TransactionReceipt._raise_if_reverted


def _raise_if_reverted(tx: Any, error: Any) -> None:
    """Have the refusal repeated by a call in the same block: it tells what a trace is read for."""
    if tx.status:
        return
    data = "" if tx.receiver is None else _refusal(tx)
    if len(data) < len("0x12345678"):
        _look_for_the_reason(tx, error)
    raise error._with_attr(revert_msg=decode_typed_error(data))


def _refusal(tx: Any) -> str:
    """What a refused transaction returned, if it is the latest and no trace is needed for it."""
    request = {
        "from": str(tx.sender),
        "to": str(tx.receiver),
        "data": tx.input,
        "value": hex(tx.value),
        "gas": hex(tx.gas_limit),
    }
    answer = web3.provider.make_request("eth_call", [request, hex(tx.block_number)])
    data = answer.get("error", {}).get("data")
    return data if isinstance(data, str) else ""
