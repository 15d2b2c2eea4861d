"""One batch run before anybody pays, in the server's sandbox."""

from pathlib import Path

from dapp.errors import ApiError
from dapp.posting.engine import engine_turn
from dapp.services import Services
from dapp.settings import scratch_folder
from trainyard.engine import rehearsing
from trainyard.engine.rehearsing import Rehearsal
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.manifest import Manifest


def rehearse(services: Services, manifest: Manifest) -> Rehearsal:
    """A few steps of one worker's share, in the sandbox; ApiError with what went wrong."""
    with engine_turn(services), scratch_folder(services.settings, "rehearsal-") as name:
        assert services.confinement is not None
        try:
            return rehearsing.rehearse(manifest, services.content, services.confinement, Path(name))
        except (TrainyardError, ValueError) as error:
            raise ApiError(422, "rehearsal", str(error)[:600]) from error
