"""Tasks that are over: since when, and which of them nobody has to look at any more."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from trainyard.protocol.ledger.book import Book
from worker_agent.progress import Shelf
from worker_agent.settings import Home
from worker_agent.situation import ENDED, Ended

NOTE = "ended.json"


class Past:
    """Knows of ended tasks whose folders are here. Files are looked at once for each."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._ended: dict[int, Ended] = {}
        # Of those, whose files say nothing more.
        self.at_rest: set[int] = set()

    def look(self, book: Book, now: int, block: int) -> Mapping[int, Ended]:
        """Since when each has been seen to be over, by the chain's time and its head."""
        here = folders(self._home.tasks)
        for number in [*self._ended]:
            if number not in here or not _has_ended(book, number):
                # Forgotten, or the chain has taken its end back.
                del self._ended[number]
                self.at_rest.discard(number)
                if number in here:
                    self._home.task(number).joinpath(NOTE).unlink(missing_ok=True)
        for number in here:
            if number not in self._ended and _has_ended(book, number):
                self._ended[number] = self._note(number, now, block)
        return dict(self._ended)

    def _note(self, number: int, now: int, block: int) -> Ended:
        shelf = Shelf(self._home.task(number))
        known = shelf.read(NOTE)
        if known is not None:
            return Ended(**known)
        found = Ended(now, block)
        # On a full disk most of all, looking must not fail: it is known until the next start.
        with suppress(OSError):
            shelf.write(asdict(found), NOTE)
        return found


def folders(path: Path) -> set[int]:
    """The tasks that have a folder in `path`."""
    if not path.is_dir():
        return set()
    with os.scandir(path) as found:
        return {int(one.name) for one in found if one.name.isdecimal() and one.is_dir()}


def _has_ended(book: Book, number: int) -> bool:
    task = book.tasks.get(number)
    return task is not None and task.state in ENDED
