"""What a task came to."""

from pathlib import PurePosixPath
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import FileResponse, Response

from dapp.errors import ApiError, not_found
from dapp.reading.runs import metrics_of
from dapp.reading.task import Known, know
from dapp.reading.tasks import latest_values
from dapp.results.exporting import event_file, model_cid, model_file
from dapp.results.opening import keep_state, keep_trace, open_run, read_result
from dapp.results.receipts import unsigned_receipt
from dapp.routes.content import download
from dapp.routes.documented import refusals
from dapp.schemas import ResultView
from dapp.schemas.values import TaskId
from dapp.security.telling import told
from dapp.services import Services, ServicesDep
from trainyard.content.cid import Cid
from trainyard.content.names import ContentPath
from trainyard.engine.claims import ClaimedRun
from trainyard.protocol.errors import TrainyardError

router = APIRouter(prefix="/tasks", tags=["results"], responses=refusals(404))
Number = Annotated[TaskId, Path(examples=[1])]
_MOST_POINTS = 1_000_000
_LONGEST_REASON = 500
_TESTED = "test/"
_SNIPPET = """\
import keras

# `trainyard content add {name}` prints the CID that the page has shown.
model = keras.saving.load_model("{name}", compile=False)
model.summary()
"""


@router.get("/{number}/result")
def result(number: Number, services: ServicesDep) -> ResultView:
    """The result, as far as it is known and published."""
    known, values = _known(services, number)
    base = f"/api/v1/tasks/{number}/result"
    found: dict[str, Any] = {
        "available": False,
        "receipt_url": f"{base}/receipt",
        "tensorboard_url": f"{base}/tensorboard" if values else None,
        "metrics": {name: value for name, value in values.items() if not name.startswith(_TESTED)},
        "tested": {
            name.removeprefix(_TESTED): value
            for name, value in values.items()
            if name.startswith(_TESTED)
        },
        "train_s": values.get("train_s"),
        "energy_j": values.get("energy_j"),
        "paid_wei": known.row.paid,
        "refunded_wei": known.row.refunded,
    }
    try:
        cid, document = read_result(services, known.task)
    except (ApiError, TrainyardError) as error:
        return ResultView.model_validate(found | {"reason": _said(error)})
    # The page fetches both from here, block by block.
    services.reach.note_named(Cid.parse(cid), ContentPath.parse(document.run).root)
    found |= {
        "result_cid": cid,
        "result_digest": f"0x{document.digest.hex()}",
        "root": f"0x{document.root}",
        "run_cid": document.run,
        "evidence_cid": document.evidence,
    }
    try:
        run = open_run(services, known.task)
        # Fetched and kept, so that the page gets both from here block by block.
        state = keep_state(services, run)
        keep_trace(services, run)
    except (ApiError, TrainyardError) as error:
        return ResultView.model_validate(found | {"reason": _said(error)})
    found |= {
        "available": True,
        "state_cid": str(state),
        "state_url": f"{base}/state",
        "steps": run.published.manifest.plan.steps,
    }
    # Of a task that predicts the states are answers, and no model has them as its weights.
    if not run.published.manifest.training.predicts:
        made = model_cid(services, run)
        found |= {
            "model_url": f"{base}/model.keras",
            "model_cid": None if made is None else str(made),
            "snippet": _SNIPPET.format(name=f"task-{number}.keras"),
        }
    return ResultView.model_validate(found)


@router.get("/{number}/result/state", response_class=Response)
def state(number: Number, services: ServicesDep) -> Response:
    """The last state as safetensors, each block verified before it is sent."""
    run = _run(services, number)
    keep_state(services, run)
    return download(services.stored, run.last_state, f"task-{number}.safetensors")


@router.get("/{number}/result/model.keras", response_class=Response)
def model(number: Number, services: ServicesDep) -> Response:
    """The trained model as a Keras file, made from the verified state in the sandbox."""
    run = _run(services, number)
    if run.published.manifest.training.predicts:
        raise not_found(
            f"task {number} has predicted, and trained no model",
            f"its answers are in GET /api/v1/tasks/{number}/result/state",
        )
    path, cid = model_file(services, run)
    return FileResponse(
        path,
        media_type="application/octet-stream",
        filename=str(PurePosixPath(f"task-{number}.keras")),
        headers={"X-Content-Cid": str(cid)},
    )


@router.get("/{number}/result/receipt")
def receipt(number: Number, services: ServicesDep) -> dict[str, Any]:
    """What was trained, checked and paid, for `trainyard verify`; signed by nobody."""
    known, _ = _known(services, number)
    found = unsigned_receipt(known, services.settings)
    return found.model_dump(mode="json", exclude_none=True)


@router.get("/{number}/result/tensorboard", response_class=Response)
def tensorboard(number: Number, services: ServicesDep) -> Response:
    """Loss and metrics as TensorBoard's event file."""
    with services.database.reading() as session:
        know(session, number)
        view = metrics_of(session, number, after=0, names=None, most=_MOST_POINTS)
    name = f"events.out.tfevents.{number}.trainyard"
    return Response(
        b"".join(event_file(view)),
        media_type="application/octet-stream",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )


def _said(error: ApiError | TrainyardError) -> str:
    return (error.message if isinstance(error, ApiError) else told(error))[:_LONGEST_REASON]


def _known(services: Services, number: int) -> tuple[Known, dict[str, float]]:
    with services.database.reading() as session:
        return know(session, number), latest_values(session, number)


def _run(services: Services, number: int) -> ClaimedRun:
    with services.database.reading() as session:
        task = know(session, number).task
    return open_run(services, task)
