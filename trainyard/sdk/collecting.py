"""The result of a settled task: nothing is taken that the chain does not have the hash of."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from trainyard.content.errors import BlockNotFoundError, NotFoundError, UnavailableError
from trainyard.engine.claims import ClaimedRun, open_claimed
from trainyard.engine.state import State
from trainyard.protocol.commitments import Claim
from trainyard.protocol.ledger.book import Book, Task
from trainyard.sdk.errors import TaskFailedError
from trainyard.sdk.market import Market

_AGAIN_S = 0.5
# Workers publish a run when the auditors have answered, which is before it is settled.
_PATIENCE_S = 120.0

Read = TypeVar("Read")


def claim_of(number: int, task: Task) -> Claim:
    """The claim that was verified and paid for."""
    claim = task.slots[task.lead].claim
    if claim is None:
        raise TaskFailedError(number, "has no claim: its workers have submitted nothing yet")
    return claim


def collect(market: Market, book: Book, number: int, folder: Path) -> tuple[ClaimedRun, State]:
    """The run behind the claim of a settled task, and its last state, verified to the bytes."""
    return collect_from(
        market, book, number, folder, lambda run: (run, State.load(run.published.state(run.last)))
    )


def collect_from(
    market: Market, book: Book, number: int, folder: Path, read: Callable[[ClaimedRun], Read]
) -> Read:
    """What `read` takes from the run behind the claim of a settled task.

    The chain has the digest of the result and the root of the trace; the result names the run by
    its CID, the run's trace has that root, and each state has the hash that the trace has of it.
    """
    task = book.tasks[number]
    claim = claim_of(number, task)
    market.ask_workers(book, number)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            run = open_claimed(market.content, task.terms.manifest, claim, folder)
            return read(run)
        except (UnavailableError, NotFoundError, BlockNotFoundError):
            if time.monotonic() > deadline:
                raise
            time.sleep(_AGAIN_S)
