"""The public functions of `trainyard`, each on a market that is found if none is given.

Here, and not in the SDK, it is decided which sandbox there is.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from trainyard.sdk import connecting
from trainyard.sdk.market import Market
from trainyard.sdk.showing import Verbose

if TYPE_CHECKING:
    import numpy.typing as npt

    from trainyard.engine.confining import Confinement
    from trainyard.sdk.fitting import Wishes
    from trainyard.sdk.histories import History
    from trainyard.sdk.predicting import PredictWishes
    from trainyard.sdk.quoting import Quote

# That a script may leave behind: its arrays.
_SCRIPT_BYTES = 2 << 30


def sandbox() -> "Confinement":
    """Bubblewrap, as an agent has it; an error that says how to get it where there is none."""
    from worker_agent.limits import Limits
    from worker_agent.sandbox import Sandbox

    return Sandbox(Limits(wall_s=600.0))


def script_sandbox(seconds: float) -> "Confinement":
    """The same for a file of Python of one's own or a stranger's, for so long and no longer."""
    from worker_agent.limits import Limits
    from worker_agent.sandbox import Sandbox

    return Sandbox(Limits(wall_s=seconds, disk_bytes=_SCRIPT_BYTES))


def connect(
    where: str | None = None,
    *,
    market: str | None = None,
    chain_id: int | None = None,
    start_block: int = 0,
    gateways: Sequence[str] = (),
    store: Path | None = None,
    kubo: str | None = None,
    keystore: Path | str | None = None,
    password_file: Path | str | None = None,
    page: str | None = None,
    folder: Path | str | None = None,
) -> Market:
    """A market to train on: the user's default profile, else the devnet of this machine.

    `where` is the name of a profile, "devnet", that of this machine or of a `folder`, or the
    address of an RPC endpoint, with the `market` on it. What goes with it is told at
    `trainyard.sdk.connecting.connect`.
    """
    return connecting.connect(
        where,
        market=market,
        chain_id=chain_id,
        start_block=start_block,
        gateways=gateways,
        store=store,
        kubo=kubo,
        keystore=keystore,
        password_file=password_file,
        page=page,
        folder=folder,
        confinement=sandbox,
    )


def fit(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    market: Market | None = None,
    verbose: Verbose = "auto",
    **wishes: "Unpack[Wishes]",
) -> "History":
    """Train a compiled Keras model on the market, as `model.fit` would here.

    `x` and `y` are arrays; or `x` is a `tf.data.Dataset`, a generator of batches with a length, or
    a CID whose feature `y` is the target. What else can be said: `validation_data`, `epochs`,
    `batch_size`, `workers`, `mode`, `verify`, `budget`, `deadline`, `callbacks` and more, see
    `trainyard.sdk.fitting.Wishes`.

    The weights and the optimiser of this very model are those of the verified result when it comes
    back; `history.receipt` says what was trained, checked and paid. What no manifest can say is
    refused before any money moves. Ctrl-C detaches: `attach` comes back.
    """
    from trainyard.sdk.fitting import fit as fit_on

    with _on(market) as one:
        return fit_on(one, model, x, y, wishes, verbose=verbose)


def attach(
    task: int,
    model: Any = None,
    *,
    market: Market | None = None,
    callbacks: Sequence[Any] = (),
    verbose: Verbose = "auto",
) -> "History":
    """Come back to a task, also from another process or machine, and wait for its end.

    The result goes into `model`, which has to be the one that was posted; without, a new one is
    made of the task's manifest, and is `history.model`.
    """
    from trainyard.sdk.fitting import attach as attach_on

    with _on(market) as one:
        return attach_on(one, task, model, callbacks=callbacks, verbose=verbose)


def quote(
    model: Any,
    x: Any,
    y: Any = None,
    *,
    market: Market | None = None,
    rehearse: bool = True,
    **wishes: "Unpack[Wishes]",
) -> "Quote":
    """What `fit` with the same arguments would cost, how long it takes, how surely a cheat is
    found, and the worst case. Nothing is paid; one batch is trained in the local sandbox."""
    from trainyard.sdk.fitting import prepare
    from trainyard.sdk.quoting import quote_for

    with _on(market) as one:
        return quote_for(one, prepare(one, model, x, y, wishes), with_rehearsal=rehearse)


def predict(
    model_or_result: Any,
    x: Any,
    *,
    market: Market | None = None,
    verbose: Verbose = "auto",
    **wishes: "Unpack[PredictWishes]",
) -> "npt.NDArray[Any]":
    """What a model makes of each record of `x`, computed by workers and verified as `fit` is.

    Who predicts is a Keras model, what `fit` returned, a receipt of it, or the number of its task.
    `x` is arrays, a `tf.data.Dataset`, a generator of batches with a length, or a CID; the answers
    have the order of the records, as `model.predict` would give them. What else can be said:
    `workers`, `batch_size`, `verify`, `budget`, `deadline` and more, see
    `trainyard.sdk.predicting.PredictWishes`.

    Each worker has a task of its own. Those that fail are named, and their money is credited.
    """
    from trainyard.sdk.predicting import predict as predict_on

    with _on(market) as one:
        return predict_on(one, model_or_result, x, wishes, verbose=verbose)


def evaluate(
    model_or_result: Any,
    x: Any,
    y: Any = None,
    *,
    market: Market | None = None,
    verbose: Verbose = "auto",
    **wishes: "Unpack[PredictWishes]",
) -> dict[str, float]:
    """Loss and metrics of a model on records, computed here from what `predict` brings.

    `y` is arrays; for records by their CID the name of the target; and left out for a data set
    that brings its targets along. No worker sees them.
    """
    from trainyard.sdk.predicting import evaluate as evaluate_on

    with _on(market) as one:
        return evaluate_on(one, model_or_result, x, y, wishes, verbose=verbose)


def predictions(
    *tasks: int, market: Market | None = None, verbose: Verbose = "auto"
) -> "npt.NDArray[Any]":
    """Come back to the tasks of `predict`, in the order of their slices, and wait for their end."""
    from trainyard.sdk.predicting import predictions as predictions_on

    with _on(market) as one:
        return predictions_on(one, tasks, verbose=verbose)


@contextmanager
def _on(market: Market | None) -> Iterator[Market]:
    """The market given, or one that is found and closed afterwards."""
    if market is not None:
        yield market
        return
    with connect() as found:
        yield found
