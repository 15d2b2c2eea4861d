"""`trainyard predict`: what a trained model makes of records, computed on the market."""

from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trainyard.cli.arrays import open_arrays
from trainyard.cli.failing import WrongUseError
from trainyard.cli.market import Site, at_market

if TYPE_CHECKING:
    from trainyard.sdk.predicting import PredictWishes


@at_market
def predict(
    site: Site,
    number: Annotated[int, typer.Argument(min=1, help="The task that trained the model.")],
    data: Annotated[
        str, typer.Argument(help="Records: an .npy or .npz file, or the CID of a data set.")
    ],
    target: Annotated[Path, typer.Argument(help="An .npy file to write.", dir_okay=False)],
    workers: Annotated[int, typer.Option(min=1, help="Slices, each for a worker.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="Records that are taken at once.")] = 32,
    verify: Annotated[str, typer.Option(help="audit:K or replicate:M.", metavar="HOW")] = "audit",
    budget: Annotated[
        str | None, typer.Option(help='The most that may be locked, such as "0.5 ETH".')
    ] = None,
    reward: Annotated[
        str | None, typer.Option(help='For each worker, such as "0.1 ETH"; else what others pay.')
    ] = None,
    deadline: Annotated[
        int | None, typer.Option(min=1, help="Seconds that predicting may take.")
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Whatever it costs, where there is no --budget.")
    ] = False,
) -> None:
    """Predict for records with the model of a settled task, and wait for the answers.

    They are written in the order of the records, verified as a training is. Example:
    'trainyard predict 7 images.npy answers.npy --workers 4 --budget "0.5 ETH"'.
    """
    if target.suffix != ".npy":
        raise WrongUseError(f"{target}: predictions are written as .npy")
    _check_writable(target)
    if budget is None and not yes:
        raise WrongUseError("money would be locked: give a --budget, or say --yes")
    records = _records(data)
    wishes: PredictWishes = {"workers": workers, "batch_size": batch, "verify": verify}
    if budget is not None:
        wishes["budget"] = budget
    if reward is not None:
        wishes["reward"] = reward
    if deadline is not None:
        wishes["deadline"] = deadline
    with site.open() as market:
        import numpy as np

        from trainyard.sdk.predicting import answers

        found = answers(market, number, records, wishes, verbose=0 if site.output.as_json else 1)
        tasks, rows = list(found.tasks), found.rows
        told = ", ".join(map(str, tasks))
        try:
            np.save(target, rows)
        except OSError as error:
            error.add_note(f"trainyard.predictions({told}) has the answers, which are paid for")
            raise
    document = {
        "task": number,
        "tasks": tasks,
        "file": str(target),
        "shape": list(rows.shape),
        "dtype": str(rows.dtype),
    }
    site.output.result(
        document, [f"{target}: predictions for {len(rows)} records, as tasks {told}"]
    )


def _check_writable(target: Path) -> None:
    """Told before anything is paid for."""
    try:
        if target.exists():
            target.open("r+b").close()
        else:
            with NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}."):
                pass
    except OSError as error:
        raise WrongUseError(
            f"{target} cannot be written ({error.strerror}): make its folder, or name another file"
        ) from error


def _records(data: str) -> Any:
    if data.endswith(".npy"):
        [found] = open_arrays([f"x={data}"]).values()
        return found
    if data.endswith(".npz"):
        arrays = open_arrays([data])
        return arrays if len(arrays) > 1 else next(iter(arrays.values()))
    return data
