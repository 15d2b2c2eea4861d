"""One batch run before anybody pays, in the server's sandbox."""

from pathlib import Path

from dapp.errors import ApiError
from dapp.posting.engine import engine_turn, require_sandbox
from dapp.reaching import BusyError
from dapp.services import Services
from dapp.settings import scratch_folder
from trainyard.content.bounded import BoundedContent
from trainyard.content.content import Content
from trainyard.content.errors import LimitExceededError
from trainyard.engine.rehearsing import Rehearsal, prepare, run_prepared
from trainyard.engine.worker import Job
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest


def rehearse(services: Services, manifest: Manifest) -> Rehearsal:
    """A few steps of one worker's share, in the sandbox; ApiError with what went wrong."""
    require_sandbox(services)
    with scratch_folder(services.settings, "rehearsal-") as name:
        folder = Path(name).resolve()
        try:
            job = services.reach.get(lambda content: _prepared(services, manifest, content, folder))
            with engine_turn(services):
                assert services.confinement is not None
                return run_prepared(job, folder, services.confinement)
        except BusyError:
            raise
        except LimitExceededError as error:
            raise ApiError(413, "too_large", str(error)[:600]) from error
        except (TrainyardError, ValueError) as error:
            raise ApiError(422, "rehearsal", str(error)[:600]) from error


def _prepared(services: Services, manifest: Manifest, content: Content, folder: Path) -> Job:
    """With the data, of which a stranger's manifest may name as much as it likes."""
    most = services.settings.upload_bytes
    bounded = BoundedContent.of(content, most, "rehearse it on a machine of your own")
    try:
        return prepare(manifest, bounded, folder)
    finally:
        bounded.fetcher.close()
