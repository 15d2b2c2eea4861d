"""What was pinned for which task: runs of like manifests are the same content, and pinned once."""

import fcntl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from trainyard.content.cid import Cid
from worker_agent.progress import CLAIM, Shelf
from worker_agent.settings import Home

PINS = "pins.json"


@contextmanager
def pinning(home: Home, *, alone: bool = False) -> Iterator[None]:
    """To pin and note it, or to look at all notes and unpin, which is done `alone`."""
    with (home.folder / "pins.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield


def note_pins(shelf: Shelf, cids: Iterable[Cid]) -> None:
    """Add to what is known to be pinned for a task."""
    known = pins_of(shelf) | set(cids)
    shelf.write({"cids": sorted(map(str, known))}, PINS)


def pins_of(shelf: Shelf) -> set[Cid]:
    found = shelf.read(PINS) or {"cids": ()}
    return {Cid.parse(one) for one in found["cids"]}


def is_noted(shelf: Shelf) -> bool:
    """Whether all that this task serves is pinned: what others do not know they may remove."""
    return shelf.read(CLAIM) is None or shelf.read(PINS) is not None
