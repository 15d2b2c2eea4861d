"""The run behind a claim, of which nothing is believed that the chain does not have."""

from pathlib import Path

from dapp.errors import ApiError, not_found
from dapp.reaching import BusyError
from dapp.security.telling import told
from dapp.services import Services
from trainyard.content.cid import Cid
from trainyard.content.content import Content
from trainyard.engine.claims import ClaimedRun, open_claimed, read_claimed
from trainyard.engine.errors import OtherRunError
from trainyard.engine.evidence import TRACE
from trainyard.engine.limits import most_state_bytes, most_trace_bytes
from trainyard.protocol.commitments import Claim
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import TaskState
from trainyard.protocol.results import Result

_NOWHERE = Path("/nonexistent")
_CLOSED = (TaskState.OPEN, TaskState.RUNNING, TaskState.REVEALING)


def read_result(services: Services, task: Task) -> tuple[str, Result]:
    """The document behind the claim that counts."""
    claim = _claim(task)

    def read(content: Content) -> tuple[str, Result]:
        return read_claimed(content, task.terms.manifest, claim)

    try:
        return services.reach.get(read)
    except BusyError:
        raise
    except TrainyardError as error:
        raise ApiError(
            404, "not_published", f"the result is not published: {told(error)}"[:500]
        ) from error


def open_run(services: Services, task: Task) -> ClaimedRun:
    read_result(services, task)
    claim = _claim(task)

    def opened(content: Content) -> ClaimedRun:
        return open_claimed(content, task.terms.manifest, claim, _NOWHERE)

    try:
        return services.reach.get(opened)
    except BusyError:
        raise
    except OtherRunError as error:
        raise ApiError(422, "other_run", str(error)) from error
    except TrainyardError as error:
        raise ApiError(
            404,
            "not_published",
            f"the run is not published yet: {told(error)}"[:500],
            fix="workers publish it when the auditors have answered",
        ) from error


def keep_state(services: Services, run: ClaimedRun) -> Cid:
    """The last state, pinned here, if it can be one of the run's manifest."""
    return services.reach.keep(run.last_state, most_state_bytes(run.published.manifest))


def keep_trace(services: Services, run: ClaimedRun) -> Cid:
    """The list of all states' hashes, pinned here."""
    most = most_trace_bytes(run.published.manifest)
    return services.reach.keep(run.published.result.child(TRACE), most)


def _claim(task: Task) -> Claim:
    claim = task.slots[task.lead].claim
    if claim is None or task.state in _CLOSED:
        raise not_found("the workers have claimed nothing yet", "wait until the task is submitted")
    return claim
