"""A module of the engine asked one question in a sandbox: a job in, one document out."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from trainyard.engine.confining import Confinement, Reach, class_cache
from trainyard.engine.errors import RunError
from trainyard.engine.launching import confined_processes

_LONGEST = 600


def ask_confined(
    module: str,
    job: BaseModel,
    folder: Path,
    confinement: Confinement,
    *,
    readable: Sequence[Path] = (),
    writable: Sequence[Path] = (),
) -> dict[str, Any]:
    """The last document that the module says to its job; RunError with what it says instead."""
    path = folder / "job.json"
    path.write_text(job.model_dump_json())
    cache, environment = class_cache()
    reach = Reach((path, cache, *readable), tuple(writable), environment)
    said: dict[str, Any] | None = None
    with confined_processes(module, path, folder / "log", confinement, reach) as lines:
        for line in lines:
            said = _document(line) or said
    if said is None:
        raise RunError("the engine could make nothing of it")
    if "error" in said:
        raise RunError(str(said["error"])[:_LONGEST])
    return said


def _document(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        # Libraries talk to standard output, too, and strangers may.
        return None
    return found if isinstance(found, dict) else None
