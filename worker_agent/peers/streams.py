"""Bytes of a training run, carried between a socket of this machine and another worker."""

import asyncio

from worker_agent.peers.frames import ALIVE, ENDED, PIECE_BYTES, piece, read_piece
from worker_agent.peers.wire import Wire

# TensorFlow may have nothing to say for hours, but its carriers have.
ALIVE_EVERY_S = 20.0
SILENCE_S = 90.0


async def splice(wire: Wire, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry both directions until both have ended. Raises if either is cut off."""
    async with asyncio.TaskGroup() as group:
        beating = group.create_task(_beat(wire))
        sending = group.create_task(_send(reader, wire))
        await _receive(wire, writer)
        await sending
        beating.cancel()


async def _send(reader: asyncio.StreamReader, wire: Wire) -> None:
    while data := await reader.read(PIECE_BYTES):
        await wire.send(piece(data))
    await wire.send(ENDED)


async def _receive(wire: Wire, writer: asyncio.StreamWriter) -> None:
    while True:
        async with asyncio.timeout(SILENCE_S):
            data = await read_piece(wire.reader)
        if data is None:
            continue
        if not data:
            break
        writer.write(data)
        await writer.drain()
    writer.write_eof()


async def _beat(wire: Wire) -> None:
    while True:
        await asyncio.sleep(ALIVE_EVERY_S)
        await wire.send(ALIVE)
