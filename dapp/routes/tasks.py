"""Tasks: the list, one of them, and its history."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response

from dapp.errors import not_found
from dapp.posting.describing import summary_of
from dapp.posting.manifests import cid_of, document_of
from dapp.reading.task import know, task_view, timeline_of
from dapp.reading.tasks import Filter, list_tasks
from dapp.reading.trace import trace_of
from dapp.results.proving import proof_of
from dapp.routes.answering import written
from dapp.routes.documented import cursor_query, refusals
from dapp.schemas import StateProof, Task, TaskPage, Timeline, TraceView
from dapp.schemas.posting import ManifestRead
from dapp.schemas.tasks import ManifestSummary
from dapp.schemas.values import Address, Hex32, PolicyName, StateName, TaskId
from dapp.security.telling import told
from dapp.services import Services, ServicesDep
from trainyard.protocol.errors import TrainyardError

router = APIRouter(prefix="/tasks", tags=["tasks"], responses=refusals(404))
Number = Annotated[TaskId, Path(description="the task's number", examples=[1])]
Sort = Literal["newest", "oldest", "reward", "-reward", "deadline", "updated"]
Text = Annotated[str, Query(max_length=100)]
Cursor = Annotated[str | None, cursor_query(7, 7)]


@router.get("", response_model=TaskPage)
def tasks(
    services: ServicesDep,
    state: Annotated[list[StateName] | None, Query(max_length=12)] = None,
    policy: Annotated[list[PolicyName] | None, Query(max_length=4)] = None,
    env_class: Hex32 | None = None,
    requester: Address | None = None,
    worker: Address | None = None,
    search: Text | None = None,
    min_reward: Annotated[str | None, Query(pattern="^[0-9]{1,78}$")] = None,
    listed: bool | None = None,
    active: bool | None = None,
    sort: Sort = "newest",
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
    cursor: Cursor = None,
) -> Response:
    """Tasks by filter, search and order, in pages."""
    wanted = Filter(
        states=state or (),
        policies=policy or (),
        env_class=env_class,
        requester=requester,
        worker=worker,
        search=_plain(search),
        min_reward=None if min_reward is None else int(min_reward),
        is_listed=listed,
        is_active=active,
    )
    with services.database.reading() as session:
        return written(list_tasks(session, wanted, sort, limit, cursor))


@router.get("/{number}", response_model=Task)
def task(number: Number, services: ServicesDep) -> Response:
    """All about a task: slots, seats, disputes, who moves next, and the money."""
    with services.database.reading() as session:
        known = know(session, number)
        return written(task_view(session, known, known.now))


@router.get("/{number}/timeline", response_model=Timeline)
def timeline(number: Number, services: ServicesDep) -> Response:
    """Posted → Joined → Training → Submitted → Audited → Settled, and every event behind it."""
    with services.database.reading() as session:
        return written(timeline_of(know(session, number)))


@router.get("/{number}/trace")
def trace(number: Number, services: ServicesDep) -> TraceView:
    """Which segments were audited or challenged, by whom, and what came of it."""
    with services.database.reading() as session:
        known = know(session, number)
    return trace_of(known, _titles(services, known.row.manifest))


@router.get("/{number}/trace/{segment}")
def state_proof(
    number: Number,
    segment: Annotated[int, Path(ge=0, le=2**32 - 1)],
    services: ServicesDep,
) -> StateProof:
    """What `challenge` has to be shown about a segment."""
    with services.database.reading() as session:
        known = know(session, number)
    return proof_of(services, known.task, segment)


@router.get("/{number}/manifest")
def manifest(number: Number, services: ServicesDep) -> ManifestRead:
    """The task's manifest, or why it cannot be read."""
    with services.database.reading() as session:
        digest = know(session, number).row.manifest
    return read_manifest(services, digest)


def read_manifest(services: Services, digest: str) -> ManifestRead:
    cid = str(cid_of(bytes.fromhex(digest[2:])))
    try:
        found = services.manifests.read(digest)
    except TrainyardError as error:
        summary = ManifestSummary(error=f"the manifest cannot be read: {told(error)}"[:300])
        return ManifestRead(digest=digest, cid=cid, manifest=None, summary=summary)
    return ManifestRead(
        digest=digest, cid=cid, manifest=document_of(found), summary=summary_of(found)
    )


def _titles(services: Services, digest: str) -> dict[int, str]:
    """What segments are called, where that says more than their number."""
    try:
        plan = services.manifests.read(digest).plan
    except TrainyardError:
        return {}
    most = 10_000
    if not hasattr(plan, "workers") or plan.segments > most:
        return {}
    return {segment: plan.title(segment) for segment in range(plan.segments)}


def _plain(text: str | None) -> str | None:
    if text is not None and "\0" in text:
        raise not_found("nothing is called that")
    return text
