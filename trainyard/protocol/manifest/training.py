"""How a model is trained: by how many, for how long, towards what."""

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from trainyard.protocol.manifest.data import MOST_RECORDS, Source
from trainyard.protocol.manifest.errors import MisfitError
from trainyard.protocol.manifest.objectives import WITH_CLASSES, Loss, Metric
from trainyard.protocol.manifest.optimizers import Optimizer
from trainyard.protocol.manifest.values import NonNegative, Positive, Share, Steps, Strict

# Of each there is a line in a journal, which is read whole, and a file.
MOST_SEGMENTS = 100_000
# The largest that JSON carries exactly (RFC 8785 follows I-JSON).
_LARGEST_SEED = 2**53 - 1
_MOST_CLASSES = 1024
_OF_TRAINING = (
    *("optimizer", "loss", "metrics", "class_weight"),
    *("validation", "early_stopping", "rounds"),
)

_ClassLabel: TypeAlias = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,5})$")]


class Until(Strict):
    """When training ends: after whole passes over the records, or after steps."""

    epochs: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    steps: Steps | None = None

    @model_validator(mode="after")
    def _one(self) -> "Until":
        if (self.epochs is None) == (self.steps is None):
            raise ValueError("give either epochs or steps")
        return self


class Validation(Strict):
    """A share of the training records, held out, or a source of its own."""

    split: Annotated[NonNegative, Field(gt=0, le=0.9)] | None = None
    source: Source | None = None

    @model_validator(mode="after")
    def _one(self) -> "Validation":
        if (self.split is None) == (self.source is None):
            raise ValueError("give either split or source")
        return self


class EarlyStopping(Strict):
    """A run ends when it has waited for *more* than `patience` epochs without a gain.

    Keras ends it at as many, so of its patience, above 0, one less says the same here.
    """

    monitor: Annotated[str, Field(max_length=80)] = "val_loss"
    patience: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    min_delta: NonNegative = 0.0
    mode: Literal["min", "max"] = "min"


class Outer(Strict):
    """The Nesterov step that merges what the workers of a round found."""

    learning_rate: Positive = 0.7
    momentum: Share = 0.9


class Rounds(Strict):
    local_steps: Annotated[int, Field(ge=1, le=1_000_000)]
    # Whether a worker's own optimiser goes on from where it was in its last round, or begins anew.
    # What it keeps all others have to have as well: of Adam, twice the weights in each round.
    inner: Literal["fresh", "kept"] = "fresh"
    outer: Outer = Outer()
    compression: Literal["none", "float16", "int8"] = "none"
    # How many workers a round needs, at least: else whoever leads could do without all others.
    # Left out, it is half of them.
    quorum: Annotated[int, Field(ge=1, le=1024)] | None = None


class Part(Strict):
    """Of all records those that are predicted for: `records` of them, from `first` on."""

    first: Annotated[int, Field(ge=0, lt=MOST_RECORDS)] = 0
    records: Annotated[int, Field(ge=1, le=MOST_RECORDS)]


class Training(Strict):
    """`batch` is what all workers together take in one step; in mode async, what one takes.

    Mode predict trains nothing: its steps go over the records once and in their order.

    `threads` share the sums inside one operation, so that results depend on their number.
    """

    mode: Literal["single", "sync", "rounds", "async", "predict"] = "single"
    workers: Annotated[int, Field(ge=1, le=1024)] = 1
    threads: Annotated[int, Field(ge=1, le=256)] = 1
    batch: Annotated[int, Field(ge=1, le=1_000_000)]
    until: Until
    steps_per_segment: Annotated[int, Field(ge=1, le=1_000_000)] = 100
    seed: Annotated[int, Field(ge=0, le=_LARGEST_SEED)]
    # All modes have both, but predict, which has neither.
    optimizer: Optimizer | None = None
    loss: Loss | None = None
    metrics: Annotated[tuple[Metric, ...], Field(max_length=16)] = ()
    class_weight: (
        Annotated[dict[_ClassLabel, NonNegative], Field(min_length=1, max_length=_MOST_CLASSES)]
        | None
    ) = None
    validation: Validation | None = None
    early_stopping: EarlyStopping | None = None
    rounds: Rounds | None = None
    # In mode predict; all records if left out.
    part: Part | None = None

    @model_validator(mode="after")
    def _agrees(self) -> "Training":
        self._check_kind()
        self._check_mode()
        self._check_metrics()
        if self.class_weight and self.loss and self.loss.type not in WITH_CLASSES:
            raise MisfitError(
                f"{self.loss.type} has no classes; use a weight feature of the records instead",
                "class_weight",
            )
        if self.rounds:
            # Left out, they are what they have to be.
            quorum = self.rounds.quorum or -(-self.workers // 2)
            rounds = self.rounds.model_copy(update={"quorum": quorum})
            length = rounds.local_steps
            return self.model_copy(update={"steps_per_segment": length, "rounds": rounds})
        return self

    @property
    def watched(self) -> tuple[str, ...]:
        """The names of all numbers that a run reports."""
        names = ("loss", *(metric.title for metric in self.metrics))
        return names + tuple(f"val_{name}" for name in names) * bool(self.validation)

    @property
    def shares(self) -> tuple[str, ...]:
        """The names of metrics that are shares of the examples."""
        return tuple(metric.title for metric in self.metrics if metric.counts)

    @property
    def predicts(self) -> bool:
        return self.mode == "predict"

    def _check_kind(self) -> None:
        """Either all that training takes, or nothing of it."""
        if not self.predicts:
            for name in ("optimizer", "loss"):
                if getattr(self, name) is None:
                    raise MisfitError("is missing", name)
            if self.part is not None:
                raise MisfitError("only mode 'predict' has a part of the records", "part")
            return
        for name in _OF_TRAINING:
            if getattr(self, name):
                raise MisfitError("mode 'predict' trains nothing; leave it out", name)
        if self.until.epochs != 1:
            raise MisfitError("mode 'predict' goes over the records once; use 1", "until", "epochs")
        if self.workers != 1:
            raise MisfitError(
                f"{self.workers} workers in mode 'predict'; post a task for each, with its own "
                "part of the records",
                "workers",
            )

    def _check_mode(self) -> None:
        if self.mode == "single" and self.workers != 1:
            raise MisfitError(
                f"{self.workers} workers in mode 'single'; use 'sync' or 'rounds'", "workers"
            )
        if self.mode != "async" and self.batch % self.workers:
            raise MisfitError(
                f"{self.batch} cannot be shared out evenly to {self.workers} workers; "
                f"use {self.batch // self.workers * self.workers or self.workers}",
                "batch",
            )
        if (self.mode == "rounds") != (self.rounds is not None):
            raise MisfitError("mode 'rounds' has this part, and no other has", "rounds")
        is_said = "steps_per_segment" in self.model_fields_set
        if self.rounds and is_said and self.steps_per_segment != self.rounds.local_steps:
            raise MisfitError(
                f"a segment of mode 'rounds' is what a worker does in a round: use "
                f"{self.rounds.local_steps}, or leave it out",
                "steps_per_segment",
            )
        if self.rounds and (self.rounds.quorum or 0) > self.workers:
            raise MisfitError(
                f"a round of {self.workers} workers cannot have {self.rounds.quorum}",
                "rounds",
                "quorum",
            )
        if self.rounds and self.early_stopping:
            raise MisfitError(
                "mode 'rounds' does not stop early, for its merges run no model; use 'until'",
                "early_stopping",
            )

    def _check_metrics(self) -> None:
        taken = {"loss"}
        for number, metric in enumerate(self.metrics):
            if metric.title in taken or metric.title.startswith("val_"):
                raise MisfitError(
                    f"the name {metric.title!r} is taken; give another", "metrics", number
                )
            taken.add(metric.title)
        stopping = self.early_stopping
        if stopping and not self.validation:
            raise MisfitError(
                "there is nothing to stop by without a validation part", "early_stopping"
            )
        watched = [name for name in self.watched if name.startswith("val_")]
        if stopping and stopping.monitor not in watched:
            raise MisfitError(
                f"{stopping.monitor!r} is none of {', '.join(watched)}",
                "early_stopping",
                "monitor",
            )
