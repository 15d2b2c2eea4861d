"""The manifest: one document that fully determines a training run."""

from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from trainyard.protocol.manifest.canonical import canonical, digest, read_json
from trainyard.protocol.manifest.data import Data, Source, StateCid
from trainyard.protocol.manifest.errors import ManifestError, MisfitError
from trainyard.protocol.manifest.explaining import explain
from trainyard.protocol.manifest.model import MOST_ACTIVATIONS, Model
from trainyard.protocol.manifest.plan import Plan, PredictPlan, RoundsPlan
from trainyard.protocol.manifest.training import MOST_SEGMENTS, Part, Training
from trainyard.protocol.manifest.values import MOST_STEPS, Strict

# Values of a whole batch that training holds at one worker: 8 GB of them.
MOST_VALUES = 2_000_000_000
_MOST_EVALUATED = 1_000
# Of the predictions of one segment, which are one state: it is held in memory as a whole.
MOST_PREDICTED_BYTES = 256 << 20
# Of one value, at most.
_PREDICTED_BYTES = 8


class Resources(Strict):
    """What a worker should have to take the task; it may refuse with less."""

    cores: Annotated[int, Field(ge=1, le=4096)] | None = None
    memory_bytes: Annotated[int, Field(ge=1, le=2**50)] | None = None
    disk_bytes: Annotated[int, Field(ge=1, le=2**50)] | None = None


class Manifest(Strict):
    version: Literal[1]
    model: Model
    data: Data
    training: Training
    initial_state: StateCid | None = None
    environment: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None
    resources: Resources | None = None

    @classmethod
    def parse(cls, text: bytes | str) -> "Manifest":
        """The manifest that `text` is, or ManifestError with the place and the reason."""
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        read_json(data)
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise explain(cls, error) from None

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Manifest":
        """The manifest of a document made in Python."""
        try:
            return cls.parse(canonical(document))
        except ManifestError:
            raise
        except (ValueError, RecursionError) as error:
            raise ManifestError("", str(error)) from None

    @cached_property
    def canonical(self) -> bytes:
        """The one text of this manifest, with all that was left out filled in."""
        return canonical(self.model_dump(mode="json", by_alias=True, exclude_none=True))

    @property
    def digest(self) -> bytes:
        return digest(self.canonical)

    @cached_property
    def plan(self) -> Plan:
        training, records = self.training, self.data.train.records
        if training.predicts:
            part = training.part or Part(records=records)
            steps = -(-part.records // training.batch)
            length = (part.records, 0, training.batch, steps, training.steps_per_segment)
            return PredictPlan(*length, part.first)
        held_out = 0
        if training.validation and training.validation.split:
            # As the decimal says: 0.29 of 100 are 29, which floats would make 28.
            held_out = int(Fraction(repr(training.validation.split)) * records)
        kept = records - held_out
        if training.until.steps is not None:
            steps = training.until.steps
        else:
            steps = -(-(training.until.epochs or 0) * kept // training.batch)
        length = (kept, held_out, training.batch, steps, training.steps_per_segment)
        if training.rounds is None:
            return Plan(*length)
        return RoundsPlan(*length, training.workers, training.rounds.inner == "kept")

    @property
    def evaluation_batch(self) -> int:
        """How many records are evaluated at once: fewer of those that a model makes much of.

        Sums depend on it, and early stopping on them, so it is not for a machine to choose.
        """
        return max(1, min(_MOST_EVALUATED, MOST_ACTIVATIONS // self.model.activations))

    @model_validator(mode="after")
    def _agrees(self) -> "Manifest":
        self._check_source(self.data.train, "data", "train")
        if self.data.test:
            self._check_source(self.data.test, "data", "test")
        validation = self.training.validation
        if validation and validation.source:
            self._check_source(validation.source, "training", "validation", "source")
        self._check_plan()
        self._check_kind()
        self._check_classes()
        self._check_score()
        return self

    def _check_source(self, source: Source, *path: str | int) -> None:
        inputs = self.model.inputs
        if len(source.inputs) != len(inputs):
            raise MisfitError(
                f"{len(source.inputs)} features for a model of {len(inputs)} inputs",
                *path,
                "inputs",
            )
        for number, (name, given) in enumerate(zip(source.inputs, inputs, strict=True)):
            found = source.features[name].tensor
            if found != given.tensor:
                raise MisfitError(
                    f"the feature {name!r} is {found}, the input {given.name!r} {given.tensor}",
                    *path,
                    "inputs",
                    number,
                )
        if self.training.predicts:
            return
        if source.target is None:
            raise MisfitError("is missing", *path, "target")
        target = source.features[source.target].tensor
        objectives = (self.training.loss, *self.training.metrics)
        for objective in (one for one in objectives if one is not None):
            try:
                objective.check(target, self.model.output)
            except ValueError as error:
                raise MisfitError(f"{objective.type} {error}", *path, "target") from error

    def _check_plan(self) -> None:
        plan = self.plan
        validation = self.training.validation
        if validation and validation.split and not plan.held_out:
            raise MisfitError("holds out no record at all", "training", "validation", "split")
        # A prediction has a short batch at its end, which may be all there is.
        if plan.batch > plan.train_records and not self.training.predicts:
            raise MisfitError(
                f"{plan.batch} is more than the {plan.train_records} records to train on",
                "training",
                "batch",
            )
        at_once = 1 if self.training.mode == "async" else self.training.workers
        share = plan.batch // at_once
        if share * self.model.activations > MOST_VALUES:
            raise MisfitError(
                f"{share} examples of {self.model.activations} values each, where one worker holds "
                f"at most {MOST_VALUES}; use a batch of "
                f"{MOST_VALUES // self.model.activations * at_once}",
                "training",
                "batch",
            )
        if plan.steps > MOST_STEPS:
            raise MisfitError(
                f"{plan.steps} steps, where at most {MOST_STEPS} are run", "training", "until"
            )
        if plan.segments > MOST_SEGMENTS:
            raise MisfitError(
                f"{plan.segments} segments, where at most {MOST_SEGMENTS} are; make them longer",
                "training",
                "steps_per_segment",
            )

    def _check_kind(self) -> None:
        if not self.training.predicts:
            if self.model.trainable_parameters == 0:
                raise MisfitError("no layer has weights to train", "model")
            return
        if self.data.test:
            raise MisfitError("mode 'predict' tests nothing; leave it out", "data", "test")
        part, there = self.training.part, self.data.train.records
        if part and part.first + part.records > there:
            raise MisfitError(
                f"records {part.first} to {part.first + part.records - 1}, and there are {there}",
                "training",
                "part",
            )
        if self.predicted_bytes > MOST_PREDICTED_BYTES:
            raise MisfitError(
                f"the predictions of a segment take {self.predicted_bytes} bytes, where at most "
                f"{MOST_PREDICTED_BYTES} are; use fewer steps, or a smaller batch",
                "training",
                "steps_per_segment",
            )

    @property
    def predicted_bytes(self) -> int:
        """What the predictions of the longest segment take; nothing where none are made."""
        plan = self.plan
        if not isinstance(plan, PredictPlan):
            return 0
        return plan.rows(0) * self.model.output.size * _PREDICTED_BYTES

    @property
    def classes(self) -> int:
        """How many classes an example may be of, where a loss has classes."""
        outputs = self.model.output.shape[-1]
        return 2 if self._is_binary else outputs

    @property
    def _is_binary(self) -> bool:
        loss = self.training.loss
        return loss is not None and loss.type == "BinaryCrossentropy"

    def _check_classes(self) -> None:
        loss, output = self.training.loss, self.model.output
        if loss is None:
            return
        has_many = output.rank != 1 or (self._is_binary and output.shape[-1] != 1)
        if has_many and self.training.class_weight:
            raise MisfitError(
                "one example has many classes here; use a weight feature of the records instead",
                "training",
                "class_weight",
            )
        for label in self.training.class_weight or {}:
            if int(label) >= self.classes:
                raise MisfitError(
                    f"there is no class {label}: {loss.type} has {self.classes} here",
                    "training",
                    "class_weight",
                )

    def _check_score(self) -> None:
        if self.training.mode == "async" and not (self.data.test or self.training.validation):
            raise MisfitError(
                "'async' cannot be replayed and is scored instead, and there is nothing to score "
                "it by; give data.test or training.validation, or use 'sync' or 'rounds'",
                "training",
                "mode",
            )
