"""Workers meet by the certificates on their cards, and nobody else gets in."""

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.agent.peers_yard import card_of, echo_at, introduce, peer, peers, wallet
from trainyard.protocol.cards import PeerCard
from trainyard.protocol.errors import PermanentError
from worker_agent.peers import plane as plane_module
from worker_agent.peers import wire
from worker_agent.peers.errors import PeerError, PeerRefusedError
from worker_agent.peers.frames import MOST_BODY_BYTES
from worker_agent.peers.identity import own_identity

LARGE_BYTES = 60 << 20


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.01)


def test_a_request_is_answered_and_its_sender_known_by_its_certificate(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path, 3) as (first, second, third):
            second.answers["ready"] = b"yes"

            assert await first.plane.ask(1, "ready", b"round 3", timeout_s=20) == b"yes"
            assert await third.plane.ask(1, "ready", timeout_s=20) == b"yes"
            assert second.asked == [(0, "ready", b"round 3"), (2, "ready", b"")]

    asyncio.run(go())


def test_many_ask_at_once(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            second.answers["ready"] = b"yes"
            asks = [first.plane.ask(1, "ready", b"%d" % n, timeout_s=20) for n in range(20)]

            assert await asyncio.gather(*asks) == [b"yes"] * 20
            assert sorted(body for _, _, body in second.asked) == sorted(
                b"%d" % n for n in range(20)
            )

    asyncio.run(go())


def test_a_refusal_comes_with_its_reason(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            second.answers["state"] = PermanentError("state 4 is\nnot kept")
            second.answers["file"] = tmp_path / "nothing"

            with pytest.raises(
                PeerRefusedError, match=r"worker 1 refuses 'state': state 4 is\?not"
            ):
                await first.plane.ask(1, "state", timeout_s=20)
            with pytest.raises(PeerRefusedError, match="not here"):
                await first.plane.fetch(1, "file", b"", tmp_path / "got", most_bytes=10)
            assert not (tmp_path / "got").exists()

    asyncio.run(go())


def test_a_link_that_a_sandbox_left_gives_no_file_of_ours(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            (tmp_path / "keystore.json").write_text("a key")
            (tmp_path / "state").symlink_to(tmp_path / "keystore.json")
            (tmp_path / "states").symlink_to(tmp_path)
            second.answers["state"] = tmp_path / "state"
            second.answers["other state"] = tmp_path / "states" / "keystore.json"

            for kind in ("state", "other state"):
                with pytest.raises(PeerRefusedError, match="that is not here"):
                    await first.plane.fetch(1, kind, b"", tmp_path / "got", most_bytes=10)
            assert not (tmp_path / "got").exists()

    asyncio.run(go())


def test_a_mistake_in_an_answer_costs_one_connection(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            second.answers["ready"] = b"yes"

            with pytest.raises(PeerError, match="worker 1 cannot be asked for 'unheard of'"):
                await first.plane.ask(1, "unheard of", timeout_s=20)
            assert second.plane.counts["connection failed"] == 1
            assert await first.plane.ask(1, "ready", timeout_s=20) == b"yes"

    asyncio.run(go())


def test_a_large_file_goes_from_disk_to_disk(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            source = tmp_path / "source"
            source.write_bytes(os.urandom(1 << 20) * (LARGE_BYTES >> 20))
            second.answers["state"] = source
            target = tmp_path / "got"

            before = _peak_bytes()
            await first.plane.fetch(1, "state", b"3", target, most_bytes=LARGE_BYTES)
            grown = _peak_bytes() - before

            assert target.read_bytes() == source.read_bytes()
            assert grown < LARGE_BYTES // 2
            with pytest.raises(PeerError, match="at most"):
                await first.plane.fetch(
                    1, "state", b"3", tmp_path / "more", most_bytes=LARGE_BYTES - 1
                )
            assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "got", "source"]

    asyncio.run(go())


def _peak_bytes() -> int:
    """The most memory that this process has had so far."""
    (line,) = [
        line
        for line in Path("/proc/self/status").read_text().splitlines()
        if line.startswith("VmHWM")
    ]
    return int(line.split()[1]) << 10


def test_a_fetch_that_is_cut_off_leaves_nothing(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            source = tmp_path / "source"
            source.write_bytes(bytes(LARGE_BYTES))
            second.answers["state"] = source
            fetching = asyncio.create_task(
                first.plane.fetch(1, "state", b"", tmp_path / "got", most_bytes=LARGE_BYTES)
            )
            await until(lambda: len(list(tmp_path.glob(".*"))) == 1)

            second.plane.know({})

            with pytest.raises(PeerError):
                await fetching
            assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1", "source"]

    asyncio.run(go())


def test_more_than_fits_is_neither_asked_nor_answered(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            second.answers["much"] = bytes(MOST_BODY_BYTES + 1)

            with pytest.raises(ValueError, match="at most"):
                await first.plane.ask(1, "much", bytes(MOST_BODY_BYTES + 1), timeout_s=20)
            with pytest.raises(PeerError, match="at most"):
                await first.plane.ask(1, "much", timeout_s=20)

    asyncio.run(go())


def test_a_stream_goes_both_ways_and_may_be_half_closed(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            said = os.urandom(3_000_000)
            async with await echo_at(second.doors / "in"):
                reader, writer = await asyncio.open_unix_connection(first.doors / "to-1")
                writer.write(said)
                writer.write_eof()
                heard = await reader.read(-1)
                writer.close()

            assert heard == said + b" and that was all"

    asyncio.run(go())


def test_a_stream_waits_for_a_sandbox_that_only_starts(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            reader, writer = await asyncio.open_unix_connection(first.doors / "to-1")
            writer.write(b"hello")
            writer.write_eof()
            await until(lambda: bool(second.plane._wires))
            async with await echo_at(second.doors / "in"):
                assert await reader.read(-1) == b"hello and that was all"
                writer.close()

    asyncio.run(go())


def test_what_a_sandbox_links_to_is_not_followed(tmp_path: Path) -> None:
    """The folder is written to by what nobody trusts: a link there leads nowhere."""

    async def go() -> None:
        host = await echo_at(tmp_path / "of-the-host")
        async with peers(tmp_path) as (first, second), host:
            (second.doors / "in").symlink_to(tmp_path / "of-the-host")
            reader, writer = await asyncio.open_unix_connection(first.doors / "to-1")
            writer.write(b"let me in")
            writer.write_eof()

            assert await reader.read(-1) == b""
            writer.close()

    asyncio.run(go())


def test_a_stream_that_is_lost_at_one_end_is_lost_at_the_other(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            async with await echo_at(second.doors / "in"):
                reader, writer = await asyncio.open_unix_connection(first.doors / "to-1")
                writer.write(b"hello")
                assert await reader.readexactly(5) == b"hello"

                second.plane.know({})

                assert await reader.read(-1) == b""
                writer.close()
            await until(lambda: not first.plane._wires)

    asyncio.run(go())


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


def test_a_replaced_worker_is_cut_off_and_does_not_come_back(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            peers(tmp_path) as (first, old),
            peer(1, tmp_path / "new", name="replacement") as new,
            await echo_at(first.doors / "in"),
        ):
            first.answers["ready"] = new.answers["ready"] = b"yes"
            reader, writer = await asyncio.open_unix_connection(old.doors / "to-0")
            writer.write(b"hello")
            await reader.readexactly(5)

            introduce([first, new])

            assert await reader.read(-1) == b""
            writer.close()
            assert first.plane.counts["cut off"] == 1
            with pytest.raises(PeerError):
                await old.plane.ask(0, "ready", timeout_s=20)
            assert await first.plane.ask(1, "ready", timeout_s=20) == b"yes"
            assert await new.plane.ask(0, "ready", timeout_s=20) == b"yes"
            assert [by for by, _, _ in first.asked] == [1]

    asyncio.run(go())


def test_one_certificate_is_one_worker(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            with pytest.raises(PeerError, match="two slots have one certificate"):
                first.plane.know({1: second.card, 2: second.card})

    asyncio.run(go())


def test_nobody_is_asked_who_has_no_card(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, _):
            with pytest.raises(PeerError, match="slot 5 has no worker"):
                await first.plane.ask(5, "ready", timeout_s=20)

    asyncio.run(go())


def test_nothing_is_left_of_a_plane(tmp_path: Path) -> None:
    cards: list[PeerCard] = []

    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            cards.extend([first.card, second.card])
            async with await echo_at(second.doors / "in"):
                _, writer = await asyncio.open_unix_connection(first.doors / "to-1")
                await until(lambda: bool(second.plane._wires))
        writer.close()
        await writer.wait_closed()
        assert len(asyncio.all_tasks()) == 1

    handles = len(os.listdir("/proc/self/fd"))
    asyncio.run(go())
    assert len(os.listdir("/proc/self/fd")) == handles
    assert not list(tmp_path.glob("*/doors/to-*"))
    for card in cards:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(card.endpoints[0].rpartition(":")[2])))
