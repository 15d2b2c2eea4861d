"""The peer plane: the one place where a worker of a task and the other workers of it meet.

Every connection is TLS 1.3 with certificates on both sides, and of certificates only those on the
cards of the task count. Whoever has none of them gets no further than the handshake.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import TracebackType

from trainyard.protocol.cards import RELAYED, PeerCard
from worker_agent.peers import requests, wire
from worker_agent.peers.crowd import Crowd
from worker_agent.peers.dialling import dial
from worker_agent.peers.doors import Doors, to, widen
from worker_agent.peers.errors import PeerError, PeerRefusedError
from worker_agent.peers.frames import MOST_BODY_BYTES, Header, What, read_header
from worker_agent.peers.identity import Identity
from worker_agent.peers.registering import Registration
from worker_agent.peers.requests import Answer
from worker_agent.peers.streams import splice
from worker_agent.peers.trust import Trust
from worker_agent.peers.wire import Wire

# Connections of strangers, of which the oldest goes when there are more; and of each worker.
MOST_UNPROVEN = 64
MOST_PER_SLOT = 64
_HEADER_S = 10.0
# gRPC gives a connection 20 s to come up, and then waits for long: better to wait here.
_PATIENCE_S = 15.0
_DIAL_EVERY_S = 0.25


class PeerPlane:
    """What one worker is to the others of its task, and they to it.

    `answer` is called with the slot, kind and body of each request, and gives bytes or the path of
    a file; an error of ours that it raises is told to who asked. `folder` is shared with the
    sandbox: what connects to `to-<slot>` there comes out of `in` at the worker of that slot.
    """

    def __init__(
        self,
        identity: Identity,
        slot: int,
        *,
        folder: Path,
        answer: Answer,
        host: str = "127.0.0.1",
        port: int = 0,
        relay: str | None = None,
    ) -> None:
        self._identity, self._slot, self._answer = identity, slot, answer
        self._folder, self._host, self.port, self._relay = folder, host, port, relay
        self._trust = Trust(identity)
        # What was refused and what was lost, by reason.
        self.counts: Counter[str] = Counter()
        self._crowd = Crowd(self.counts)
        self._unproven: dict[asyncio.Task[None], None] = {}
        self._wires: dict[Wire, int] = {}
        self._entering: Counter[int] = Counter()
        self._leaving: Counter[int] = Counter()
        self._listeners: dict[int, asyncio.Task[None]] = {}

    async def __aenter__(self) -> "PeerPlane":
        self._doors = Doors(self._folder)
        try:
            if self._relay is None:
                listener = wire.listen(self._host, self.port)
                self.port = listener.getsockname()[1]
                self._crowd.accept(listener, self._meet)
            else:
                registration = await Registration.open(self._relay, self._identity)
                self._crowd.start(registration.hold(self._meet), "relay", registration.close)
        except BaseException:
            self._doors.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.know({})
        await self._crowd.end()
        self._doors.close()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """What to write on the card, if this machine is known by the name it listens on."""
        if self._relay is not None:
            return (f"{RELAYED}{self._relay}",)
        host = f"[{self._host}]" if ":" in self._host else self._host
        return (f"{host}:{self.port}",)

    def know(self, cards: Mapping[int, PeerCard]) -> None:
        """Trust these cards, by slot, and no others. Whoever is no longer known is cut off."""
        others = {slot: card for slot, card in cards.items() if slot != self._slot}
        self._trust.replace(others)
        for one, slot in list(self._wires.items()):
            if self._trust.slot_of(one.fingerprint) != slot:
                self.counts["cut off"] += 1
                one.cut()
        for slot in self._listeners.keys() - others.keys():
            self._listeners.pop(slot).cancel()
            self._doors.remove(to(slot))
        for slot in others.keys() - self._listeners.keys():
            self._listeners[slot] = self._crowd.accept(
                self._doors.listen(to(slot)), partial(self._leave, slot)
            )

    async def ask(
        self,
        slot: int,
        kind: str,
        body: bytes = b"",
        *,
        timeout_s: float,
        most_bytes: int = MOST_BODY_BYTES,
    ) -> bytes:
        """What the worker of `slot` answers; raises PeerRefusedError if it does not want to."""
        async with self._asking(slot, kind), asyncio.timeout(timeout_s), self._reach(slot) as one:
            await requests.ask(one, kind, body)
            return await requests.receive(one, most_bytes)

    async def fetch(
        self, slot: int, kind: str, body: bytes, target: Path, *, most_bytes: int
    ) -> None:
        """Keep what the worker of `slot` answers as a file, however large. Not yet verified."""
        async with self._asking(slot, kind), self._reach(slot) as one:
            await requests.ask(one, kind, body)
            await requests.receive_file(one, target, most_bytes)

    @asynccontextmanager
    async def _asking(self, slot: int, kind: str) -> AsyncIterator[None]:
        """Of whatever goes wrong, tell who it was with."""
        try:
            yield
        except PeerRefusedError as error:
            raise PeerRefusedError(f"worker {slot} refuses {kind!r}: {error}") from error
        except TimeoutError as error:
            raise PeerError(f"worker {slot} did not answer {kind!r} in time") from error
        except (OSError, EOFError, PeerError) as error:
            raise PeerError(f"worker {slot} cannot be asked for {kind!r}: {error}") from error

    async def _connect(self, slot: int) -> Wire:
        """A connection to the worker of `slot`, by the first of its endpoints that leads to it."""
        card = self._trust.card(slot)
        context, reasons = self._trust.client(card), []
        for endpoint in card.endpoints:
            try:
                return await wire.join(await dial(endpoint, card.fingerprint), context)
            except (OSError, EOFError, PeerError) as error:
                reasons.append(f"{endpoint}: {str(error) or type(error).__name__}")
        raise PeerError("; ".join(reasons))

    async def _connect_patiently(self, slot: int) -> Wire:
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE_S
        while True:
            try:
                return await self._connect(slot)
            except PeerError:
                if loop.time() > until:
                    raise
            await asyncio.sleep(_DIAL_EVERY_S)

    @asynccontextmanager
    async def _reach(self, slot: int) -> AsyncIterator[Wire]:
        one = await self._connect(slot)
        async with self._kept(one, slot):
            yield one

    @asynccontextmanager
    async def _kept(self, one: Wire, slot: int) -> AsyncIterator[None]:
        """While a connection is in use; it is closed in order if nothing went wrong."""
        # INVARIANT: also who was known when the handshake began must be known now.
        if self._trust.slot_of(one.fingerprint) != slot:
            one.cut()
            raise PeerError(f"who was at the other end is not the worker of slot {slot}")
        self._wires[one] = slot
        try:
            yield
            await one.close()
        finally:
            del self._wires[one]
            one.cut()

    def _meet(self, sock: socket.socket) -> None:
        """Somebody is there; who, it has to show."""
        if len(self._unproven) >= MOST_UNPROVEN:
            self.counts["crowded out"] += 1
            oldest = next(iter(self._unproven))
            del self._unproven[oldest]
            oldest.cancel()
        wire.tune(sock)
        task = self._crowd.start(self._serve(sock), "connection", sock.close)
        self._unproven[task] = None
        task.add_done_callback(lambda task: self._unproven.pop(task, None))

    async def _serve(self, sock: socket.socket) -> None:
        try:
            one = await wire.serve(sock, self._trust.server)
        except (OSError, EOFError, PeerError):
            self.counts["not let in"] += 1
            return
        slot = self._trust.slot_of(one.fingerprint)
        if slot is None or self._entering[slot] >= MOST_PER_SLOT:
            self.counts["not let in" if slot is None else "one too many"] += 1
            one.cut()
            return
        self._entering[slot] += 1
        try:
            async with self._kept(one, slot):
                await self._attend(one, slot)
        finally:
            self._entering[slot] -= 1

    async def _attend(self, one: Wire, slot: int) -> None:
        async with asyncio.timeout(_HEADER_S):
            header = await read_header(one.reader)
        task = asyncio.current_task()
        if task is not None:
            self._unproven.pop(task, None)
        if header.what is What.REQUEST:
            await requests.give(one, slot, header, self._answer)
        else:
            await self._bring_in(one)

    async def _bring_in(self, one: Wire) -> None:
        reader, writer = await wire.plain(await self._doors.enter(_PATIENCE_S))
        try:
            await splice(one, reader, writer)
        finally:
            writer.transport.abort()

    def _leave(self, slot: int, sock: socket.socket) -> None:
        """Something in the sandbox wants to talk to the worker of `slot`."""
        if self._leaving[slot] >= MOST_PER_SLOT:
            self.counts["one too many"] += 1
            sock.close()
            return

        def left() -> None:
            self._leaving[slot] -= 1
            sock.close()

        self._leaving[slot] += 1
        widen(sock)
        self._crowd.start(self._carry_out(sock, slot), "stream", left)

    async def _carry_out(self, sock: socket.socket, slot: int) -> None:
        reader, writer = await wire.plain(sock)
        try:
            one = await self._connect_patiently(slot)
            async with self._kept(one, slot):
                await one.send(Header(What.STREAM).encode())
                await splice(one, reader, writer)
        finally:
            writer.transport.abort()
