"""Workers."""

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from dapp.reading.workers import list_workers, worker_view
from dapp.routes.answering import written
from dapp.routes.documented import cursor_query, refusals
from dapp.routes.market import AddressPath
from dapp.schemas import WorkerPage, WorkerView
from dapp.schemas.values import Hex32
from dapp.services import ServicesDep

router = APIRouter(prefix="/workers", tags=["workers"], responses=refusals(404))


@router.get("", response_model=WorkerPage)
def workers(
    services: ServicesDep,
    env_class: Hex32 | None = None,
    search: Annotated[str | None, Query(max_length=66, pattern="^[0-9a-fA-FxX]*$")] = None,
    retired: bool | None = None,
    sort: Literal["earned", "settled", "success", "bond", "since"] = "earned",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Annotated[str | None, cursor_query("7", "0x" + "11" * 20, 20)] = None,
) -> Response:
    """The leaderboard."""
    with services.database.reading() as session:
        return written(
            list_workers(
                session,
                env_class=env_class,
                search=search,
                is_retired=retired,
                sort=sort,
                limit=limit,
                cursor=cursor,
            )
        )


@router.get("/{address}")
def worker(address: AddressPath, services: ServicesDep) -> WorkerView:
    """A worker's record, earnings, class and latest tasks."""
    with services.database.reading() as session:
        return worker_view(session, address)
