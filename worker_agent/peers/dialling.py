"""From the endpoint on a card to a socket with that worker at its other end, as it is said."""

import asyncio
import socket

from trainyard.protocol.cards import RELAYED
from worker_agent.peers.errors import PeerError
from worker_agent.peers.wire import tune

_CONNECT_S = 10.0
# What callers, owners of tickets and those who register say to a relay first.
REGISTER, CALL, TAKE = b"TYR1R", b"TYR1C", b"TYR1T"
VERB_BYTES = len(CALL)
FINGERPRINT_BYTES, TICKET_BYTES = 32, 16
CONNECTED, UNKNOWN, BUSY, SILENT = b"\x00", b"\x01", b"\x02", b"\x03"
_WHY_NOT = {
    UNKNOWN: "it has no such worker",
    BUSY: "that worker has too many connections",
    SILENT: "that worker did not answer",
}
# Longer than the relay waits for the one who is called.
_CALL_S = 15.0


def host_and_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal():
        raise PeerError(f'"{address}" is no address: write host:port')
    return host.removeprefix("[").removesuffix("]"), int(port)


async def connect(address: str) -> socket.socket:
    """A socket connected to "host:port"."""
    loop = asyncio.get_running_loop()
    host, port = host_and_port(address)
    reason: OSError | None = None
    for family, kind, protocol, _, where in await loop.getaddrinfo(
        host, port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            tune(sock)
            async with asyncio.timeout(_CONNECT_S):
                await loop.sock_connect(sock, where)
        except OSError as error:
            sock.close()
            reason = error
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise reason or PeerError(f"{host} has no address")


async def dial(endpoint: str, fingerprint: bytes) -> socket.socket:
    """A socket with a worker's plane at its other end, if the endpoint is what it claims."""
    if not endpoint.startswith(RELAYED):
        return await connect(endpoint)
    address = endpoint.removeprefix(RELAYED)
    sock = await connect(address)
    try:
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(_CALL_S):
            await loop.sock_sendall(sock, CALL + fingerprint)
            said = await loop.sock_recv(sock, 1)
        if said != CONNECTED:
            raise PeerError(f"relay {address}: {_WHY_NOT.get(said, 'it hung up')}")
    except BaseException:
        sock.close()
        raise
    return sock
