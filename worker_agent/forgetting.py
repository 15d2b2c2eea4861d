"""Removes what tasks left here that are over, but for the little that reports are made of."""

import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import NotFoundError
from trainyard.engine.journal import write_whole
from trainyard.protocol.errors import TrainyardError
from worker_agent.jobs import ForgetJob
from worker_agent.past import NOTE, folders
from worker_agent.pinning import PINS, is_noted, pinning, pins_of
from worker_agent.progress import CARD, CLAIM, FAILED, FETCHED, LIVE, MANIFEST, REFUSED, Shelf
from worker_agent.settings import Home, Settings
from worker_agent.shelving import asides

_KEPT = (LIVE, FETCHED, REFUSED, MANIFEST, CLAIM, PINS, NOTE)


def forget(job: ForgetJob, home: Home, settings: Settings, content: Content) -> None:
    """All that can be; one that cannot must not hold up the others."""
    failure: TrainyardError | OSError | None = None
    with pinning(home, alone=True):
        others = [
            shelf
            for one in folders(home.tasks) - job.cards.keys()
            for shelf in (Shelf(home.task(one)), *asides(home, one))
        ]
        needed = {cid for shelf in others for cid in pins_of(shelf)}
        for number, cards in job.cards.items():
            try:
                if settings.content.is_own:
                    shelves = [Shelf(home.task(number)), *asides(home, number)]
                    pinned = {cid for one in shelves for cid in pins_of(one) | _cards(one, cards)}
                    _unpin(content, pinned - needed)
                _put_away(home, number)
            except (TrainyardError, OSError) as error:
                failure = error
        # A node of Kubo's makes room by itself.
        makes_room = settings.content.is_own and isinstance(content.store, EmbeddedStore)
        if makes_room and all(map(is_noted, others)):
            content.gc()
    if failure is not None:
        raise failure


def _cards(shelf: Shelf, others: Iterable[str]) -> set[Cid]:
    """Those of its workers, and our own, which is not among them if we were evicted."""
    own = shelf.read(CARD)
    digests = [*others, *([] if own is None else [own["digest"]])]
    return {Cid(Codec.RAW, bytes.fromhex(one)) for one in digests}


def _unpin(content: Content, cids: set[Cid]) -> None:
    for cid in cids:
        with suppress(NotFoundError):
            content.unpin(cid)


def _put_away(home: Home, number: int) -> None:
    folder, record = home.task(number), home.past(number)
    for name in (*_KEPT, *_failures(folder)):
        path = folder / name
        if path.is_file():
            (record / name).parent.mkdir(parents=True, exist_ok=True)
            write_whole(record / name, path.read_bytes())
    # Last the folder of the number: what is put aside would come back where it is missing.
    for gone in (*(one.folder for one in asides(home, number)), folder):
        if gone.is_dir():
            # In one step: a folder of which only a part is left would be taken for a task's.
            left = home.scratch / f"forgotten-{number}-{os.getpid()}"
            left.parent.mkdir(parents=True, exist_ok=True)
            gone.rename(left)
            shutil.rmtree(left)


def _failures(folder: Path) -> list[str]:
    return [f"{FAILED}/{path.name}" for path in (folder / FAILED).glob("[!.]*.json")]
