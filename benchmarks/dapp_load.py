"""The load on a dapp, as a process of its own: streams that stay open, requests at a fixed rate.

    python -m benchmarks.dapp_load PORT CLIENTS RATE SECONDS TASKS

Says "open" once all streams are, and waits for a line of input before it ends; then one line of
JSON. It shares two cores with what it measures, so it is written on protocols, without a layer more
than it needs. Times are counted from when a request was due: a server that stalls cannot hide it.
"""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import cast

import uvloop

_CONNECTIONS = 32
_ERROR_S = 60.0
_PATHS = (
    "/api/v1/tasks?limit=20",
    "/api/v1/tasks?state=settled&sort=reward",
    "/api/v1/tasks/{task}",
    "/api/v1/tasks/{task}/timeline",
    "/api/v1/stats",
    "/api/v1/classes",
    "/api/v1/workers",
    "/api/v1/tasks/{task}/metrics",
)
_END = b"\r\n\r\n"
# Tasks are asked for in an order in which none comes again soon.
_STRIDE = 7_919


@dataclass(slots=True)
class Outcome:
    open: int = 0
    heard: list[int] = field(default_factory=list)
    ms: list[float] = field(default_factory=list)
    errors: int = 0


class Stream(asyncio.Protocol):
    """A listener: counts what it hears of tasks."""

    def __init__(self) -> None:
        self.heard = 0
        self.is_open = False
        self.has_ended = False
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none of asyncio's classes, and have their methods.
        cast(asyncio.Transport, transport).write(
            b"GET /api/v1/events?topic=market HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Accept: text/event-stream\r\n\r\n"
        )

    def data_received(self, data: bytes) -> None:
        data = self._rest + data
        self.is_open = self.is_open or data.startswith(b"HTTP/1.1 200 ")
        # The name of an event may be cut in two.
        whole, newline, self._rest = data.rpartition(b"\n")
        self.heard += (whole + newline).count(b"event: task\n")

    def connection_lost(self, exc: Exception | None) -> None:
        self.has_ended = True


class Asker(asyncio.Protocol):
    """A connection that asks one thing after the other."""

    def __init__(self, outcome: Outcome, free: "asyncio.Queue[Asker]") -> None:
        self._outcome, self._free = outcome, free
        self._transport: asyncio.Transport | None = None
        self._due = 0.0
        self._data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._free.put_nowait(self)

    def ask(self, path: str, due: float) -> None:
        assert self._transport is not None
        self._due, self._data = due, b""
        self._transport.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())

    def data_received(self, data: bytes) -> None:
        self._data += data
        head, end, body = self._data.partition(_END)
        if not end:
            return
        lower = head.lower()
        at = lower.find(b"content-length: ") + len(b"content-length: ")
        if len(body) < int(lower[at:].split(b"\r\n", 1)[0]):
            return
        self._outcome.ms.append((time.perf_counter() - self._due) * 1e3)
        self._outcome.errors += not head.startswith(b"HTTP/1.1 200 ")
        self._free.put_nowait(self)

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None or self._due:
            self._outcome.errors += 1


async def run(port: int, clients: int, rate: int, seconds: float, tasks: int) -> Outcome:
    loop, outcome = asyncio.get_running_loop(), Outcome()
    streams = [(await loop.create_connection(Stream, "127.0.0.1", port))[1] for _ in range(clients)]
    async with asyncio.timeout(_ERROR_S):
        while not all(stream.is_open for stream in streams):
            await asyncio.sleep(0.05)
    print("open", flush=True)
    await _ask_all(port, rate, seconds, tasks, outcome)
    # Whoever posts says when the last of it can be heard.
    await asyncio.to_thread(sys.stdin.readline)
    outcome.open = sum(stream.is_open and not stream.has_ended for stream in streams)
    outcome.heard = [stream.heard for stream in streams]
    return outcome


async def _ask_all(port: int, rate: int, seconds: float, tasks: int, outcome: Outcome) -> None:
    loop, free = asyncio.get_running_loop(), asyncio.Queue[Asker]()
    for _ in range(_CONNECTIONS):
        await loop.create_connection(lambda: Asker(outcome, free), "127.0.0.1", port)
    began = time.perf_counter()
    for number in range(int(seconds * rate)):
        due = began + number / rate
        if (early_s := due - time.perf_counter()) > 0:
            await asyncio.sleep(early_s)
        path = _PATHS[number % len(_PATHS)].format(task=1 + number * _STRIDE % tasks)
        async with asyncio.timeout(_ERROR_S):
            (await free.get()).ask(path, due)
    async with asyncio.timeout(_ERROR_S):
        for _ in range(_CONNECTIONS):
            await free.get()


def main() -> None:
    port, clients, rate, seconds, tasks = sys.argv[1:]
    outcome = uvloop.run(run(int(port), int(clients), int(rate), float(seconds), int(tasks)))
    print(json.dumps(asdict(outcome)), flush=True)


if __name__ == "__main__":
    main()
