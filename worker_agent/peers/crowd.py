"""Tasks that nobody waits for: each may fail alone, and none outlives its owner."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from trainyard.protocol.errors import TrainyardError

# How long to wait for handles when the process has no more of them, and for tasks to end.
_PAUSE_S = 0.25
_log = structlog.get_logger()
# What strangers and networks do to a connection every day.
_EXPECTED = (OSError, EOFError, TrainyardError)


class Crowd:
    def __init__(self, counts: Counter[str]) -> None:
        self._counts = counts
        self._tasks: set[asyncio.Task[None]] = set()

    def start(
        self,
        work: Coroutine[Any, Any, None],
        name: str,
        at_end: Callable[[], object] | None = None,
    ) -> "asyncio.Task[None]":
        """Run `work`; `at_end` is called however it ends, even before it began."""
        task = asyncio.get_running_loop().create_task(self._guard(work, name))
        self._tasks.add(task)

        def ended(_: object) -> None:
            work.close()
            self._tasks.discard(task)
            if at_end is not None:
                at_end()

        task.add_done_callback(ended)
        return task

    def accept(
        self, listener: socket.socket, take: Callable[[socket.socket], None]
    ) -> "asyncio.Task[None]":
        """Give each connection of `listener` to `take`; the listener is closed at the end."""
        return self.start(self._accept(listener, take), "listener", listener.close)

    async def end(self) -> None:
        while self._tasks:
            tasks = list(self._tasks)
            for task in tasks:
                task.cancel()
            # Again and again: of an error and an end at once, a task group raises the error.
            await asyncio.wait(tasks, timeout=_PAUSE_S)

    async def _accept(self, listener: socket.socket, take: Callable[[socket.socket], None]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError:
                self._counts["not accepted"] += 1
                await asyncio.sleep(_PAUSE_S)
                continue
            take(sock)

    async def _guard(self, work: Coroutine[Any, Any, None], name: str) -> None:
        try:
            await work
        except Exception as error:
            if not _is_expected(error):
                # A mistake of ours, which costs one connection and not all of them.
                _log.exception("a connection failed", of=name)
                self._counts[f"{name} failed"] += 1
                return
            self._counts[f"{name} lost"] += 1


def _is_expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_expected, error.exceptions))
    return isinstance(error, _EXPECTED)
