"""Whoever comes to a worker's port without the right certificate, or talks nonsense with it."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.agent.peers_yard import card_of, echo_at, peer, peers, until, wallet
from worker_agent.peers import plane as plane_module
from worker_agent.peers import wire
from worker_agent.peers.errors import PeerError
from worker_agent.peers.identity import own_identity


async def _knock_with(port: int, context: ssl.SSLContext) -> bytes:
    """What somebody gets to hear who tries to ask for something."""
    try:
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", port, ssl=context, server_hostname=""
        )
    except OSError:
        return b""
    try:
        writer.write(b"TYP1\x01\x05\0\0\0\0ready")
        return await reader.read(-1)
    except OSError:
        return b""
    finally:
        writer.transport.abort()


def _client(folder: Path | None, name: str = "stranger") -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if folder is not None:
        context.load_cert_chain(own_identity(folder, wallet(name).address).path)
    return context


def _no_certificate(tmp_path: Path) -> ssl.SSLContext:
    return _client(None)


def _certificate_of_nobody(tmp_path: Path) -> ssl.SSLContext:
    return _client(tmp_path / "stranger")


def _certificate_in_the_name_of_a_worker(tmp_path: Path) -> ssl.SSLContext:
    return _client(tmp_path / "impostor", "worker 1")


def _older_tls(tmp_path: Path) -> ssl.SSLContext:
    context = _client(tmp_path / "1", "worker 1")
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


@pytest.mark.parametrize(
    "make",
    [_no_certificate, _certificate_of_nobody, _certificate_in_the_name_of_a_worker, _older_tls],
)
def test_a_stranger_gets_no_answer(make: Callable[[Path], ssl.SSLContext], tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            first.answers["ready"] = b"yes"

            assert await _knock_with(first.plane.port, make(tmp_path)) == b""
            await until(lambda: first.plane.counts["not let in"] == 1)
            assert first.asked == []
            assert await second.plane.ask(0, "ready", timeout_s=20) == b"yes"

    asyncio.run(go())


def test_the_right_certificate_is_enough(tmp_path: Path) -> None:
    """What the strangers did wrong was nothing else than who they were."""

    async def go() -> None:
        async with peers(tmp_path) as (first, _):
            first.answers["ready"] = b"yes"
            context = _client(tmp_path / "1", "worker 1")

            assert (await _knock_with(first.plane.port, context)).endswith(b"yes")

    asyncio.run(go())


def test_one_who_answers_in_place_of_a_worker_is_told_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second), peer(1, tmp_path / "evil") as evil:
            evil.plane.know({0: first.card})
            evil.answers["ready"] = b"yes"
            # The card is the worker's; where it leads to is not.
            first.plane.know({1: card_of(second.identity, second.account, *evil.plane.endpoints)})

            with pytest.raises(PeerError, match="worker 1 cannot be asked"):
                await first.plane.ask(1, "ready", b"a secret", timeout_s=20)
            assert evil.asked == []

    asyncio.run(go())


def test_the_next_endpoint_is_tried_when_one_leads_nowhere(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            second.answers["ready"] = b"yes"
            with socket.create_server(("127.0.0.1", 0)) as free:
                dead = f"127.0.0.1:{free.getsockname()[1]}"
            card = card_of(second.identity, second.account, dead, *second.plane.endpoints)
            first.plane.know({1: card})

            assert await first.plane.ask(1, "ready", timeout_s=20) == b"yes"

    asyncio.run(go())


async def _garbage(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(os.urandom(100_000))
    await writer.drain()
    writer.close()


async def _half_a_handshake(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x16\x03\x01\x02\x00\x01")
    writer.close()


async def _nothing(port: int) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()


@pytest.mark.parametrize("harm", [_garbage, _half_a_handshake, _nothing])
def test_garbage_on_the_port_harms_nobody(
    harm: Callable[[int], Awaitable[None]], tmp_path: Path
) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            first.answers["ready"] = b"yes"
            for _ in range(5):
                await harm(first.plane.port)

            assert await second.plane.ask(0, "ready", timeout_s=20) == b"yes"
            await until(lambda: first.plane.counts["not let in"] == 5)

    asyncio.run(go())


def test_a_known_worker_that_talks_nonsense_harms_nobody(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            first.answers["ready"] = b"yes"
            reader, writer = await asyncio.open_connection(
                "127.0.0.1", first.plane.port, ssl=_client(tmp_path / "1", "worker 1")
            )
            writer.write(b"GET / HTTP/1.1\r\n\r\n")

            assert await reader.read(-1) == b""
            writer.close()
            assert await second.plane.ask(0, "ready", timeout_s=20) == b"yes"

    asyncio.run(go())


def test_who_connects_and_says_nothing_is_hung_up_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "HANDSHAKE_S", 0.2)
    monkeypatch.setattr(plane_module, "_HEADER_S", 0.2)

    async def go() -> None:
        async with peers(tmp_path) as (first, _):
            before, _writer = await asyncio.open_connection("127.0.0.1", first.plane.port)
            after, writer = await asyncio.open_connection(
                "127.0.0.1", first.plane.port, ssl=_client(tmp_path / "1", "worker 1")
            )

            assert await before.read(-1) == b""
            assert await after.read(-1) == b""
            for one in (_writer, writer):
                one.close()

    asyncio.run(go())


def test_strangers_crowd_out_each_other_and_no_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane_module, "MOST_UNPROVEN", 4)

    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            first.answers["ready"] = b"yes"
            silent = [
                await asyncio.open_connection("127.0.0.1", first.plane.port) for _ in range(10)
            ]

            assert await second.plane.ask(0, "ready", timeout_s=20) == b"yes"
            assert first.plane.counts["crowded out"] == 7
            for _, writer in silent:
                writer.close()

    asyncio.run(go())


def test_one_worker_gets_only_so_many_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plane_module, "MOST_PER_SLOT", 2)

    async def go() -> None:
        async with peers(tmp_path, 3) as (first, second, third):
            first.answers["ready"] = b"yes"
            async with await echo_at(first.doors / "in"):
                streams = [
                    await asyncio.open_unix_connection(second.doors / "to-0") for _ in range(2)
                ]
                for reader, writer in streams:
                    writer.write(b"hello")
                    await reader.readexactly(5)

                with pytest.raises(PeerError):
                    await second.plane.ask(0, "ready", timeout_s=20)
                third_reader, third_writer = await asyncio.open_unix_connection(
                    second.doors / "to-0"
                )
                assert await third_reader.read(-1) == b""
                assert await third.plane.ask(0, "ready", timeout_s=20) == b"yes"
                for _, writer in [*streams, (third_reader, third_writer)]:
                    writer.close()

    asyncio.run(go())
