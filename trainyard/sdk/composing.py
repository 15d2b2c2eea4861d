"""A compiled Keras model, data and a few wishes as a manifest.

All that cannot be said in a manifest is refused here, by its name, before anything is copied or
paid. TensorFlow is needed for this, and imported where it is.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, SupportsFloat, TypedDict

from trainyard.content.content import Content
from trainyard.protocol.manifest import Manifest, Model
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.records import Records, records_of
from trainyard.sdk.wishing import count_of

# So that two audits recompute a fiftieth of the work.
SEGMENTS = 100
# Where those would be of few steps, or their states would fill a disk: a twenty-fifth.
_FEWER_SEGMENTS = 50
_FEW_STEPS = 10
_MOST_STATES_BYTES = 4 << 30
# Of a parameter with two moments, as Adam keeps them.
_PARAMETER_BYTES = 12
_LONGEST = 1_000_000
# Adam, begun anew in each round, has estimates of its moments after some tens of steps.
_LEAST_ROUND = 50
# A segment that ends with an epoch may be longer than the usual one, but not so many times.
_TOO_LONG = 2
# Keras' own, of which no worker would hear, and what to do instead.
_CALLBACKS = {
    "LearningRateScheduler": "give the optimizer a schedule of keras.optimizers.schedules",
    "ReduceLROnPlateau": "give the optimizer a schedule of keras.optimizers.schedules",
    "ModelCheckpoint": "save the model after fit; all states of the run are content",
    "BackupAndRestore": "leave it out; trainyard.attach comes back to a task",
    "SwapEMAWeights": "leave it out",
    "TerminateOnNaN": "leave it out; a run ends by itself where its loss is no number",
}


# Of a shape, with the least that each may be; some may be left out.
_COUNTS = {
    "epochs": 1,
    "steps": 1,
    "batch_size": 1,
    "workers": 1,
    "seed": 0,
    "threads": 1,
    "steps_per_segment": 1,
}
_LEFT_OUT = ("steps", "steps_per_segment")


class RoundsWish(TypedDict, total=False):
    """How workers of mode rounds meet: whatever `training.rounds` of a manifest says."""

    # Of each worker between two meetings.
    local_steps: int
    # Whether a worker's own optimiser begins anew in each round, or goes on from its last one.
    inner: Literal["fresh", "kept"]
    # What they send each other, in whole or as fewer bits.
    compression: Literal["none", "float16", "int8"]
    # learning_rate and momentum of the step that merges what they found.
    outer: dict[str, float]
    # How many a round needs; half of them if left out.
    quorum: int


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
    # In mode rounds the same as `local_steps`.
    steps_per_segment: int | None = None
    rounds: RoundsWish | None = None

    def __post_init__(self) -> None:
        """Refuse by its name what nobody could reckon with."""
        for name, least in _COUNTS.items():
            value = getattr(self, name)
            if value is not None or name not in _LEFT_OUT:
                # The only place where they change: into numbers of Python's own.
                object.__setattr__(self, name, count_of(value, name, least))
        split, weights = self.validation_split, self.class_weight
        is_share = isinstance(split, int | float) and not isinstance(split, bool)
        if split is not None and not (is_share and 0 < split < 1):
            raise RefusedError(
                f"validation_split: {split!r} is no part of the records; give a number between 0 "
                "and 1, or leave it out"
            )
        if weights is not None and not _are_weights(weights):
            raise RefusedError(
                f"class_weight: {weights!r} is no dict of a weight for each class, such as "
                "{0: 1.0, 1: 2.5}"
            )
        if self.rounds is not None and not isinstance(self.rounds, dict):
            raise RefusedError(
                f"rounds: {self.rounds!r} is no dict; say {{'local_steps': 50}}, for instance"
            )

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
    _check_rounds(shape)
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
    _check_rounds(shape)
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
            training["rounds"] = {"local_steps": length, **(shape.rounds or {})}
        else:
            training["steps_per_segment"] = length
        model = self.model.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"version": 1, "model": model, "data": {"train": train}, "training": training}

    def _length(self, records: int) -> int:
        """Steps of a segment, or of a worker in a round."""
        shape = self.shape
        batch = max(1, shape.batch_size)
        steps = shape.steps or -(-shape.epochs * records // batch)
        if shape.chosen_mode == "rounds":
            train = records - int(records * (shape.validation_split or 0))
            return round_length(steps, train // batch, self.model.parameters)
        epoch, rest = divmod(records, batch)
        is_whole = not rest and shape.validation_split is None
        return segment_length(steps, epoch if is_whole else None, self.model.parameters)


def _are_weights(given: Any) -> bool:
    return isinstance(given, dict) and all(
        isinstance(one, SupportsFloat) and not isinstance(one, str) for one in given.values()
    )


def round_length(steps: int, epoch: int, parameters: int) -> int:
    """Steps of a worker in a round: never so few that a fresh optimiser gets nowhere in them.

    And not more than an epoch has, after which it would see its own records once more before it
    hears of those of the others.
    """
    length = max(_usual_length(steps, parameters), _LEAST_ROUND)
    return max(1, min(_ending_epochs(length, epoch), epoch))


def segment_length(steps: int, epoch: int | None, parameters: int) -> int:
    """Steps of a segment: as many as make about the usual number of segments.

    Such that epochs of so many steps end with segments, if they can: their states are then in the
    trace. None are those that end within a step.
    """
    length = _usual_length(steps, parameters)
    return length if epoch is None else _ending_epochs(length, epoch)


def _ending_epochs(length: int, epoch: int) -> int:
    near = (one for one in range(length, _TOO_LONG * length) if epoch % one == 0)
    near_below = (one for one in range(length, length // 2, -1) if epoch % one == 0)
    return min(next(near, None) or next(near_below, length), _LONGEST)


def fewest_segments(steps: int) -> int:
    """Into how few segments `fit` may cut so many steps, wherever epochs end among them.

    Of a model whose states are no reason for fewer still.
    """
    return -(-steps // (_TOO_LONG * _usual_length(steps, 0) - 1))


def _usual_length(steps: int, parameters: int) -> int:
    states = SEGMENTS * _PARAMETER_BYTES * parameters
    is_long = steps >= SEGMENTS * _FEW_STEPS and states <= _MOST_STATES_BYTES
    segments = SEGMENTS if is_long else _FEWER_SEGMENTS
    return min(max(1, -(-steps // segments)), _LONGEST)


def stopping_of(callbacks: Iterable[Any]) -> dict[str, Any] | None:
    """Early stopping as workers do it; other callbacks that would change training are refused."""
    found = None
    for one in callbacks:
        own = type(one).__name__
        # Also of one that somebody derived from it.
        kinds = [base.__name__ for base in type(one).__mro__ if _is_keras(base)]
        for kind in kinds:
            if kind in _CALLBACKS:
                raise RefusedError(
                    f"callbacks: {own} works on a model that trains here, and this one trains on "
                    f"the market; {_CALLBACKS[kind]}"
                )
        if "EarlyStopping" in kinds:
            if not _is_keras(type(one)):
                raise RefusedError(
                    f"callbacks: {own} stops in a way of its own, which no manifest says; give a "
                    "keras.callbacks.EarlyStopping"
                )
            found = _stopping(one)
    return found


def _is_keras(kind: type) -> bool:
    return kind.__module__.startswith("keras.")


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


def _check_rounds(shape: Shape) -> None:
    if shape.rounds is None:
        return
    if shape.chosen_mode != "rounds":
        raise RefusedError(
            f"rounds: mode {shape.chosen_mode!r} has none; say mode='rounds' as well, or leave "
            f"{' and '.join(shape.rounds)} out"
        )
    length = shape.rounds.get("local_steps")
    if None not in (length, shape.steps_per_segment) and length != shape.steps_per_segment:
        raise RefusedError(
            f"rounds: local_steps are {length}, and steps_per_segment {shape.steps_per_segment}, "
            "which in mode rounds is the same; give one of them"
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
