"""A worker that nobody can reach, at a relay that everybody can: it stays there, and is called."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable

from worker_agent.peers.dialling import CONNECTED, REGISTER, TAKE, TICKET_BYTES, connect
from worker_agent.peers.errors import PeerError
from worker_agent.peers.identity import Identity

# What is signed to show that one has the key. TLS signs nothing that begins like this.
PROOF = b"Trainyard relay 1: I have this certificate's key. "
NONCE_BYTES = 32
LENGTHS = struct.Struct("!HH")
# Between a relay and who is registered: I am here, and somebody calls you.
HERE, CALLED = b"h", b"c"
HERE_EVERY_S = 20.0
SILENCE_S = 60.0
_OPEN_S = 10.0
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 1.0, 30.0


class Registration:
    def __init__(self, relay: str, identity: Identity) -> None:
        self._relay, self._identity = relay, identity
        self._sock: socket.socket | None = None

    @classmethod
    async def open(cls, relay: str, identity: Identity) -> "Registration":
        """Register for the first time, so that a wrong address is noticed at once."""
        registration = cls(relay, identity)
        try:
            await registration._register()
        except (OSError, PeerError) as error:
            reason = str(error) or type(error).__name__
            raise PeerError(
                f"relay {relay} cannot be used ({reason}): check peers.relay"
            ) from error
        return registration

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None

    async def hold(self, take: Callable[[socket.socket], None]) -> None:
        """Stay registered for ever; `take` is given each socket that a caller is at."""
        pause_s = _SHORTEST_PAUSE_S
        while True:
            try:
                if self._sock is None:
                    await self._register()
                pause_s = _SHORTEST_PAUSE_S
                await self._listen(take)
            except* (OSError, PeerError):
                self.close()
            # Not sooner: a relay that hangs up on everybody would be called without end.
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _register(self) -> None:
        loop = asyncio.get_running_loop()
        sock = await connect(self._relay)
        try:
            async with asyncio.timeout(_OPEN_S):
                await loop.sock_sendall(sock, REGISTER)
                nonce = await _read(sock, NONCE_BYTES)
                certificate = self._identity.der
                proof = self._identity.sign(PROOF + nonce)
                lengths = LENGTHS.pack(len(certificate), len(proof))
                await loop.sock_sendall(sock, lengths + certificate + proof)
                if await _read(sock, 1) != CONNECTED:
                    raise PeerError("it does not take this worker")
        except BaseException:
            sock.close()
            raise
        self._sock = sock

    async def _listen(self, take: Callable[[socket.socket], None]) -> None:
        sock = self._sock
        if sock is None:
            raise PeerError("not registered")
        async with asyncio.TaskGroup() as group:
            group.create_task(_beat(sock))
            while True:
                async with asyncio.timeout(SILENCE_S):
                    said = await _read(sock, 1)
                    if said == HERE:
                        continue
                    if said != CALLED:
                        raise PeerError("the relay says what makes no sense")
                    ticket = await _read(sock, TICKET_BYTES)
                group.create_task(self._answer(ticket, take))

    async def _answer(self, ticket: bytes, take: Callable[[socket.socket], None]) -> None:
        # The caller may be gone again; nothing follows from that for the others.
        with contextlib.suppress(OSError, PeerError):
            sock = await connect(self._relay)
            try:
                await asyncio.get_running_loop().sock_sendall(sock, TAKE + ticket)
            except BaseException:
                sock.close()
                raise
            take(sock)


async def _beat(sock: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(HERE_EVERY_S)
        await loop.sock_sendall(sock, HERE)


async def _read(sock: socket.socket, length: int) -> bytes:
    loop, data = asyncio.get_running_loop(), b""
    while len(data) < length:
        more = await loop.sock_recv(sock, length - len(data))
        if not more:
            raise PeerError("it hung up")
        data += more
    return data
