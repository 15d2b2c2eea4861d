"""The application: everything wired, with one life from start to end."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import structlog
from fastapi import APIRouter, FastAPI
from sqlalchemy.exc import SQLAlchemyError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

import trainyard
from dapp.database.engine import Database, open_database
from dapp.documenting import document_with
from dapp.faucet import Faucet, read_key
from dapp.indexer.following import Follower
from dapp.indexer.indexing import Chain, Indexer
from dapp.indexer.telling import Teller
from dapp.live.hub import Hub
from dapp.live.sequence import MARKET
from dapp.pages import add_page
from dapp.posting.manifests import ManifestShelf
from dapp.reaching import Reach, StoredOnly
from dapp.remembering import Changes, Remembering
from dapp.routes import (
    content,
    live,
    market,
    operations,
    personal,
    posting,
    results,
    rpc,
    runs,
    tasks,
    workers,
)
from dapp.security.answers import add_handlers
from dapp.security.counting import Counts
from dapp.security.guarding import Guard
from dapp.services import ChainDesk, Services, Turns
from dapp.serving import require_own_currency
from dapp.settings import Settings
from dapp.uploads.quota import keep_for_good, sweep_stored
from dapp.uploads.resumable import sweep
from trainyard.chain.endpoints import Endpoints
from trainyard.content.content import Content
from trainyard.content.gateway import create_app as create_gateway
from trainyard.content.settings import ContentSettings, open_content
from trainyard.engine.confining import Confinement
from trainyard.protocol.errors import TrainyardError

_SWEEP_S = 600.0
# For a place at the chain's endpoints; whoever waits holds a thread.
_PATIENCE_S = 1.0
_API = "/api/v1"


def create_app(
    settings: Settings,
    *,
    confinement: Confinement | None = None,
    static: Path | None = None,
) -> FastAPI:
    """The server as an ASGI application; `confinement` is where strangers' models are opened."""
    counts = Counts()
    services = _services(settings, counts, confinement)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as parts:
            parts.callback(services.content.close)
            parts.callback(services.stored.close)
            parts.callback(services.watch.shutdown, wait=False)
            parts.callback(services.database.close)
            services.manifests.start()
            parts.push_async_callback(asyncio.to_thread, services.manifests.stop)
            parts.callback(services.hub.close)
            async with _running(services.hub.run(), _sweeping(services)):
                services.follower.start()
                parts.push_async_callback(asyncio.to_thread, services.follower.stop)
                yield
                services.hub.close()

    app = FastAPI(
        title="Trainyard",
        version=trainyard.__version__,
        summary="A market for verified TensorFlow training: read it, post to it, watch it.",
        lifespan=lifespan,
        openapi_url=f"{_API}/openapi.json",
        # Its pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
    )
    app.state.services = services
    add_handlers(app)
    api = APIRouter(prefix=_API)
    for part in (market, tasks, runs, results, workers, posting, content, personal, live, rpc):
        api.include_router(part.router)
    app.include_router(api)
    app.include_router(operations.router)
    _add_gateway(app, services)
    add_page(app, static)
    # The body of the feed is read as bytes; the document has its schema all the same.
    document_with(app, *runs.SCHEMAS)
    app.add_middleware(Remembering, changes=services.changes)
    # The last one is the outermost.
    app.add_middleware(Guard, settings=settings, counts=counts)
    return app


def _services(settings: Settings, counts: Counts, confinement: Confinement | None) -> Services:
    settings.data.mkdir(parents=True, exist_ok=True)
    database = open_database(settings.database)
    found = open_content(
        ContentSettings(
            store=settings.content_store, kubo=settings.kubo, gateways=",".join(settings.gateways)
        )
    )
    changes = Changes()
    hub = Hub(
        database,
        most=settings.sse_clients,
        per_address=settings.sse_clients_per_address,
        on_told=changes.note,
    )
    place = (settings.endpoints, settings.chain_id, settings.market)
    chain = ChainDesk(*place, wait_s=_PATIENCE_S)
    stored = Content(StoredOnly(found.store), limits=found.limits)
    reach = Reach(stored, found, settings.fetches, partial(keep_for_good, database))
    manifests = ManifestShelf(database, found, stored, reach, changes)
    faucet = None
    if settings.faucet_key_file is not None:
        key = read_key(settings.faucet_key_file)
        faucet = Faucet(key, chain, settings.chain_id, settings.faucet_wei)
    return Services(
        settings=settings,
        database=database,
        content=found,
        stored=stored,
        reach=reach,
        engine=Turns(settings.engine_waiters),
        hub=hub,
        chain=chain,
        passing=ChainDesk.for_strangers(*place),
        follower=_follower(settings, database, hub, manifests, counts, changes),
        manifests=manifests,
        counts=counts,
        changes=changes,
        confinement=confinement,
        faucet=faucet,
    )


def _follower(
    settings: Settings,
    database: Database,
    hub: Hub,
    manifests: ManifestShelf,
    counts: Counts,
    changes: Changes,
) -> Follower:
    endpoints = Endpoints(settings.endpoints, chain_id=settings.chain_id)
    place = Chain(settings.chain_id, settings.market, settings.start_block)
    wanted = _Wanted(manifests, counts)

    def on_step(indexer: Indexer) -> None:
        changes.note()
        wanted.see(indexer)
        hub.wake()

    def on_head(block: int, at: int) -> None:
        hub.pass_by("head", json.dumps({"block": block, "time": at}), MARKET)

    def open_indexer() -> Indexer:
        # The chain may have been away when the server began.
        require_own_currency(endpoints, settings)
        return Indexer(
            database,
            endpoints,
            place,
            depth=settings.depth,
            tell=Teller(settings.kept_live, settings.kept_live_bytes),
        )

    return Follower(
        open_indexer,
        endpoints,
        poll_s=settings.poll_s,
        on_step=on_step,
        on_head=on_head,
    )


class _Wanted:
    """The manifests of tasks that were not seen before, and figures of the index."""

    def __init__(self, manifests: ManifestShelf, counts: Counts) -> None:
        self._manifests, self._counts = manifests, counts
        self._tasks = self._reorgs = 0

    def see(self, indexer: Indexer) -> None:
        tasks = indexer.view.market.book.tasks
        if indexer.reorgs > self._reorgs:
            self._counts.reorgs.inc(indexer.reorgs - self._reorgs)
            self._reorgs, self._tasks = indexer.reorgs, 0
        new = [number for number in tasks if number > self._tasks]
        self._manifests.want(f"0x{tasks[number].terms.manifest.hex()}" for number in new)
        self._tasks = max(tasks, default=0)
        self._counts.events.inc(indexer.taken())


@asynccontextmanager
async def _running(*parts: Coroutine[None, None, None]) -> AsyncIterator[None]:
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task


async def _sweeping(services: Services) -> None:
    while True:
        await asyncio.sleep(_SWEEP_S)
        for name, part in (("uploads", sweep), ("content", sweep_stored)):
            try:
                gone = await asyncio.to_thread(part, services)
            except (SQLAlchemyError, TrainyardError) as error:
                structlog.get_logger().warning("sweep", what=name, reason=str(error)[:300])
                continue
            if gone:
                structlog.get_logger().info("forgotten", what=name, count=gone)


def _add_gateway(app: FastAPI, services: Services) -> None:
    """Content as CARs, so that the page verifies every block itself.

    It is what the store has; what a task's result names may be fetched, by so many at once.
    """
    gateways = (create_gateway(services.stored), create_gateway(services.content, fetch=True))
    (own,), (wide,) = (
        [route for route in one.routes if isinstance(route, Route)] for one in gateways
    )

    def answer(request: Request) -> Response:
        found: Response = own.endpoint(request)
        root = request.path_params["path"].split("/", 1)[0]
        if found.status_code < 400 or not services.reach.is_named(root):
            return found
        return _Fetched(services.reach, partial(wide.endpoint, request))

    app.router.routes.append(Route(own.path, answer, methods=["GET", "HEAD"]))


class _Fetched(Response):
    """An answer that is fetched while it is sent, and has its place in the line until it ends."""

    def __init__(self, reach: Reach, find: Callable[[], Response]) -> None:
        super().__init__()
        self._reach, self._find = reach, find

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._reach.held():
            answer = await run_in_threadpool(self._find)
            await answer(scope, receive, send)
