"""Workers meet by the certificates on their cards, and nobody else gets in."""

import asyncio
import os
import socket
from pathlib import Path

import pytest

from tests.agent.peers_yard import echo_at, introduce, peer, peers, until
from trainyard.protocol.cards import PeerCard
from trainyard.protocol.errors import PermanentError
from worker_agent.peers.errors import OwnDiskError, PeerError, PeerRefusedError
from worker_agent.peers.frames import MOST_BODY_BYTES

LARGE_BYTES = 60 << 20


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


def test_what_our_own_disk_does_not_take_is_not_the_peers_failure(tmp_path: Path) -> None:
    async def go() -> None:
        async with peers(tmp_path) as (first, second):
            (tmp_path / "file").write_bytes(os.urandom(1 << 20))
            second.answers["state"] = tmp_path / "file"

            with pytest.raises(OwnDiskError, match="cannot write"):
                await first.plane.fetch(
                    1, "state", b"", tmp_path / "missing" / "got", most_bytes=LARGE_BYTES
                )

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
