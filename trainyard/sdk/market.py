"""A market as its requester uses it: the chain, content, and an account that pays."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

from trainyard.chain.calls import Call, MarketCalls
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import EndpointError, NoEndpointError, RevertedError
from trainyard.chain.journal import State
from trainyard.chain.keystore import address_in, find_password, has_password, open_keystore
from trainyard.chain.outbox import Outbox
from trainyard.chain.quantities import number_in
from trainyard.chain.reading import Reading, read_market
from trainyard.chain.store import Store
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.gateways import ask_workers
from trainyard.content.settings import ContentSettings, open_content
from trainyard.protocol.errors import TransientError
from trainyard.protocol.ledger.book import Book
from trainyard.protocol.profiles import profiles_of
from trainyard.sdk.errors import NoAccountError, NoMarketError

if TYPE_CHECKING:
    from eth_account.signers.local import LocalAccount

    from trainyard.engine.confining import Confinement

_POLL_S = 0.2
_MINED_S = 300.0
_CONFIRMATIONS, _DEVNET_CONFIRMATIONS = 12, 2


class Key(Protocol):
    """Who pays: known by its address, and opened when something has to be signed."""

    @property
    def address(self) -> str: ...

    @property
    def is_at_hand(self) -> bool:
        """Whether it opens without a question."""
        ...

    def open(self) -> "LocalAccount": ...


@dataclass(frozen=True, slots=True)
class KeyFile:
    """A key in an encrypted file; opening it may ask for a password."""

    path: Path
    password_file: Path | None = None

    @property
    def address(self) -> str:
        return address_in(self.path)

    @property
    def is_at_hand(self) -> bool:
        return has_password(self.password_file)

    def open(self) -> "LocalAccount":
        password = find_password(self.password_file, prompt=f"Password of {self.path}: ")
        return open_keystore(self.path, password)


@dataclass(frozen=True, slots=True)
class PlayKey:
    """That of somebody on a devnet, which is no secret."""

    account: "LocalAccount"

    @property
    def address(self) -> str:
        return str(self.account.address)

    @property
    def is_at_hand(self) -> bool:
        return True

    def open(self) -> "LocalAccount":
        return self.account


@dataclass(frozen=True, slots=True)
class Place:
    """Where a market is, and where its content."""

    endpoints: tuple[str, ...]
    chain_id: int
    market: str
    start_block: int
    content: ContentSettings
    # The dapp, which has the figures of running tasks.
    page: str | None = None
    is_devnet: bool = False


class Market:
    """What `trainyard.connect` gives. To be closed, or used as a context manager.

    For one thread at a time. The key is opened when something has to be signed, and not before.
    """

    def __init__(
        self,
        place: Place,
        key: Key | None = None,
        confinement: "Callable[[], Confinement] | None" = None,
    ) -> None:
        self.place = place
        self._key, self._confine = key, confinement
        self._account: LocalAccount | None = None
        self._content: Content | None = None
        self.endpoints = Endpoints(place.endpoints, chain_id=place.chain_id)
        self.endpoints.check()
        self.client = MarketClient(self.endpoints, place.market)
        self.calls = MarketCalls(place.market)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<market {self.place.market} on chain {self.place.chain_id}>"

    def close(self) -> None:
        if self._content is not None:
            self._content.close()
            self._content = None

    @property
    def address(self) -> str:
        return self.place.market

    @property
    def account(self) -> "LocalAccount":
        """Who pays. Opening its keystore may ask for a password."""
        if self._account is None:
            if self._key is None:
                raise NoAccountError(
                    "no key is named to pay with: make one with 'trainyard account new', and name "
                    "it by keystore=, or in the profile"
                )
            self._account = self._key.open()
        return self._account

    @property
    def owner(self) -> str | None:
        """The address of who pays, for which no key has to be opened; None for nobody."""
        return None if self._key is None else self._key.address

    @property
    def is_unlocked(self) -> bool:
        """Whether something can be signed without a question."""
        return self._account is not None or (self._key is not None and self._key.is_at_hand)

    @property
    def content(self) -> Content:
        if self._content is None:
            self._content = open_content(self.place.content)
        return self._content

    def confinement(self) -> "Confinement":
        """The sandbox for what is computed here; an error that says how to get one."""
        if self._confine is None:
            raise NoMarketError("this connection was made without a sandbox: use trainyard.connect")
        return self._confine()

    def read(self) -> Reading:
        """The whole market as it is now."""
        return read_market(self.endpoints, self.place.market, self.place.start_block)

    def balance(self, address: str) -> int:
        """What an account has outside of the market."""
        return self.endpoints.run(
            lambda rpc: number_in(rpc, rpc.request("eth_getBalance", address, "latest"))
        )

    def put(self, data: bytes) -> bytes:
        """Keep a document as one raw block, and return its digest, which is its name on chain."""
        cid = Cid.of(Codec.RAW, data)
        with self.content.store.batch() as batch:
            batch.put(cid, data)
            batch.pin(cid)
        return cid.digest

    def ask_workers(self, book: Book, task: int) -> None:
        """Fetch from the workers of a task as well."""
        profiles = profiles_of(book, task)
        ask_workers(self.content, profiles, allow_private=self.place.is_devnet)

    def send(self, what: str, call: Call) -> bytes:
        """Send a call, and wait until it is mined; its transaction.

        It is journaled before it is sent: should this process die, it is never sent twice.
        """
        key = f"{what} {secrets.token_hex(8)}"
        with self._outbox() as outbox:
            outbox.submit(key, call)
            deadline = time.monotonic() + _MINED_S
            while True:
                entry = outbox.entry(key)
                if entry.state in (State.MINED, State.DONE) and entry.mined and not entry.why:
                    return entry.mined
                if entry.state in (State.REVERTED, State.DISPLACED) or (
                    entry.state is State.MINED and entry.why
                ):
                    raise RevertedError(f"{what} was refused: {entry.why}")
                if time.monotonic() > deadline:
                    raise TransientError(
                        f"{what} is not mined after {_MINED_S:.0f} s ({entry.why or 'no reason'}); "
                        "it may still be: 'trainyard tasks' shows what became of it"
                    )
                time.sleep(_POLL_S)
                try:
                    outbox.step()
                except (EndpointError, NoEndpointError):
                    # Nobody answers now; the same bytes are there for the next try.
                    continue

    def keep_sent(self, *, is_lost: bool = False) -> None:
        """Send again whatever a reorganisation took out of the chain.

        What had its confirmations already is looked for only when something `is_lost`.
        """
        with self._outbox() as outbox:
            if is_lost:
                outbox.revive()
            outbox.step()

    @contextmanager
    def _outbox(self) -> Iterator[Outbox]:
        account, place = self.account, self.place
        folder = state_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        name = f"{place.chain_id}-{place.market[2:14]}-{account.address[2:14]}.sqlite".lower()
        confirmations = _DEVNET_CONFIRMATIONS if place.is_devnet else _CONFIRMATIONS
        store = Store(folder / name, chain_id=place.chain_id, market=place.market)
        with closing(store):
            yield Outbox(self.endpoints, store, account, confirmations=confirmations)


def state_folder() -> Path:
    """Where the journals of what was sent are."""
    given = os.environ.get("XDG_STATE_HOME", "")
    base = Path(given) if given.startswith("/") else Path.home() / ".local" / "state"
    return base / "trainyard" / "requester"
