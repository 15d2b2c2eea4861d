"""What a task was about and came to, for those who have no model at hand: without TensorFlow."""

from pathlib import Path

import numpy as np

from trainyard.chain.keystore import KeystoreError
from trainyard.content.cid import Cid, Codec
from trainyard.engine.asking import ask_confined
from trainyard.engine.claims import ClaimedRun
from trainyard.engine.model_files import ExportJob
from trainyard.engine.predictions import read_predictions
from trainyard.protocol.manifest import Manifest
from trainyard.sdk.errors import TaskFailedError
from trainyard.sdk.following import Known
from trainyard.sdk.market import Market
from trainyard.sdk.receipts import Receipt, receipt_of

_MODULE = "trainyard.engine.model_files"


def manifest_of(market: Market, number: int) -> Manifest:
    """The manifest of a task, by the digest on chain."""
    return known_task(market, number)[1]


def known_task(market: Market, number: int) -> tuple[Known, Manifest]:
    """What a task of which there is only the number is known by from now on, and its manifest."""
    task = market.client.task(number)
    if task is None:
        raise TaskFailedError(
            number, f"is not there: the market has {market.client.task_count()} tasks"
        )
    block = market.content.fetcher.get(Cid(Codec.RAW, task.terms.manifest)).block
    return Known(task.terms.manifest, task.requester), Manifest.parse(bytes(block))


def signed_receipt(market: Market, number: int, state: bytes | None) -> Receipt:
    """The receipt of a task as the chain tells it; signed, if it is our own task."""
    reading, place = market.read(), market.place
    receipt = receipt_of(
        reading.events,
        reading.book,
        number,
        chain_id=place.chain_id,
        market=place.market,
        start_block=place.start_block,
        state=state,
    )
    if market.owner != receipt.requester:
        return receipt
    try:
        return receipt.signed(market.account)
    except KeystoreError:
        # Nobody is there to be asked for the password; a result is not to be lost for that.
        return receipt


def save_predictions(run: ClaimedRun, target: Path) -> None:
    """What a task has predicted, as an `.npy` file."""
    np.save(target, read_predictions(run.published))


def export_model(market: Market, run: ClaimedRun, folder: Path, target: Path) -> None:
    """The trained model as a `.keras` file, made of its verified state in the sandbox."""
    folder = folder.resolve()
    manifest, made = folder / "manifest.json", folder / "made"
    manifest.write_bytes(run.published.manifest.canonical)
    made.mkdir()
    state = run.published.state(run.last).resolve()
    job = ExportJob(manifest=manifest, state=state, target=made / "model.keras")
    ask_confined(
        _MODULE, job, folder, market.confinement(), readable=[manifest, state], writable=[made]
    )
    target.write_bytes((made / "model.keras").read_bytes())
