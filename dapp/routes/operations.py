"""For machines that look after the server."""

import asyncio

from fastapi import APIRouter, Response
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

import trainyard
from dapp.schemas.market import HealthView, ReadyCheck, ReadyView
from dapp.services import Services, ServicesDep
from trainyard.content.cid import Cid, Codec
from trainyard.protocol.errors import TrainyardError

router = APIRouter(tags=["operations"])
_NOTHING = Cid(Codec.RAW, bytes(32))
# No look takes so long, with an endpoint after the other that does not answer.
_LONGEST_LOOK_S = 120.0


@router.get("/healthz")
async def healthz() -> HealthView:
    """Whether the process lives."""
    return HealthView(status="ok", version=trainyard.__version__)


@router.get("/readyz", responses={503: {"model": ReadyView}})
async def readyz(services: ServicesDep, response: Response) -> ReadyView:
    """Whether it can do its work: the index is at the head, the database and the store answer."""
    # By a thread of its own: those of the routes may all be waiting for somebody.
    loop = asyncio.get_running_loop()
    checks = await loop.run_in_executor(services.watch, _checks, services)
    ready = all(one.ok for one in checks)
    if not ready:
        response.status_code = 503
    return ReadyView(ready=ready, checks=checks, lag_blocks=services.follower.lag)


@router.get("/metrics", response_class=Response)
async def metrics(services: ServicesDep) -> Response:
    """Figures in Prometheus' own form."""
    counts, follower = services.counts, services.follower
    counts.listeners.set(services.hub.count)
    counts.head.set(follower.indexed or 0)
    counts.lag.set(follower.lag or 0)
    return Response(counts.render(), media_type="text/plain; version=0.0.4")


def _checks(services: Services) -> list[ReadyCheck]:
    return [_chain(services), _database(services), _store(services)]


def _chain(services: Services) -> ReadyCheck:
    follower = services.follower
    lag, most = follower.lag, services.settings.most_lag
    if follower.why:
        return ReadyCheck(name="chain", ok=False, detail=follower.why)
    if lag is None:
        return ReadyCheck(name="chain", ok=False, detail="the chain was not seen yet")
    silent_s = follower.silent_s - services.settings.poll_s
    if silent_s > _LONGEST_LOOK_S:
        return ReadyCheck(
            name="chain", ok=False, detail=f"the chain was not looked at for {silent_s:.0f} s"
        )
    return ReadyCheck(
        name="chain", ok=lag <= most, detail=f"{lag} blocks behind block {follower.head}"
    )


def _database(services: Services) -> ReadyCheck:
    try:
        with services.database.reading() as session:
            session.execute(text("SELECT 1"))
    except SQLAlchemyError as error:
        return ReadyCheck(name="database", ok=False, detail=type(error).__name__)
    return ReadyCheck(name="database", ok=True, detail=services.database.engine.dialect.name)


def _store(services: Services) -> ReadyCheck:
    try:
        services.content.store.has(_NOTHING)
    except TrainyardError as error:
        return ReadyCheck(name="store", ok=False, detail=str(error)[:300])
    return ReadyCheck(name="store", ok=True, detail=services.content.store.name)
