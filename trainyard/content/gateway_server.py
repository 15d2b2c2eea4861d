"""The gateway on a port: how many may ask at once, and how long they may take to say what."""

import asyncio
import ipaddress
import socket
import sys
import threading
from typing import Any, Self

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from trainyard.content.board import Board
from trainyard.content.content import Content
from trainyard.content.gateway import create_app
from trainyard.protocol.errors import PermanentError, TransientError

_KEEP_ALIVE_S = 75
_CONNECTIONS = 512
# Of one address: nobody alone can keep all others out. A proxy of this machine asks for many.
_CONNECTIONS_EACH = 64
# Who has asked for nothing between two looks is let go.
_LOOK_S = 30.0
_UNTAKEN_MS = 60_000
_START_S = 30.0
_STOP_S = 2


class GatewayServer:
    """The gateway on a port of this machine, in a thread of its own. A context manager."""

    def __init__(
        self,
        content: Content,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        fetch: bool = False,
        expose: bool = False,
        board: Board | None = None,
    ) -> None:
        """`expose`: whether `host` may be an address that other machines can reach."""
        if not expose and not _is_loopback(host):
            raise PermanentError(
                f"{host} can be reached from other machines: use 127.0.0.1, or say that the store "
                "is to be exposed"
            )
        self._host, self._port = host, port
        self._app = create_app(content, fetch=fetch, board=board)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def address(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Listen; the address is known, and answers, when this returns."""
        if self._thread is not None:
            raise PermanentError(f"the gateway at {self.address} is running already")
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        try:
            listener = socket.create_server((self._host, self._port), family=family, backlog=128)
        except OSError as error:
            raise TransientError(
                f"cannot listen at {self.address}: {error.strerror or error}; "
                "choose another port, or 0 for any"
            ) from error
        # Who connected inherits it: one who asks and then takes nothing is let go.
        if sys.platform == "linux":
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNTAKEN_MS)
        self._port = listener.getsockname()[1]
        server = _Server(
            uvicorn.Config(
                self._app,
                log_config=None,
                access_log=False,
                server_header=False,
                loop="asyncio",
                http=_Guarded,
                ws="none",
                lifespan="on",
                limit_concurrency=_CONNECTIONS,
                timeout_keep_alive=_KEEP_ALIVE_S,
                timeout_graceful_shutdown=_STOP_S,
            )
        )
        self._server = server
        self._thread = threading.Thread(
            target=server.run, args=([listener],), name="gateway", daemon=True
        )
        self._thread.start()
        if not server.ready.wait(_START_S):
            self.stop()
            raise TransientError(f"the gateway at {self.address} did not start")

    def stop(self) -> None:
        """End it; answers that are under way have a moment to finish."""
        if self._thread is not None and self._server is not None:
            self._server.should_exit = True
            self._thread.join()
        self._server = self._thread = None


class _Server(uvicorn.Server):
    """Says when it listens, and leaves no connection behind."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        # A reader that takes nothing would keep its connection open past our end.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # the loop's turn, in which they are closed


class _Guarded(H11Protocol):
    """A connection that is let go if it is one too many, or if nothing is asked."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._timer: asyncio.TimerHandle | None = None
        # The request after which nothing had come at the last look.
        self._last: object = self

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        host = self.client[0] if self.client else ""
        others = sum(1 for one in self.connections if _host_of(one) == host)
        if others > _CONNECTIONS_EACH and not _is_loopback(host):
            transport.abort()
            return
        self._timer = self.loop.call_later(_LOOK_S, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        is_waiting = self.conn.their_state in (h11.IDLE, h11.SEND_BODY)
        if is_waiting and self._last is self.cycle:
            self.transport.abort()
            return
        self._last = self.cycle if is_waiting else self
        self._timer = self.loop.call_later(_LOOK_S, self._look)


def _host_of(connection: object) -> str | None:
    client = getattr(connection, "client", None)
    return client[0] if client else None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
