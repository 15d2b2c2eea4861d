"""One open stream of server-sent events: what waits for it, and how it is written."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

# What a listener may be behind before it is let go; it comes back and goes on.
MOST_WAITING = 512
_HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
_RETRY_MS = 2000


class Listener:
    """For the loop's thread alone. Messages are encoded once, and the same bytes wait for all."""

    def __init__(self, topics: Sequence[str]) -> None:
        self.topics = tuple(topics)
        self.is_gone = False
        # Whether anything was offered since the last sign of life was due.
        self.is_quiet = True
        self._waiting: list[bytes] = []
        self._woken: asyncio.Future[None] | None = None

    def offer(self, data: bytes) -> None:
        if self.is_gone:
            return
        if len(self._waiting) >= MOST_WAITING:
            # INVARIANT: what waits for a slow listener is bounded.
            self.end()
            return
        self.is_quiet = False
        self._waiting.append(data)
        self._wake()

    def end(self) -> None:
        self.is_gone = True
        self._wake()

    async def take(self) -> bytes:
        """All that waits, as one piece; nothing when the stream is over."""
        while not self._waiting and not self.is_gone:
            self._woken = asyncio.get_running_loop().create_future()
            await self._woken
        taken, self._waiting = self._waiting, []
        return b"".join(taken)

    def _wake(self) -> None:
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)


class EventStream(Response):
    """The answer that stays open. One write for all that waits, and no clock of its own."""

    media_type = "text/event-stream"

    def __init__(
        self,
        listener: Listener,
        missed: AsyncIterator[bytes],
        leave: Callable[[], None],
        *,
        since: int,
    ) -> None:
        """All that was told after number `since`."""
        super().__init__(headers=_HEADERS)
        del self.headers["content-length"]
        self._listener, self._missed, self._leave = listener, missed, leave
        # With a number: else who hears nothing before the line breaks could not say where it was.
        self._hello = f"retry: {_RETRY_MS}\nid: {since}\n\n".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        watching = asyncio.create_task(self._watch(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await _write(send, self._hello)
            async for data in self._missed:
                await _write(send, data)
            while data := await self._listener.take():
                await _write(send, data)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            watching.cancel()
            self._leave()
            with suppress(asyncio.CancelledError):
                await watching

    async def _watch(self, receive: Receive) -> None:
        """Until the other side is gone."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._listener.end()


async def _write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})
