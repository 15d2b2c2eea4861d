"""Answers that are the same for everybody, given again while nothing has changed.

They are kept as bytes and sent by the loop itself: no thread, no database, no route. Who asks for
the same thing while it is being computed waits for that one answer.
"""

import asyncio
import itertools
import re
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

# Of the index and the feeds alone; nothing personal, and nothing that is fetched from others.
_SHARED = re.compile(
    r"/api/v1/(?:stats|classes|config|tasks|workers"
    r"|tasks/[0-9]{1,10}(?:/timeline|/metrics|/logs)?"
    r"|workers/0x[0-9a-fA-F]{40})"
)
# A task's answer has the time in it. All others change with what is told, or with a block: that of
# another process that writes to the same database is known only when it is over.
_TASK = re.compile(r"/api/v1/tasks/[0-9]+")
_LASTS_S, _TASK_LASTS_S = 5.0, 1.0
_MOST, _LARGEST_BYTES = 512, 128 << 10
_LONGEST_QUERY = 500


class Changes:
    """How often anything that is shown has changed, as far as is known here; for any thread."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self.number = 0

    def note(self) -> None:
        """After the change can be read."""
        self.number = next(self._numbers)


@dataclass(slots=True)
class _Answer:
    number: int
    until: float
    route: Any = None
    start: Message = field(default_factory=dict)
    body: bytes = b""


class Remembering:
    def __init__(self, app: ASGIApp, changes: Changes) -> None:
        self._app, self._changes = app, changes
        self._known: OrderedDict[tuple[str, bytes], _Answer] = OrderedDict()
        self._coming: dict[tuple[str, bytes, int], asyncio.Future[_Answer | None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not _is_shared(scope):
            await self._app(scope, receive, send)
            return
        key = (scope["path"], scope["query_string"])
        # INVARIANT: the number is taken before anything is read, so that what changes meanwhile
        # makes the answer old.
        number = self._changes.number
        found = self._fresh(key, number)
        if found is None:
            coming = self._coming.get((*key, number))
            if coming is None:
                await self._compute(key, number, scope, receive, send)
                return
            found = await asyncio.shield(coming)
        if found is None:
            # It was a refusal, or too large to keep: everybody gets their own.
            await self._app(scope, receive, send)
            return
        scope["route"] = found.route
        await send(dict(found.start))
        await send({"type": "http.response.body", "body": found.body})

    def _fresh(self, key: tuple[str, bytes], number: int) -> _Answer | None:
        found = self._known.get(key)
        if found is None or found.number != number or time.monotonic() >= found.until:
            return None
        self._known.move_to_end(key)
        return found

    async def _compute(
        self, key: tuple[str, bytes], number: int, scope: Scope, receive: Receive, send: Send
    ) -> None:
        coming = asyncio.get_running_loop().create_future()
        self._coming[(*key, number)] = coming
        lasts_s = _TASK_LASTS_S if _TASK.fullmatch(key[0]) else _LASTS_S
        answer = _Answer(number, time.monotonic() + lasts_s)
        is_whole = False

        async def take(message: Message) -> None:
            nonlocal is_whole
            if message["type"] == "http.response.start":
                # A copy: whoever sends it adds headers of its own.
                answer.start = dict(message)
            elif message["type"] == "http.response.body":
                answer.body += message.get("body", b"")
                is_whole = not message.get("more_body", False)
            await send(message)

        try:
            await self._app(scope, receive, take)
        finally:
            answer.route = scope.get("route")
            is_kept = (
                is_whole
                and answer.start.get("status") == 200
                and len(answer.body) <= _LARGEST_BYTES
            )
            if is_kept:
                self._keep(key, answer)
            del self._coming[(*key, number)]
            coming.set_result(answer if is_kept else None)

    def _keep(self, key: tuple[str, bytes], answer: _Answer) -> None:
        self._known[key] = answer
        self._known.move_to_end(key)
        if len(self._known) > _MOST:
            # INVARIANT: memory is bounded, however many questions there are.
            self._known.popitem(last=False)


def _is_shared(scope: Scope) -> bool:
    return (
        scope["type"] == "http"
        and scope["method"] == "GET"
        and len(scope["query_string"]) <= _LONGEST_QUERY
        and _SHARED.fullmatch(scope["path"]) is not None
    )
