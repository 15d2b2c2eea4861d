"""The processor time of trees of processes, with all in them that have ended.

The kernel adds the time of a process that has ended to that of whoever waited for it. But some are
waited for by nobody: those in a sandbox that is killed, and the children of who does not want to
hear of them, as Ray's daemon. So trees are looked at again and again. What a tree has less than
before was lost that way, and is added again; what such a process took since the last look is not.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

LOOK_S = 1.0
_AGAIN_S = 0.02
_TICKS = os.sysconf("SC_CLK_TCK")
_PR_SET_CHILD_SUBREAPER = 36
# Kept when another program takes the process over.
_ADOPT = (
    f"import ctypes, os, sys; ctypes.CDLL(None).prctl({_PR_SET_CHILD_SUBREAPER}, 1); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)


def adopt() -> None:
    """Have orphans among our descendants handed to this process, and not to the machine's first."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1) != 0:
        raise OSError(ctypes.get_errno(), "orphans cannot be adopted on this system")


def adopting(command: Sequence[str]) -> list[str]:
    """A command that adopts, so that none of its descendants leaves its tree."""
    return [sys.executable, "-c", _ADOPT, *command]


@dataclass(frozen=True, slots=True)
class Process:
    """Seconds of its own, and of children that it has waited for."""

    parent: int
    own_s: float
    children_s: float


def processes() -> dict[int, Process]:
    """All of this machine; one that ends meanwhile is left out."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            # The name before the last bracket may hold anything.
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        own, children = (sum(map(int, fields[at : at + 2])) / _TICKS for at in (11, 13))
        found[int(name)] = Process(int(fields[1]), own, children)
    return found


def work_in(all_of_them: Mapping[int, Process], root: int) -> float:
    """What the descendants of a process took: those that live, and those that were waited for."""
    below: dict[int, list[int]] = {}
    for pid, process in all_of_them.items():
        below.setdefault(process.parent, []).append(pid)

    def descendants(pid: int) -> Iterator[Process]:
        for child in below.get(pid, ()):
            yield all_of_them[child]
            yield from descendants(child)

    first = all_of_them[root]
    return first.children_s + sum(one.own_s + one.children_s for one in descendants(root))


class Account:
    """The work of one tree, which only grows."""

    def __init__(self) -> None:
        self._last_s = self._lost_s = 0.0

    @property
    def total_s(self) -> float:
        return self._last_s + self._lost_s

    def take(self, seen_s: float) -> None:
        self._lost_s += max(0.0, self._last_s - seen_s)
        self._last_s = seen_s

    def is_less(self, seen_s: float) -> bool:
        return seen_s < self._last_s


class Accounts:
    """Accounts of some processes that live, looked at by a thread while this is entered."""

    def __init__(self, roots: Sequence[int]) -> None:
        self._accounts = {root: Account() for root in roots}
        # Of processors, for looking itself: that of whoever asks is no part of what is measured.
        self.looking_s = 0.0
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def work_s(self) -> dict[int, float]:
        """All that was done for each process by others, up to now."""
        self.look()
        return {root: account.total_s for root, account in self._accounts.items()}

    def look(self) -> None:
        with self._lock:
            began = time.thread_time()
            seen = self._seen()
            if any(one.is_less(seen[root]) for root, one in self._accounts.items()):
                # Who ended between two lines of one look is with its parent in the next.
                time.sleep(_AGAIN_S)
                again = self._seen()
                seen = {root: max(seen[root], again[root]) for root in seen}
            for root, account in self._accounts.items():
                account.take(seen[root])
            self.looking_s += time.thread_time() - began

    def _seen(self) -> dict[int, float]:
        found = processes()
        return {root: work_in(found, root) for root in self._accounts}

    def _watch(self) -> None:
        while not self._ended.wait(LOOK_S):
            self.look()
