"""Who predicts: a model at hand, or the verified result of a task, as a section and its weights."""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard.content.content import Content
from trainyard.engine.state import WEIGHTS, State
from trainyard.protocol.manifest import Manifest, Model
from trainyard.sdk.collecting import collect
from trainyard.sdk.errors import RefusedError
from trainyard.sdk.following import require_settled
from trainyard.sdk.market import Market
from trainyard.sdk.receipts import Receipt
from trainyard.sdk.results import manifest_of

if TYPE_CHECKING:
    from trainyard.protocol.manifest.objectives import Loss, Metric


@dataclass(frozen=True, slots=True)
class Subject:
    """A model as a manifest says it. Its weights are read when they are needed."""

    model: Model
    # For a manifest that predicts with it.
    weights: Callable[[Manifest], State]
    # What it is measured by: a loss, and metrics. An error, where it has none.
    measures: "Callable[[], tuple[Loss, tuple[Metric, ...]]]"


def subject_of(market: Market, given: Any) -> Subject:
    """Of a Keras model, of what `fit` returned, of a receipt, or of the number of a task."""
    if isinstance(given, bool):
        raise RefusedError(f"{given!r} is neither a model nor the number of a task")
    if isinstance(given, int):
        return _of_task(market, given)
    if isinstance(given, Receipt):
        here = market.place
        if (given.chain_id, given.market.lower()) != (here.chain_id, here.market.lower()):
            raise RefusedError(
                f"the receipt is of the market {given.market} on chain {given.chain_id}, and this "
                f"is {here.market} on chain {here.chain_id}: connect to that one"
            )
        return _of_task(market, given.task, given.state)
    return _of_model(given)


def _of_task(market: Market, number: int, state: str | None = None) -> Subject:
    manifest = manifest_of(market, number)
    training = manifest.training
    if training.loss is None:
        raise RefusedError(f"task {number} has predicted, and has trained nothing to predict with")
    loss = training.loss

    def weights(_: Manifest) -> State:
        book = market.read().book
        require_settled(number, book.tasks[number])
        with tempfile.TemporaryDirectory(prefix="trainyard-weights-") as folder:
            found = collect(market, book, number, Path(folder))[1]
        if state is not None and state != f"0x{found.hash.hex()}":
            raise RefusedError(
                f"the receipt says that task {number} came to the state {state}, and it came to "
                f"0x{found.hash.hex()}: verify the receipt"
            )
        return State({key: one for key, one in found.tensors.items() if key.startswith(WEIGHTS)})

    return Subject(manifest.model, weights, lambda: (loss, training.metrics))


def _of_model(given: Any) -> Subject:
    from trainyard.engine.importing import measures_of, model_of
    from trainyard.engine.transplanting import weights_of
    from trainyard.sdk.histories import History

    model = given.model if isinstance(given, History) else given
    return Subject(
        model_of(model), lambda manifest: weights_of(model, manifest), lambda: measures_of(model)
    )


def add_weights(content: Content, state: State) -> str:
    """Put weights into content, for manifests to begin with; their CID."""
    with tempfile.TemporaryDirectory(prefix="trainyard-weights-") as folder:
        path = Path(folder) / "weights.safetensors"
        state.save(path)
        return str(content.add(path).cid)
