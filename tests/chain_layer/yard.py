"""A market on an anvil of our own, and what the tests do to both."""

from pathlib import Path
from time import monotonic
from typing import Any

from eth_account import Account
from eth_account.signers.local import LocalAccount
from web3 import HTTPProvider

from benchmarks.anvil import Anvil
from scripts.deploy_settings import read_deploy_settings
from trainyard.chain import load_artifact
from trainyard.chain.calls import Call, MarketCalls
from trainyard.chain.cursor import Cursor
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.health import Patience
from trainyard.chain.store import Store
from trainyard.protocol.market import NATIVE_CURRENCY, Policy, Terms

ETHER = 10**18
_GAS = 10_000_000
TERMS = Terms(
    manifest=b"m" * 32, env_class=b"c" * 32, policy=Policy.REPLICATE, reward=ETHER, stake=ETHER
)


class Clock:
    """Time that passes when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


class Yard:
    """One market, deployed once; every test takes what it did back."""

    def __init__(self, anvil: Anvil) -> None:
        assert isinstance(anvil.web3.provider, HTTPProvider)
        self.anvil, self.url = anvil, str(anvil.web3.provider.endpoint_uri)
        self.chain_id = anvil.web3.eth.chain_id
        self.people = list(anvil.web3.eth.accounts)
        self.start = anvil.web3.eth.block_number + 1
        self.market = self._deploy()
        self.calls = MarketCalls(self.market)

    @property
    def height(self) -> int:
        return int(self.anvil.request("eth_blockNumber"), 16)

    def endpoints(self, *urls: str, clock: Clock | None = None, **patience: Any) -> Endpoints:
        return Endpoints(
            urls or [self.url],
            chain_id=self.chain_id,
            patience=Patience(**patience),
            timeout_s=5.0,
            clock=clock or monotonic,
        )

    def store(self, folder: Path) -> Store:
        return Store(folder / "chain.sqlite", chain_id=self.chain_id, market=self.market)

    def cursor(
        self, store: Store, *urls: str, clock: Clock | None = None, **options: Any
    ) -> Cursor:
        endpoints = self.endpoints(*urls, clock=clock)
        return Cursor(endpoints, store, self.market, start=self.start, **options)

    def deposit(self, amount: int, by: int = 0) -> None:
        self.send(self.calls.deposit(amount, value=amount), by)

    def send(self, call: Call, by: int = 0) -> None:
        """Have anvil sign and mine it."""
        request = {
            "from": self.people[by],
            "to": call.to,
            "data": f"0x{call.data.hex()}",
            "value": hex(call.value),
            "gas": hex(_GAS),
        }
        receipt = self.anvil.receipt(self.anvil.request("eth_sendTransaction", request))
        assert receipt["status"] == 1

    def purse(self, name: str) -> LocalAccount:
        """An account of which only the test has the key."""
        account: LocalAccount = Account.from_key(name.encode().rjust(32, b"\1"))
        self.anvil.request("anvil_setBalance", account.address, hex(1_000 * ETHER))
        return account

    def mined_of(self, account: str) -> int:
        return self.anvil.nonce(account)

    def _deploy(self) -> str:
        params = read_deploy_settings({}).params
        disputes = self._create("MarketDisputes")
        settlement = self._create("MarketSettlement", disputes)
        return self._create(
            "TrainingMarket", NATIVE_CURRENCY, self.people[0], settlement, params.as_tuple()
        )

    def _create(self, name: str, *arguments: Any) -> str:
        eth, artifact = self.anvil.web3.eth, load_artifact(name)
        constructor = eth.contract(abi=artifact.abi, bytecode=artifact.bytecode).constructor
        sent = constructor(*arguments).transact({"from": self.people[0], "gas": _GAS})
        return str(self.anvil.receipt(sent)["contractAddress"])
