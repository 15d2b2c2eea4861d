"""`TFOptimizer`: a model trained by the market on a data set of Spark's."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import keras

from trainyard.sdk.errors import RefusedError
from trainyard.sdk.fitting import Wishes, fit
from trainyard.sdk.histories import listed
from trainyard.sdk.market import Market
from trainyard.sdk.showing import Verbose
from trainyard.spark import checkpoints
from trainyard.spark.checkpoints import Checkpoint
from trainyard.spark.context import market_or_found
from trainyard.spark.losses import aim_of, dataset_of, is_loss
from trainyard.spark.summaries import Scribe, TrainSummary
from trainyard.spark.triggers import MaxEpoch, Trigger, steps_of

if TYPE_CHECKING:
    from trainyard.sdk.histories import History
    from trainyard.spark.dataset import TFDataset

# What is said in another place.
_ELSEWHERE = {
    "epochs": "give optimize(end_trigger=MaxEpoch(count))",
    "steps": "give optimize(end_trigger=MaxIteration(count))",
    "batch_size": "it is the data set's",
    "validation_data": "give val_dataset, a TFDataset",
    "validation_split": "give val_dataset, a TFDataset",
    "sample_weight": "leave it out",
}
_FIRST_SEED = 1


class TFOptimizer:
    """Trains on the market what is given here; only verified weights come back.

    `model_or_loss` is a compiled Keras model, or a loss that was computed of `dataset.tensors` with
    `keras.ops`. `optimizer` takes the place of the one that a model was compiled with. A model that
    was not built of `dataset.tensors` needs its `dataset`. All that `trainyard.fit` can be told
    beside that can be told here too: `workers`, `mode`, `verify`, `budget` and more.
    """

    def __init__(
        self,
        model_or_loss: Any,
        optimizer: Any = None,
        dataset: "TFDataset | None" = None,
        *,
        val_dataset: "TFDataset | None" = None,
        metrics: list[Any] | None = None,
        market: Market | None = None,
        verbose: Verbose = "auto",
        **wishes: Unpack[Wishes],
    ) -> None:
        for name, instead in _ELSEWHERE.items():
            if name in wishes:
                raise RefusedError(f"{name} is not said here: {instead}")
        if is_loss(model_or_loss):
            aim = aim_of(model_or_loss)
            if dataset not in (None, aim.dataset):
                raise RefusedError("the loss is of the tensors of another data set: leave it out")
            self.model, self.dataset = aim.model, aim.dataset
            if optimizer is None:
                raise RefusedError("optimizer: a loss alone does not say by what it is minimised")
            self.model.compile(optimizer, aim.loss, metrics=metrics or [])
        else:
            self.model, self.dataset = model_or_loss, _found(model_or_loss, dataset)
            _compile_anew(self.model, optimizer, metrics)
        if self.dataset.target is None:
            raise RefusedError(
                "the data set has inputs alone: name a target where it is made, to train towards"
            )
        self._market, self._verbose, self._wishes = market, verbose, wishes
        self._validation = val_dataset
        self._summary: TrainSummary | None = None
        self._folder: Path | None = None
        # Steps that lie behind the weights which the model has now.
        self.steps = 0

    def set_train_summary(self, summary: TrainSummary) -> "TFOptimizer":
        """Have what the workers tell of the loss written for TensorBoard."""
        self._summary = summary
        return self

    def set_checkpoint(self, folder: Path | str) -> "TFOptimizer":
        """Have each verified result saved as `model.<steps>.keras`."""
        self._folder = Path(folder).expanduser()
        return self

    def load_checkpoint(self, folder: Path | str, steps: int | None = None) -> Checkpoint:
        """Go on from a checkpoint: from the last one, or from that after so many steps.

        The weights go on, and triggers count from there. The optimiser's moments begin anew, as
        those of every task do.
        """
        found = checkpoints.load(Path(folder).expanduser(), self.model, steps)
        self.steps = found.steps
        return found

    def optimize(self, end_trigger: Trigger = MaxEpoch(1)) -> "History":  # noqa: B008
        """Train until `end_trigger`; the model then has the verified weights.

        Called again, it trains on from them.
        """
        data = self.dataset
        records, batch = len(data), data.batch_size
        wishes: Wishes = {**self._wishes, "batch_size": batch}
        until = end_trigger.until(self.steps, records, batch)
        wishes.update(until)  # type: ignore[typeddict-item]
        if self._validation is not None:
            wishes["validation_data"] = (self._validation.cid, self._validation.target)
        if self.steps:
            wishes["fresh_optimizer"] = True
            # Else the same records would come in the same order again.
            wishes["seed"] = self._wishes.get("seed", _FIRST_SEED) + self.steps
        if self._folder is not None:
            # Before anything is paid that could not be kept.
            checkpoints.make_folder(self._folder)
        with market_or_found(self._market) as market:
            if self._summary is not None:
                _require_page(market)
                scribe = Scribe(
                    self._summary,
                    first=self.steps,
                    last=self.steps + steps_of(until, records, batch),
                    records=records,
                    batch=batch,
                )
                wishes["callbacks"] = [*listed(self._wishes.get("callbacks")), scribe]
            history = fit(market, self.model, data.cid, data.target, wishes, verbose=self._verbose)
        # Fewer than were asked for, if it stopped early.
        self.steps += history.steps
        if self._folder is not None:
            self._save(self._folder, history)
        return history

    def _save(self, folder: Path, history: "History") -> None:
        number = history.task
        try:
            checkpoints.save(
                folder,
                self.model,
                steps=self.steps,
                task=number,
                state=history.receipt.state or "",
                data=self.dataset.cid,
            )
        except Exception as error:
            error.add_note(
                f"the model has the verified weights of task {number}, which is paid for; "
                f"trainyard.attach({number}) brings them back"
            )
            raise


def _found(model: Any, dataset: "TFDataset | None") -> "TFDataset":
    if not isinstance(model, keras.Model):
        raise RefusedError(
            f"{type(model).__name__} is neither a Keras model nor a loss made of dataset.tensors"
        )
    found = dataset or dataset_of(model)
    if found is None:
        raise RefusedError(
            "dataset: the model was not built of a data set's tensors, so it has to be given"
        )
    return found


def _compile_anew(model: Any, optimizer: Any, metrics: list[Any] | None) -> None:
    if not getattr(model, "compiled", False):
        raise RefusedError("the model is not compiled: compile it with an optimizer and a loss")
    if metrics is not None:
        raise RefusedError("metrics: a model is compiled with them; they go with a loss alone")
    if optimizer is None:
        return
    chosen = keras.saving.serialize_keras_object(keras.optimizers.get(optimizer))
    model.compile_from_config({**model.get_compile_config(), "optimizer": chosen})


def _require_page(market: Market) -> None:
    if market.place.page is None:
        raise RefusedError(
            "this market has no page, to which workers tell of their loss, so there would be "
            "nothing in the summary: name the page in the profile or by connect(page=...), start a "
            "devnet with --dapp, or leave set_train_summary out"
        )
