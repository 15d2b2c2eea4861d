"""Asking another worker for something, and answering: in memory, or from file to file."""

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import IO

from trainyard.engine.errors import RunError
from trainyard.engine.plain_files import open_plain
from trainyard.protocol.errors import TrainyardError
from worker_agent.peers.errors import OwnDiskError, PeerError, PeerRefusedError
from worker_agent.peers.frames import (
    MOST_REASON_BYTES,
    PIECE_BYTES,
    Header,
    Status,
    What,
    answer,
    read_answer,
)
from worker_agent.peers.wire import Wire

# What is asked for: by the worker of which slot, of which kind, with which body.
Answer = Callable[[int, str, bytes], Awaitable[bytes | Path]]
# How long one may take to say a little more, and how long to begin.
SILENCE_S = 60.0
ANSWER_S = 120.0


async def ask(wire: Wire, kind: str, body: bytes) -> None:
    await wire.send(Header(What.REQUEST, kind, len(body)).encode() + body)


async def receive(wire: Wire, most_bytes: int) -> bytes:
    """The answer to what was asked."""
    length = await _begin(wire, most_bytes)
    return await wire.reader.readexactly(length)


async def receive_file(wire: Wire, target: Path, most_bytes: int) -> None:
    """Keep the answer as `target`, which is there as a whole or not at all."""
    async with asyncio.timeout(ANSWER_S):
        length = await _begin(wire, most_bytes)
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=".", delete=False) as file:
            try:
                while length:
                    data = await _piece(wire, length)
                    await asyncio.to_thread(file.write, data)
                    length -= len(data)
                file.flush()
                os.replace(file.name, target)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        # What goes wrong with the other end is told apart where it is read.
        raise OwnDiskError(f"cannot write {target}: {error.strerror}") from error


async def _piece(wire: Wire, length: int) -> bytes:
    try:
        async with asyncio.timeout(SILENCE_S):
            data = await wire.reader.read(min(length, 4 * PIECE_BYTES))
    except TimeoutError as error:
        raise PeerError(f"nothing more came for {SILENCE_S:.0f} s") from error
    except OSError as error:
        raise PeerError(str(error)) from error
    if not data:
        raise PeerError(f"the answer was cut off, {length} bytes before its end")
    return data


async def _begin(wire: Wire, most_bytes: int) -> int:
    status, length = await read_answer(wire.reader)
    if status is Status.REFUSED:
        reason = await wire.reader.readexactly(min(length, MOST_REASON_BYTES))
        raise PeerRefusedError(_printable(reason))
    if length > most_bytes:
        raise PeerError(f"an answer of {length} bytes, where at most {most_bytes} are taken")
    return length


def _printable(reason: bytes) -> str:
    """What a stranger says may end up on a terminal."""
    return "".join(c if c.isprintable() else "?" for c in reason.decode("utf-8", "replace"))


async def give(wire: Wire, slot: int, header: Header, reply: Answer) -> None:
    """Answer the request of which `header` was read."""
    async with asyncio.timeout(SILENCE_S):
        body = await wire.reader.readexactly(header.body_bytes)
    try:
        async with asyncio.timeout(ANSWER_S):
            given = await reply(slot, header.kind, body)
        if isinstance(given, Path):
            # A worker in a sandbox may have put a link to a file of ours there.
            with _opened(given) as file:
                await _give_file(wire, file)
            return
    except TrainyardError as error:
        await _refuse(wire, str(error))
        return
    except FileNotFoundError:
        await _refuse(wire, "that is not here")
        return
    async with asyncio.timeout(SILENCE_S):
        await wire.send(answer(Status.GIVEN, len(given)) + given)


def _opened(path: Path) -> IO[bytes]:
    try:
        return open_plain(path)
    except RunError as error:
        # Where our files are is not for others.
        raise FileNotFoundError(path) from error


async def _give_file(wire: Wire, file: IO[bytes]) -> None:
    length = os.fstat(file.fileno()).st_size
    wire.writer.write(answer(Status.GIVEN, length))
    while length:
        data = await asyncio.to_thread(file.read, min(length, 4 * PIECE_BYTES))
        if not data:
            raise PeerError("a file became shorter while it was sent")
        async with asyncio.timeout(SILENCE_S):
            await wire.send(data)
        length -= len(data)


async def _refuse(wire: Wire, reason: str) -> None:
    said = reason.encode()[:MOST_REASON_BYTES]
    async with asyncio.timeout(SILENCE_S):
        await wire.send(answer(Status.REFUSED, len(said)) + said)
