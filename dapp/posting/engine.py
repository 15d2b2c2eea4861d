"""The sandboxed engine: one process at a time, which sees its own files and nothing else."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from dapp.errors import ApiError
from dapp.services import Services
from trainyard.engine.asking import ask_confined
from trainyard.engine.errors import RunError


@contextmanager
def engine_turn(services: Services) -> Iterator[None]:
    """Until the block ends nobody else has the engine: it takes a whole core.

    Nothing is fetched inside, or whoever is slow to send it would hold up everybody.
    """
    require_sandbox(services)
    with services.engine.taken():
        yield


def require_sandbox(services: Services) -> None:
    """503 without one; said before anything is fetched for it."""
    if services.confinement is None:
        raise ApiError(
            503,
            "no_sandbox",
            "this server has no sandbox, and opens strangers' files in nothing else",
            fix="install bubblewrap on the server (Debian: apt-get install bubblewrap)",
        )


def ask_engine(
    services: Services,
    module: str,
    job: BaseModel,
    folder: Path,
    *,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
) -> dict[str, Any]:
    """The one line that a module says to its job; in the sandbox, within the caller's turn."""
    assert services.confinement is not None
    try:
        return ask_confined(
            module, job, folder, services.confinement, readable=readable, writable=writable
        )
    except RunError as error:
        raise ApiError(422, "refused", str(error)) from error
