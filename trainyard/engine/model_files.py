"""Models as files, in a process of its own: `python -m trainyard.engine.model_files JOB`.

Reads a Keras file as sections of a manifest, or writes the model of a state as a Keras file. It is
for strangers' files, so whoever starts it puts it into a sandbox; it says one line of JSON.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from trainyard.engine.errors import RunError
from trainyard.protocol.errors import TrainyardError

_LONGEST = 600


class ReadJob(BaseModel):
    """A `.keras` file, or the JSON of `model.to_json()`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["read"] = "read"
    source: Path
    is_json: bool = False


class ExportJob(BaseModel):
    """The model of a manifest with the weights of a state, to be written as a `.keras` file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["export"] = "export"
    manifest: Path
    state: Path
    target: Path


Job = Annotated[ReadJob | ExportJob, Field(discriminator="kind")]
_JOBS: TypeAdapter[ReadJob | ExportJob] = TypeAdapter(Job)


def main() -> None:
    from trainyard.engine import runtime

    runtime.start(1)
    job = _JOBS.validate_json(Path(sys.argv[1]).read_bytes())
    try:
        said = _read(job) if isinstance(job, ReadJob) else _export(job)
    except TrainyardError as error:
        said = {"error": str(error)[:_LONGEST]}
    print(json.dumps(said), flush=True)


def _read(job: ReadJob) -> dict[str, Any]:
    from trainyard.engine.importing import model_of, training_of
    from trainyard.engine.reading_keras import ModelImportError

    model = _load(job)
    section = model_of(model).model_dump(mode="json", by_alias=True, exclude_none=True)
    training, note = None, ""
    try:
        training = training_of(model)
    except ModelImportError as error:
        note = str(error)[:_LONGEST]
    return {"model": section, "training": training, "note": note}


def _load(job: ReadJob) -> Any:
    import keras

    from trainyard.engine.reading_keras import ModelImportError

    try:
        if job.is_json:
            return keras.models.model_from_json(job.source.read_text(encoding="utf-8"))
        return keras.saving.load_model(job.source, safe_mode=True)
    except Exception as error:
        # Keras raises whatever comes to its mind about files that are none of its own.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelImportError(f"Keras cannot read it: {reason[:300]}") from error


def _export(job: ExportJob) -> dict[str, Any]:
    from trainyard.engine.program import build
    from trainyard.engine.state import WEIGHTS, State
    from trainyard.engine.variables import assign, named_variables
    from trainyard.protocol.manifest import Manifest

    program = build(Manifest.parse(job.manifest.read_bytes()))
    assign(named_variables(program), State.load(job.state), WEIGHTS)
    unfinished = job.target.with_name(f".{job.target.name}")
    program.model.save(unfinished)
    if not unfinished.is_file():
        raise RunError("Keras wrote no file")
    unfinished.replace(job.target)
    return {"bytes": job.target.stat().st_size}


if __name__ == "__main__":
    main()
