"""A relay for workers that nobody can connect to: `python -m worker_agent.peers.relay --port PORT`.

A worker connects, shows its certificate, proves that it has the key, and waits. Others ask for the
fingerprint of a certificate and get a pipe to whoever registered under it. What the two say in that
pipe is TLS between them: a relay can cut it and nothing else, and has not to be trusted.
"""

import argparse
import asyncio
import os
import signal
import socket
from collections import Counter
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256

from worker_agent.peers import wire
from worker_agent.peers.crowd import Crowd
from worker_agent.peers.dialling import (
    BUSY,
    CALL,
    CONNECTED,
    FINGERPRINT_BYTES,
    REGISTER,
    SILENT,
    TAKE,
    TICKET_BYTES,
    UNKNOWN,
    VERB_BYTES,
)
from worker_agent.peers.errors import PeerError
from worker_agent.peers.registering import CALLED, HERE, LENGTHS, NONCE_BYTES, PROOF, SILENCE_S

_LARGEST_CERTIFICATE, _LARGEST_PROOF = 8 << 10, 256
_ASK_S = 10.0
# A pipe in which nothing moves either way for so long is of no use to anybody.
_IDLE_S = 180.0
_READ_BYTES = 256 << 10


@dataclass(frozen=True, slots=True)
class Bounds:
    connections: int = 4096
    registrations: int = 1024
    # Of each worker that is registered; those that wait for it to answer count as well.
    pipes: int = 128


@dataclass(eq=False, slots=True)
class End:
    """One connection, of whoever it is."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def read(self, length: int) -> bytes:
        return await self.reader.readexactly(length)

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()


class _Call:
    """Somebody who was called, and has not answered yet or is being talked to."""

    def __init__(self) -> None:
        self.taken: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self.ended = asyncio.Event()


class Relay:
    def __init__(
        self, host: str = "127.0.0.1", port: int = 0, *, bounds: Bounds | None = None
    ) -> None:
        self._host, self.port, self._bounds = host, port, bounds or Bounds()
        self.counts: Counter[str] = Counter()
        self._crowd = Crowd(self.counts)
        # Who is registered, how many pipes lead there, and who has yet to answer a call.
        self._members: dict[bytes, End] = {}
        self._pipes: Counter[bytes] = Counter()
        self._calls: dict[bytes, _Call] = {}
        self._connections = 0

    async def __aenter__(self) -> Self:
        listener = wire.listen(self._host, self.port)
        self.port = listener.getsockname()[1]
        self._crowd.accept(listener, self._meet)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._crowd.end()

    @property
    def address(self) -> str:
        return f"{self._host}:{self.port}"

    async def pipe(self, one: End, other: End) -> None:
        """Carry both directions until both have ended, or nothing moves in either."""
        async with asyncio.timeout(_IDLE_S) as limit, asyncio.TaskGroup() as group:
            group.create_task(self._carry(one, other, limit))
            group.create_task(self._carry(other, one, limit))

    def passing(self, data: bytes) -> bytes:
        """What becomes of bytes on their way: nothing."""
        return data

    async def _carry(self, source: End, target: End, limit: asyncio.Timeout) -> None:
        loop = asyncio.get_running_loop()
        while data := await source.reader.read(_READ_BYTES):
            limit.reschedule(loop.time() + _IDLE_S)
            await target.send(self.passing(data))
        target.writer.write_eof()

    def _meet(self, sock: socket.socket) -> None:
        if self._connections >= self._bounds.connections:
            self.counts["one too many"] += 1
            sock.close()
            return

        def gone() -> None:
            self._connections -= 1
            sock.close()

        self._connections += 1
        wire.tune(sock)
        self._crowd.start(self._attend(sock), "connection", gone)

    async def _attend(self, sock: socket.socket) -> None:
        end = End(*await wire.plain(sock))
        try:
            async with asyncio.timeout(_ASK_S):
                verb = await end.read(VERB_BYTES)
            if verb == REGISTER:
                await self._register(end)
            elif verb == CALL:
                await self._call(end)
            elif verb == TAKE:
                await self._take(end)
            else:
                raise PeerError("who connects says what makes no sense")
        finally:
            end.writer.transport.abort()

    async def _register(self, end: End) -> None:
        async with asyncio.timeout(_ASK_S):
            fingerprint = await _proven(end)
            known = self._members.get(fingerprint)
            if known is None and len(self._members) >= self._bounds.registrations:
                self.counts["one too many"] += 1
                await end.send(BUSY)
                return
            await end.send(CONNECTED)
        if known is not None:
            # It has the key: its machine has found a new way here, before the old one was missed.
            known.writer.transport.abort()
        self._members[fingerprint] = end
        try:
            while True:
                async with asyncio.timeout(SILENCE_S):
                    if await end.read(1) != HERE:
                        raise PeerError("who is registered says what makes no sense")
                    await end.send(HERE)
        finally:
            if self._members.get(fingerprint) is end:
                del self._members[fingerprint]

    async def _call(self, end: End) -> None:
        async with asyncio.timeout(_ASK_S):
            fingerprint = await end.read(FINGERPRINT_BYTES)
        if fingerprint not in self._members:
            self.counts["unknown"] += 1
            await end.send(UNKNOWN)
        elif self._pipes[fingerprint] >= self._bounds.pipes:
            self.counts["one too many"] += 1
            await end.send(BUSY)
        else:
            self._pipes[fingerprint] += 1
            try:
                await self._bring_together(end, self._members[fingerprint])
            finally:
                self._pipes[fingerprint] -= 1
                self._pipes += Counter()  # forgets those that have none

    async def _bring_together(self, end: End, member: End) -> None:
        ticket, call = os.urandom(TICKET_BYTES), _Call()
        self._calls[ticket] = call
        try:
            try:
                async with asyncio.timeout(_ASK_S):
                    await member.send(CALLED + ticket)
                    other = await call.taken
            except TimeoutError:
                self.counts["not answered"] += 1
                await end.send(SILENT)
                return
            finally:
                del self._calls[ticket]
            await end.send(CONNECTED)
            await self.pipe(end, other)
        finally:
            call.ended.set()

    async def _take(self, end: End) -> None:
        async with asyncio.timeout(_ASK_S):
            ticket = await end.read(TICKET_BYTES)
        call = self._calls.get(ticket)
        if call is None or call.taken.done():
            raise PeerError("a ticket that nobody waits with")
        call.taken.set_result(end)
        await call.ended.wait()


async def _proven(end: End) -> bytes:
    """The fingerprint of a certificate of which the other end has the key."""
    nonce = os.urandom(NONCE_BYTES)
    await end.send(nonce)
    certificate_bytes, proof_bytes = LENGTHS.unpack(await end.read(LENGTHS.size))
    if certificate_bytes > _LARGEST_CERTIFICATE or proof_bytes > _LARGEST_PROOF:
        raise PeerError("a certificate or a proof of impossible length")
    data, proof = await end.read(certificate_bytes), await end.read(proof_bytes)
    try:
        certificate = x509.load_der_x509_certificate(data)
        key = certificate.public_key()
        if not isinstance(key, ec.EllipticCurvePublicKey):
            raise PeerError("a certificate of another kind than workers have")
        key.verify(proof, PROOF + nonce, ec.ECDSA(SHA256()))
    except (ValueError, UnsupportedAlgorithm, InvalidSignature, x509.InvalidVersion) as error:
        raise PeerError("a registration without proof") from error
    return certificate.fingerprint(SHA256())


async def _run(host: str, port: int) -> None:
    ended = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    async with Relay(host, port) as relay:
        print(f"relay on {relay.address}", flush=True)
        await ended.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Let workers be reached that nobody can connect to."
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="whichever is free if not given")
    given = parser.parse_args()
    asyncio.run(_run(given.host, given.port))


if __name__ == "__main__":
    main()
