"""Connections: a socket, and TLS upon it once somebody is at its other end."""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from hashlib import sha256

from worker_agent.peers.errors import PeerError

# So many bytes wait in memory for each direction of a connection, twice.
_LIMIT_BYTES = 512 << 10
HANDSHAKE_S = 10.0
_GOODBYE_S = 2.0
# After so many seconds of silence, and so often and so many times, the other machine is asked for.
_KEEPALIVE = (
    (socket.TCP_KEEPIDLE, 30),
    (socket.TCP_KEEPINTVL, 10),
    (socket.TCP_KEEPCNT, 6),
)


@dataclass(eq=False, slots=True)
class Wire:
    """A connection whose other end has shown the certificate of `fingerprint`."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    fingerprint: bytes

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    def cut(self) -> None:
        """End it at once, whatever is still under way."""
        self.writer.transport.abort()

    async def close(self) -> None:
        """End it in order, after all that was sent."""
        await close(self.writer)


async def serve(sock: socket.socket, context: ssl.SSLContext) -> Wire:
    """Be the server of TLS on a socket of either kind, accepted or connected."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(_LIMIT_BYTES, loop)
    transport, protocol = await loop.connect_accepted_socket(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop),
        sock,
        ssl=context,
        ssl_handshake_timeout=HANDSHAKE_S,
        ssl_shutdown_timeout=_GOODBYE_S,
    )
    return _wire(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


async def join(sock: socket.socket, context: ssl.SSLContext) -> Wire:
    """Be the client of TLS on a connected socket."""
    reader, writer = await asyncio.open_connection(
        sock=sock,
        ssl=context,
        # Who it is, the certificate says, and not the name that it was found by.
        server_hostname="",
        limit=_LIMIT_BYTES,
        ssl_handshake_timeout=HANDSHAKE_S,
        ssl_shutdown_timeout=_GOODBYE_S,
    )
    return _wire(reader, writer)


async def plain(
    sock: socket.socket,
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connected socket of this machine."""
    return await asyncio.open_connection(sock=sock, limit=_LIMIT_BYTES)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(2 * _GOODBYE_S):
            await writer.wait_closed()
    except OSError:  # also that of a time-out: what matters is that it is gone
        writer.transport.abort()


def _wire(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Wire:
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    if shown is None:
        writer.transport.abort()
        raise PeerError("no certificate was shown")
    return Wire(reader, writer, sha256(shown).digest())


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.create_server((host, port), family=family, backlog=128)
    sock.setblocking(False)
    return sock


def tune(sock: socket.socket) -> None:
    """Nothing waits for more, and a machine that vanished is noticed."""
    sock.setblocking(False)
    if sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
