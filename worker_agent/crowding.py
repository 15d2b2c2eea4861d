"""Turns on a machine that several agents share: only so many of them take tasks at a time.

Whoever waits for its turn has joined nothing, so that a crowded machine costs nobody a stake.
"""

import fcntl
import os
from collections.abc import Iterable
from pathlib import Path

from trainyard.engine.classes import cache_folder
from worker_agent.actions import Action, Fetch, MakeCard, Send
from worker_agent.deciding.offers import is_computing
from worker_agent.situation import Situation


class Turns:
    """One turn of as many as the machine has. It ends with the process, however that ends."""

    def __init__(self, count: int | None, folder: Path | None = None) -> None:
        """Without a count there is always room."""
        self._count = count
        self._folder = folder or cache_folder().with_name("turns")
        self._held: int | None = None

    def take(self) -> bool:
        """Whether we have a turn, or can have one now."""
        if self._count is None or self._held is not None:
            return True
        self._folder.mkdir(parents=True, exist_ok=True)
        for number in range(self._count):
            handle = os.open(self._folder / str(number), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(handle)
                continue
            self._held = handle
            return True
        return False

    def give_back(self) -> None:
        if self._held is not None:
            os.close(self._held)
            self._held = None


def needs_turn(s: Situation, actions: Iterable[Action]) -> bool:
    """Whether an agent is taking a task, or computes one that it has taken."""
    for action in actions:
        is_joining = isinstance(action, Send) and "/join/" in action.key
        if is_joining or isinstance(action, Fetch | MakeCard):
            return True
    return any(is_computing(s, number) for number in s.book.tasks)
