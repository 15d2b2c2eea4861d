"""A Keras file as the model of a manifest."""

import json
from pathlib import Path

from pydantic import ValidationError

from dapp.errors import ApiError
from dapp.posting.describing import layers_of
from dapp.posting.engine import ask_engine, engine_turn, require_sandbox
from dapp.schemas.posting import ModelView
from dapp.services import Services
from dapp.settings import scratch_folder
from trainyard.content.names import ContentPath
from trainyard.content.reading import EntryKind
from trainyard.engine.model_files import ReadJob
from trainyard.protocol.manifest import Model

_MODULE = "trainyard.engine.model_files"
_MOST_BYTES = 1 << 30
_ARCHIVE = b"PK"


def read_model(services: Services, cid: str) -> ModelView:
    path = ContentPath.parse(cid)
    entry = services.reach.get(lambda content: content.stat(path))
    if entry.kind is not EntryKind.FILE or entry.size > _MOST_BYTES:
        raise ApiError(422, "refused", "that is no file of a model, or one that is too large")
    require_sandbox(services)
    with scratch_folder(services.settings, "model-") as name:
        folder = Path(name)
        fetched = folder / "fetched"
        services.reach.get(lambda content: content.get(ContentPath(entry.cid), fetched))
        with fetched.open("rb") as file:
            is_json = file.read(len(_ARCHIVE)) != _ARCHIVE
        # Keras goes by the name.
        source = fetched.rename(folder / ("model.json" if is_json else "model.keras"))
        job = ReadJob(source=source, is_json=is_json)
        with engine_turn(services):
            said = ask_engine(services, _MODULE, job, folder, readable=[source])
    try:
        model = Model.model_validate_json(json.dumps(said["model"]))
    except (ValidationError, KeyError) as error:
        raise ApiError(422, "refused", "the engine found no model in it") from error
    notes = []
    if said.get("note"):
        notes.append(f"How it is trained is chosen below: {said['note']}.")
    if not is_json:
        notes.append("Training begins with fresh weights; those of the file are not taken over.")
    return ModelView(
        model=said["model"],
        training=said["training"],
        layers=layers_of(model),
        parameters=model.parameters,
        trainable_parameters=model.trainable_parameters,
        inputs=[given.model_dump(mode="json") for given in model.inputs],
        output=list(model.output.shape),
        notes=notes,
    )
