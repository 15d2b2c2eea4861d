"""A compiled Keras model, data and a few wishes as a manifest.

All that cannot be said in a manifest is refused here, by its name, before anything is copied or
paid. TensorFlow is needed for this, and imported where it is.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.content.content import Content
from trainyard.protocol.manifest import Manifest, Model
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.records import Records, records_of

# So that two audits recompute a twenty-fifth of the work.
_SEGMENTS = 50
_LONGEST = 1_000_000
# Keras' own, of which no worker would hear, and what to do instead.
_CALLBACKS = {
    "LearningRateScheduler": "give the optimizer a schedule of keras.optimizers.schedules",
    "ReduceLROnPlateau": "give the optimizer a schedule of keras.optimizers.schedules",
    "ModelCheckpoint": "save the model after fit; all states of the run are content",
    "BackupAndRestore": "leave it out; trainyard.attach comes back to a task",
    "SwapEMAWeights": "leave it out",
    "TerminateOnNaN": "leave it out; a run ends by itself where its loss is no number",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """How a model is to be trained, apart from the money."""

    epochs: int = 1
    # Where it is said, training ends after so many steps, and epochs do not count.
    steps: int | None = None
    batch_size: int = 32
    workers: int = 1
    mode: str | None = None
    validation_split: float | None = None
    class_weight: dict[int, float] | None = None
    seed: int = 1
    threads: int = 1
    steps_per_segment: int | None = None

    @property
    def chosen_mode(self) -> str:
        return self.mode or ("single" if self.workers == 1 else "sync")


def compose(
    content: Content,
    model: Any,
    x: Any,
    y: Any,
    shape: Shape,
    *,
    validation_data: Any = None,
    sample_weight: Any = None,
    callbacks: Iterable[Any] = (),
    fresh_optimizer: bool = False,
) -> Manifest:
    """The manifest of one `fit`, with its data and the model's weights in content."""
    from trainyard.engine.importing import model_of, training_of

    section, training = model_of(model), training_of(model)
    _check_optimizer(model, fresh_optimizer)
    stopping = stopping_of(callbacks)
    train = records_of(content, section.inputs, x, y, sample_weight)
    validation = _validation(content, section, validation_data, shape)
    document = _added(content, _Draft(section, training, shape, stopping), train, validation)
    document["initial_state"] = _add_weights(content, model, Manifest.of(document))
    return Manifest.of(document)


def compose_sections(
    content: Content,
    model: Model,
    training: dict[str, Any],
    x: Any,
    y: Any,
    shape: Shape,
    *,
    validation_data: Any = None,
    sample_weight: Any = None,
) -> Manifest:
    """The same of a model that is a section already; training begins with fresh weights."""
    train = records_of(content, model.inputs, x, y, sample_weight)
    validation = _validation(content, model, validation_data, shape)
    return Manifest.of(_added(content, _Draft(model, training, shape, None), train, validation))


def _added(
    content: Content, draft: "_Draft", train: Records, validation: Records | None
) -> dict[str, Any]:
    """The document of a manifest, with its records in content."""
    # Refused here, if it is: nothing is copied yet.
    Manifest.of(draft.document(train.source(), None if validation is None else validation.source()))
    tried = None if validation is None else validation.source(*validation.add(content))
    return draft.document(train.source(*train.add(content)), tried)


@dataclass(frozen=True, slots=True)
class _Draft:
    model: Model
    training: dict[str, Any]
    shape: Shape
    stopping: dict[str, Any] | None

    def document(self, train: dict[str, Any], validation: dict[str, Any] | None) -> dict[str, Any]:
        shape = self.shape
        training: dict[str, Any] = {
            "mode": shape.chosen_mode,
            "workers": shape.workers,
            "threads": shape.threads,
            "batch": shape.batch_size,
            "until": {"epochs": shape.epochs} if shape.steps is None else {"steps": shape.steps},
            "seed": shape.seed,
            **self.training,
        }
        if validation is not None:
            training["validation"] = {"source": validation}
        elif shape.validation_split is not None:
            training["validation"] = {"split": shape.validation_split}
        if self.stopping is not None:
            training["early_stopping"] = self.stopping
        if shape.class_weight is not None:
            weights = shape.class_weight
            training["class_weight"] = {str(one): float(weights[one]) for one in weights}
        length = shape.steps_per_segment or self._length(train["records"])
        if shape.chosen_mode == "rounds":
            training["rounds"] = {"local_steps": length}
        else:
            training["steps_per_segment"] = length
        model = self.model.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"version": 1, "model": model, "data": {"train": train}, "training": training}

    def _length(self, records: int) -> int:
        """Steps of a segment: as many as make about the usual number of segments.

        Such that epochs end with segments, if they can: their states are then in the trace.
        """
        shape = self.shape
        steps = shape.steps or -(-shape.epochs * records // max(1, shape.batch_size))
        length = min(max(1, -(-steps // _SEGMENTS)), _LONGEST)
        epoch, rest = divmod(records, max(1, shape.batch_size))
        if rest or shape.validation_split is not None:
            return length
        near = (one for one in range(length, 2 * length) if epoch % one == 0)
        near_below = (one for one in range(length, length // 2, -1) if epoch % one == 0)
        return min(next(near, None) or next(near_below, length), _LONGEST)


def stopping_of(callbacks: Iterable[Any]) -> dict[str, Any] | None:
    """Early stopping as workers do it; other callbacks that would change training are refused."""
    found = None
    for one in callbacks:
        kind = type(one).__name__
        is_keras = type(one).__module__.startswith("keras.")
        if is_keras and kind in _CALLBACKS:
            raise RefusedError(
                f"callbacks: {kind} works on a model that trains here, and this one trains on the "
                f"market; {_CALLBACKS[kind]}"
            )
        if is_keras and kind == "EarlyStopping":
            found = _stopping(one)
    return found


def _stopping(callback: Any) -> dict[str, Any]:
    unsaid = {
        "restore_best_weights": False,
        "baseline": None,
        "start_from_epoch": 0,
    }
    for name, plain in unsaid.items():
        value = getattr(callback, name, plain)
        if value != plain:
            raise RefusedError(
                f"callbacks: EarlyStopping has {name}={value!r}, which no manifest says; leave it "
                f"at {plain!r}"
            )
    monitor = str(callback.monitor)
    mode = getattr(callback, "mode", "auto")
    if mode == "auto":
        mode = "max" if monitor.endswith("acc") or "accuracy" in monitor else "min"
    # Keras stops when it has waited for so many, and a manifest when for one more.
    patience = max(0, int(callback.patience) - 1)
    delta = abs(float(callback.min_delta))
    return {"monitor": monitor, "patience": patience, "min_delta": delta, "mode": mode}


def _check_optimizer(model: Any, fresh: bool) -> None:
    taken = int(model.optimizer.iterations)
    if taken and not fresh:
        raise RefusedError(
            f"the optimizer has taken {taken} steps, and a task begins with a fresh one, on the "
            "weights that the model has: say fresh_optimizer=True if that is what you want, or "
            "compile the model anew"
        )


def _validation(content: Content, model: Model, given: Any, shape: Shape) -> Records | None:
    if given is None:
        return None
    if shape.validation_split is not None:
        raise RefusedError("give either validation_data or validation_split")
    if isinstance(given, tuple | list) and len(given) in (2, 3):
        return records_of(content, model.inputs, *given)
    return records_of(content, model.inputs, given)


def _add_weights(content: Content, model: Any, manifest: Manifest) -> str:
    """The weights that the model has now: training goes on from them."""
    from trainyard.engine.transplanting import weights_of

    with tempfile.TemporaryDirectory(prefix="trainyard-weights-") as folder:
        path = Path(folder) / "weights.safetensors"
        weights_of(model, manifest).save(path)
        return str(content.add(path).cid)
