"""A run: its feed of metrics and lines."""

from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Request, Response
from starlette.concurrency import run_in_threadpool

from dapp.database.models import TaskRow
from dapp.errors import not_found
from dapp.reading.runs import lines_of, metrics_of
from dapp.routes.answering import written
from dapp.routes.documented import refusals
from dapp.schemas import FeedAck, FeedBatch, LogPage, MetricsView
from dapp.schemas.runs import Level
from dapp.schemas.values import TaskId
from dapp.services import ServicesDep
from dapp.signing.feeds import take_feed

router = APIRouter(prefix="/tasks", tags=["runs"], responses=refusals(404))
Number = Annotated[TaskId, Path(examples=[1])]
Place = Annotated[int, Query(ge=0, le=2**53 - 1)]


@router.get("/{number}/metrics", response_model=MetricsView)
def metrics(
    number: Number,
    services: ServicesDep,
    after: Place = 0,
    names: Annotated[list[str] | None, Query(max_length=32)] = None,
    points: Annotated[int, Query(ge=10, le=4000)] = 1000,
) -> Response:
    """Numbers of a run, in columns as charts take them."""
    with services.database.reading() as session:
        if session.get(TaskRow, number) is None:
            raise not_found(f"there is no task {number}")
        return written(metrics_of(session, number, after=after, names=names, most=points))


@router.get("/{number}/logs", response_model=LogPage)
def logs(
    number: Number,
    services: ServicesDep,
    after: Place | None = None,
    before: Place | None = None,
    search: Annotated[str | None, Query(max_length=100)] = None,
    level: Level | None = None,
    slot: Annotated[int | None, Query(ge=0, le=31)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
) -> Response:
    """Lines of a run: its tail, or what is before or after a line."""
    with services.database.reading() as session:
        if session.get(TaskRow, number) is None:
            raise not_found(f"there is no task {number}")
        return written(
            lines_of(
                session,
                number,
                after=after,
                before=before,
                search=search,
                level=level,
                slot=slot,
                limit=limit,
            )
        )


@router.post(
    "/{number}/feed",
    responses=refusals(401, 403, 404, 409, 413),
    openapi_extra={
        "requestBody": {
            "required": True,
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/FeedBatch"}}},
        }
    },
)
async def feed(
    number: Number,
    request: Request,
    services: ServicesDep,
    signature: Annotated[
        str, Header(alias="X-Trainyard-Signature", max_length=200, examples=["0x" + "00" * 65])
    ],
) -> FeedAck:
    """Take metrics and log lines of a worker, signed by its wallet."""
    # The bytes as they came: that is what was signed.
    body = await request.body()
    return await run_in_threadpool(take_feed, services, number, body, signature)


# Named in the document by hand, since its bytes are read by hand.
SCHEMAS = (FeedBatch,)
