"""Which task the folder of a number is of, and what becomes of it when a reorg changes that.

What was done for one task is not done for another: its claim would convict us there. So a folder
says of which task it is, and is put aside when its number has another one, from where it comes back
when the chain goes back.
"""

import os
import shutil
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import structlog

from trainyard.engine.journal import write_whole
from trainyard.protocol.errors import TransientError
from trainyard.protocol.ledger.book import Book, Task
from worker_agent.children import Children
from worker_agent.past import folders
from worker_agent.postings import posting_of
from worker_agent.progress import CARD, MANIFEST, NONE, PEER, Progress, Shelf
from worker_agent.settings import Home

NOTE = "posting.json"
_NAME_LETTERS = 16


class OtherTaskError(TransientError):
    """The folder of a number is still that of the task which had it before."""

    def __init__(self, number: int) -> None:
        super().__init__(f"the folder of task {number} is of another task of that number")


def progress_of(shelf: Shelf, task: Task) -> Progress:
    """How far we are with a task; what lies there of another one says nothing of it."""
    return shelf.progress() if is_of(shelf, task) else NONE


def is_of(shelf: Shelf, task: Task) -> bool:
    """Whether a folder is of this task, or not of any yet."""
    noted = _noted(shelf)
    if noted is not None:
        return noted == posting_of(task)
    # Agents of earlier versions made no notes.
    digest = _manifest(shelf)
    return digest is None or digest == task.terms.manifest


def asides(home: Home, number: int) -> Iterator[Shelf]:
    """The folders of tasks that had this number before a reorg."""
    if home.aside.is_dir():
        yield from map(Shelf, sorted(home.aside.glob(f"{number}-*")))


class Shelving:
    def __init__(self, home: Home, children: Children) -> None:
        self._home, self._children = home, children
        # Whose folders are known to be of the right task: files are slow to read.
        self._sorted: dict[int, str] = {}

    def sort(self, book: Book) -> None:
        """Put aside what is of another task than its number now has, and end what runs there."""
        here = folders(self._home.tasks)
        aside = self._home.aside
        away = {int(one.partition("-")[0]) for one in (os.listdir(aside) if aside.is_dir() else ())}
        self._sorted = {number: one for number, one in self._sorted.items() if number in here}
        for number in here | away:
            task = book.tasks.get(number)
            if task is None or self._sorted.get(number) == posting_of(task):
                continue
            if number not in here or not is_of(self._shelf(number), task):
                self._change(number, task)
            self._sorted[number] = posting_of(task)

    def claim(self, number: int, task: Task) -> None:
        """Note whose the folder of a task is before anything comes into it."""
        shelf = self._shelf(number)
        if not is_of(shelf, task):
            raise OtherTaskError(number)
        if _noted(shelf) is None:
            shelf.write({"posting": posting_of(task)}, NOTE)

    def _change(self, number: int, task: Task) -> None:
        for work in self._children.of(number):
            self._children.stop(number, work)
        folder = self._home.task(number)
        if folder.is_dir():
            _move(folder, self._place(number, _name_of(Shelf(folder))))
            structlog.get_logger().warning("another task has its number", task_id=number)
        before = self._place(number, posting_of(task))
        # With its note from the beginning, so that a crash leaves nothing that is of no task.
        fresh = before if before.is_dir() else self._home.scratch / f"fresh-{number}"
        shelf = Shelf(fresh)
        shelf.write({"posting": posting_of(task)}, NOTE)
        for other in asides(self._home, number):
            _keep_card(other, shelf)
        _move(fresh, folder)

    def _place(self, number: int, name: str) -> Path:
        return self._home.aside / f"{number}-{name[:_NAME_LETTERS]}"

    def _shelf(self, number: int) -> Shelf:
        return Shelf(self._home.task(number))


def _keep_card(other: Shelf, shelf: Shelf) -> None:
    """A card names the number and not what was posted: who is in the task is known by it there."""
    card = other.path(CARD)
    if card.exists() and not shelf.path(CARD).exists():
        # The key first: what the card says must not be there without it.
        shutil.copytree(other.path(PEER), shelf.path(PEER), dirs_exist_ok=True)
        write_whole(shelf.path(CARD), card.read_bytes())


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.is_dir():
        shutil.rmtree(target)
    source.rename(target)


def _noted(shelf: Shelf) -> str | None:
    note = shelf.read(NOTE)
    return None if note is None else str(note["posting"])


def _name_of(shelf: Shelf) -> str:
    return _noted(shelf) or (_manifest(shelf) or b"").hex()


def _manifest(shelf: Shelf) -> bytes | None:
    """The digest of the manifest that lies there."""
    try:
        return sha256(shelf.path(MANIFEST).read_bytes()).digest()
    except (FileNotFoundError, NotADirectoryError):
        return None
