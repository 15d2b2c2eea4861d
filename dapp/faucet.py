"""Money for whoever tries a devnet out: from an account of the devnet's own, to any address."""

import threading
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from pydantic import SecretStr

from dapp.errors import ApiError, SettingsError
from dapp.schemas.market import FaucetGrant
from dapp.security.buckets import Buckets
from dapp.services import ChainDesk
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.quantities import parse_number

_GAS = 21_000
_TIP = 10**9
# Who has that much needs no more.
_ENOUGH_TIMES = 2
_AGAIN_S = 60.0


def read_key(path: Path) -> SecretStr:
    try:
        return SecretStr(path.read_text().strip())
    except OSError as error:
        raise SettingsError(
            f"TRAINYARD_DAPP_FAUCET_KEY_FILE: cannot read {path}: {error.strerror}"
        ) from error


class Faucet:
    """INVARIANT: it is made for a devnet alone, whose money is worth nothing."""

    def __init__(self, key: SecretStr, chain: ChainDesk, chain_id: int, amount_wei: int) -> None:
        self._account: LocalAccount = Account.from_key(key.get_secret_value())
        self._chain, self._chain_id, self._amount = chain, chain_id, amount_wei
        self._lock = threading.Lock()
        self._rates = Buckets(1 / _AGAIN_S, 3)

    def grant(self, address: str) -> FaucetGrant:
        wait_s = self._rates.take(address)
        if wait_s:
            raise ApiError(
                429, "too_often", f"{address} was given some just now", retry_after_s=wait_s
            )
        # One after the other: each takes the next nonce.
        with self._lock:
            return self._chain.ask(lambda endpoints, _: self._send(endpoints, address))

    def _send(self, endpoints: Endpoints, address: str) -> FaucetGrant:
        has = parse_number(endpoints.call("eth_getBalance", address, "latest"))
        if has >= _ENOUGH_TIMES * self._amount:
            raise ApiError(409, "has_enough", f"{address} has {has} wei already")
        me = self._account.address
        nonce = parse_number(endpoints.call("eth_getTransactionCount", me, "pending"))
        price = parse_number(endpoints.call("eth_gasPrice"))
        transaction: dict[str, Any] = {
            "type": 2,
            "chainId": self._chain_id,
            "nonce": nonce,
            "to": address,
            "value": self._amount,
            "gas": _GAS,
            "maxFeePerGas": 2 * price + _TIP,
            "maxPriorityFeePerGas": _TIP,
            "data": b"",
        }
        signed = self._account.sign_transaction(transaction)
        sent = endpoints.call("eth_sendRawTransaction", f"0x{signed.raw_transaction.hex()}")
        return FaucetGrant(address=address, amount_wei=self._amount, transaction=str(sent))
