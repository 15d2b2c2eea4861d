"""All that routes work with, wired once by the entry point."""

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeVar

from fastapi import Depends, Request
from sqlalchemy import select

from dapp.database.engine import Database
from dapp.database.models import Block
from dapp.errors import unavailable
from dapp.live.hub import Hub
from dapp.reaching import MOST_OF_ONE, Reach
from dapp.remembering import Changes
from dapp.security.shares import Shares
from dapp.settings import Settings
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import (
    EndpointError,
    NodeRefusedError,
    NoEndpointError,
    WrongChainError,
)
from trainyard.chain.health import Patience
from trainyard.content.content import Content
from trainyard.engine.confining import Confinement

if TYPE_CHECKING:
    from dapp.faucet import Faucet
    from dapp.indexer.following import Follower
    from dapp.posting.manifests import ManifestShelf
    from dapp.security.counting import Counts

_Result = TypeVar("_Result")
# Strangers' questions may hold so many threads while an endpoint keeps silent. One of them has as
# many connections as a browser opens to one host.
STRANGERS_AT_ONCE, STRANGERS_MOST_OF_ONE = 16, 6
# An endpoint that failed at one stranger's question is soon asked the next one's.
_STRANGERS_PATIENCE = Patience(longest_wait_s=2.0)
_AT_ONCE = 4
_BUSY_WITH_YOURS = f"the engine has {MOST_OF_ONE} things to do for you already"


class ChainDesk:
    """Questions to the chain beside the index. Endpoints are for one thread at a time, so there
    are some of them."""

    def __init__(
        self,
        urls: Sequence[str],
        chain_id: int,
        market: str,
        *,
        at_once: int = _AT_ONCE,
        most_of_one: int | None = None,
        patience: Patience | None = None,
        wait_s: float = 0.0,
    ) -> None:
        """Who finds all of them taken waits for `wait_s`; `most_of_one` is for each client."""
        self._free: queue.Queue[tuple[Endpoints, MarketClient]] = queue.Queue()
        self._shares, self._wait_s = Shares(most_of_one or at_once), wait_s
        for _ in range(at_once):
            endpoints = Endpoints(urls, chain_id=chain_id, patience=patience)
            self._free.put((endpoints, MarketClient(endpoints, market)))

    @classmethod
    def for_strangers(cls, urls: Sequence[str], chain_id: int, market: str) -> "ChainDesk":
        """Apart from the server's own: what strangers ask makes no endpoint ill for it."""
        return cls(
            urls,
            chain_id,
            market,
            at_once=STRANGERS_AT_ONCE,
            most_of_one=STRANGERS_MOST_OF_ONE,
            patience=_STRANGERS_PATIENCE,
        )

    def ask(self, question: Callable[[Endpoints, MarketClient], _Result]) -> _Result:
        """The answer; a chain that is away is a 503."""
        with self._shares.taken("the chain is being asked enough for you already"):
            try:
                mine = self._free.get(block=self._wait_s > 0, timeout=self._wait_s)
            except queue.Empty:
                raise unavailable("the chain is asked too much at once") from None
            try:
                return question(*mine)
            except NodeRefusedError:
                raise
            except (NoEndpointError, EndpointError, WrongChainError) as error:
                raise unavailable(f"the chain cannot be asked: {error}") from error
            finally:
                self._free.put(mine)


class Turns:
    """One after the other, and only so many in the line: each who waits holds a thread.

    Of one client there are fewer than the line has places for, so that others find one.
    """

    def __init__(self, most_waiting: int, patience_s: float = 120.0) -> None:
        self._turn, self._patience_s = threading.Semaphore(1), patience_s
        # Who has the turn stands in the line too.
        self._line = threading.BoundedSemaphore(most_waiting + 1)
        self._shares = Shares(MOST_OF_ONE)

    @contextmanager
    def taken(self) -> Iterator[None]:
        with self._shares.taken(_BUSY_WITH_YOURS, retry_after_s=15.0), self._place():
            if not self._turn.acquire(timeout=self._patience_s):
                raise unavailable("the engine is busy; try again in a moment", retry_after_s=15.0)
            try:
                yield
            finally:
                self._turn.release()

    @contextmanager
    def _place(self) -> Iterator[None]:
        if not self._line.acquire(blocking=False):
            raise unavailable("the engine is busy, and others wait for it", retry_after_s=15.0)
        try:
            yield
        finally:
            self._line.release()


@dataclass(frozen=True, slots=True)
class Services:
    settings: Settings
    database: Database
    content: Content
    # The same without anybody else, for whoever may not have us fetch things.
    stored: Content
    reach: Reach
    hub: Hub
    chain: ChainDesk
    # The same for what strangers have us ask.
    passing: ChainDesk
    follower: "Follower"
    manifests: "ManifestShelf"
    counts: "Counts"
    changes: Changes
    # Where the models and data of strangers are opened; None where there is no sandbox.
    confinement: Confinement | None
    faucet: "Faucet | None"
    # What costs a whole core is done one after the other.
    engine: Turns
    # Looks after the server itself, and is never busy with anything else.
    watch: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="watch")
    )

    def now(self) -> int:
        """The chain's time: its clock may be ahead of ours."""
        with self.database.reading() as session:
            head = session.scalar(select(Block.time).order_by(Block.number.desc()).limit(1))
        return max(head or 0, int(time.time()))


async def _services(request: Request) -> Services:
    # Not a plain function: for each of those FastAPI takes a thread of the routes.
    found: Services = request.app.state.services
    return found


ServicesDep = Annotated[Services, Depends(_services)]
