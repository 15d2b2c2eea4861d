"""Running the server: one process, until it is told to end."""

import asyncio
import socket
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Any

import h11
import structlog
import uvicorn
import uvloop
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from dapp.errors import SettingsError
from dapp.settings import Settings
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.protocol.errors import TransientError

_GRACE_S = 3
_BACKLOG = 2048
_TURN_S = 0.001
_HEADER_BYTES, _HEADERS_S = 32 << 10, 30


def set_up_logs(*, as_json: bool) -> None:
    """Lines of JSON on standard error, or text for people."""
    renderer: Any = structlog.processors.JSONRenderer()
    if not as_json:
        renderer = structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def listen(settings: Settings) -> socket.socket:
    """The port is taken before anything else starts, and known from then on."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    try:
        listener = socket.create_server(
            (settings.host, settings.port), family=family, backlog=_BACKLOG
        )
        # Taken over by each connection: else the end of an answer waits for the other side to
        # confirm its beginning.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener
    except OSError as error:
        raise TransientError(
            f"cannot listen at {settings.host}:{settings.port}: {error.strerror or error}; "
            "set TRAINYARD_DAPP_PORT to another port"
        ) from error


def require_own_currency(endpoints: Endpoints, settings: Settings) -> None:
    """SettingsError where the market's currency is a token: all amounts would be shown wrongly."""
    token = MarketClient(endpoints, settings.market).currency()
    if token is not None:
        raise SettingsError(
            f"TRAINYARD_DAPP_MARKET: the market {settings.market} is paid in the token {token}, "
            "and this page serves markets in the chain's own currency; name one of those, or use "
            "the command line"
        )


def serve(
    app: FastAPI,
    listener: socket.socket,
    *,
    beside: AbstractAsyncContextManager[Any] | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; `beside` runs with it, such as a relay."""
    # Threads compute what the loop then sends: it must not wait long for its turn between them.
    sys.setswitchinterval(_TURN_S)
    uvloop.run(_serve(app, listener, beside))


async def _serve(
    app: FastAPI, listener: socket.socket, beside: AbstractAsyncContextManager[Any] | None
) -> None:
    server = Server(config_of(app))
    async with AsyncExitStack() as parts:
        if beside is not None:
            await parts.enter_async_context(beside)
        await server.serve(sockets=[listener])


def config_of(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=_Punctual,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="on",
        ws="none",
        timeout_keep_alive=_HEADERS_S,
        timeout_graceful_shutdown=_GRACE_S,
        h11_max_incomplete_event_size=_HEADER_BYTES,
    )


class _Punctual(H11Protocol):
    """Ends connections whose headers do not come: uvicorn waits for them as long as it takes.

    How large they are is bounded by h11, and by no other of uvicorn's protocols.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_headers()

    def handle_events(self) -> None:
        super().handle_events()
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget_deadline()
        super().connection_lost(exc)

    def _expect_headers(self) -> None:
        """All of them, within a time that begins with the connection or the answer before."""
        if self.conn.their_state is not h11.IDLE:
            self._forget_deadline()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(_HEADERS_S, self.timeout_keep_alive_handler)

    def _forget_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


class Server(uvicorn.Server):
    """Ends open streams first: they would keep it from ending."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app: Any = self.config.app
        app.state.services.hub.close()
        await super().shutdown(sockets)
