"""Which task a number is of: a reorg that brings posts in another order gives it another one."""

import json
from functools import lru_cache
from hashlib import sha256

from trainyard.protocol.ledger.book import Book, Task
from trainyard.protocol.market import Terms

# In the keys of what is sent for a task: what comes after it tells the task from all others.
_MARK, _ATTEMPT = "@", "#"
_MARK_LETTERS = 16


def posting_of(task: Task) -> str:
    """What tells a task from any other that may have had its number: who posted what."""
    return _posting(task.requester, task.terms)


def marked(key: str, book: Book) -> str:
    """The key by which it is known what was sent for the task that has the key's number now."""
    task = _task_of(key, book)
    return key if task is None else f"{key}{_MARK}{_mark_of(task)}"


def plain(key: str) -> str:
    """What was decided, without for which task of that number, and which attempt it is."""
    return key.partition(_ATTEMPT)[0].partition(_MARK)[0]


def is_of_another(key: str, book: Book) -> bool:
    """Whether what has this key was made for a task that is not the one of its number now."""
    mark = key.partition(_ATTEMPT)[0].partition(_MARK)[2]
    task = _task_of(key, book)
    return bool(mark) and (task is None or mark != _mark_of(task))


# Of each folder at every look.
@lru_cache(maxsize=4096)
def _posting(requester: str, terms: Terms) -> str:
    about = json.dumps([requester, *terms.as_tuple()], default=bytes.hex)
    return sha256(about.encode()).hexdigest()


def _task_of(key: str, book: Book) -> Task | None:
    number = key.partition("/")[0]
    return book.tasks.get(int(number)) if number.isdecimal() else None


def _mark_of(task: Task) -> str:
    return posting_of(task)[:_MARK_LETTERS]
