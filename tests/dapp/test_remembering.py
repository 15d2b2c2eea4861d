"""Answers that are given again, and streams that are written once: by the loop alone."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dapp.database.engine import Database
from dapp.errors import ApiError
from dapp.live.hub import Hub
from dapp.live.listening import MOST_WAITING, Listener
from dapp.remembering import Changes, Remembering

_STATS = "/api/v1/stats"


class Server:
    """Counts how often it is really asked, and answers with that number."""

    def __init__(self, *, status: int = 200, size: int = 1) -> None:
        self.changes, self.asked, self._status, self._size = Changes(), 0, status, size
        self.gate = asyncio.Event()
        self.gate.set()
        self._app = Remembering(self._answer, self.changes)

    async def get(self, path: str, query: bytes = b"", method: str = "GET") -> bytes:
        sent: list[Any] = []

        async def send(message: Any) -> None:
            # As the outer layer does: what it adds is nobody else's.
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-request-id", b"mine")]
            sent.append(message)

        scope = {"type": "http", "method": method, "path": path, "query_string": query}
        await self._app(scope, self._nothing, send)
        start, *rest = sent
        assert start["status"] == self._status
        assert start["headers"] == [(b"content-type", b"x"), (b"x-request-id", b"mine")]
        return b"".join(message.get("body", b"") for message in rest)

    async def _answer(
        self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]
    ) -> None:
        self.asked += 1
        number = self.asked
        await self.gate.wait()
        headers = [(b"content-type", b"x")]
        await send({"type": "http.response.start", "status": self._status, "headers": headers})
        await send({"type": "http.response.body", "body": b"%d" % number * self._size})

    async def _nothing(self) -> Any:
        raise AssertionError("nobody reads the body of a GET")


def test_an_answer_is_given_again_until_something_changes() -> None:
    async def go() -> None:
        server = Server()
        assert [await server.get(_STATS) for _ in range(3)] == [b"1"] * 3
        assert await server.get(_STATS, b"a=1") == b"2"
        server.changes.note()
        assert await server.get(_STATS) == b"3"
        assert await server.get(_STATS) == b"3"

    asyncio.run(go())


def test_who_asks_meanwhile_waits_for_the_one_answer() -> None:
    async def go() -> None:
        server = Server()
        server.gate.clear()
        asking = [asyncio.create_task(server.get(_STATS)) for _ in range(20)]
        await asyncio.sleep(0)
        # Who asks after a change does not get what was read before it.
        server.changes.note()
        later = asyncio.create_task(server.get(_STATS))
        await asyncio.sleep(0)
        server.gate.set()

        assert await asyncio.gather(*asking) == [b"1"] * 20
        assert await later == b"2"

    asyncio.run(go())


@pytest.mark.parametrize(
    ("path", "method"),
    [
        ("/api/v1/drafts", "GET"),
        ("/api/v1/notifications", "GET"),
        ("/api/v1/auth/session", "GET"),
        ("/api/v1/events", "GET"),
        ("/api/v1/tasks/1/result", "GET"),
        ("/api/v1/tasks/1/feed", "POST"),
        ("/api/v1/stats/", "GET"),
        ("/api/v1/stats", "HEAD"),
    ],
)
def test_what_is_somebodys_own_is_never_remembered(path: str, method: str) -> None:
    async def go() -> None:
        server = Server()
        assert [await server.get(path, method=method) for _ in range(2)] == [b"1", b"2"]

    asyncio.run(go())


@pytest.mark.parametrize("kind", [{"status": 503}, {"size": 1 << 20}])
def test_refusals_and_large_answers_are_not_kept(kind: dict[str, int]) -> None:
    async def go() -> None:
        server = Server(**kind)
        server.gate.clear()
        asking = [asyncio.create_task(server.get(_STATS)) for _ in range(3)]
        await asyncio.sleep(0)
        server.gate.set()
        found = await asyncio.gather(*asking)
        assert sorted({one[:1] for one in found}) == [b"1", b"2", b"3"]

    asyncio.run(go())


def test_what_waits_for_a_listener_is_one_piece_and_bounded() -> None:
    async def go() -> None:
        listener = Listener(["market"])
        for word in (b"a", b"b"):
            listener.offer(word)
        assert await listener.take() == b"ab"
        waiting = asyncio.create_task(listener.take())
        await asyncio.sleep(0)
        listener.offer(b"c")
        assert await waiting == b"c"
        for _ in range(MOST_WAITING + 1):
            listener.offer(b"x")
        assert listener.is_gone
        assert await listener.take() == b"x" * MOST_WAITING
        assert await listener.take() == b""

    asyncio.run(go())


def test_who_hears_nothing_is_told_that_the_line_lives(database: Database) -> None:
    async def go() -> None:
        hub = Hub(database, most=2, per_address=1, keep_alive_s=0.0)
        stream = hub.listen(["market"], "somebody", None)
        with pytest.raises(ApiError, match="too many open streams"):
            hub.listen(["market"], "somebody", None)
        heard: asyncio.Queue[bytes] = asyncio.Queue()

        async def send(message: Any) -> None:
            heard.put_nowait(message.get("body", b""))

        async def forever() -> Any:
            await asyncio.Event().wait()

        running = asyncio.create_task(hub.run())
        streaming = asyncio.create_task(stream({}, forever, send))
        async with asyncio.timeout(20):
            while await heard.get() != b": \n\n":
                pass
        assert hub.count == 1
        hub.close()
        await streaming
        assert hub.count == 0
        running.cancel()

    asyncio.run(go())
