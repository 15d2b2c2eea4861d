"""A worker that nobody can connect to is reached by a relay, which learns nothing of it."""

import asyncio
import contextlib
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.agent.peers_yard import Peer, echo_at, introduce, peer, peers, until, wallet
from worker_agent.peers import registering
from worker_agent.peers import relay as relay_module
from worker_agent.peers.dialling import CALL, REGISTER, TAKE, connect, dial
from worker_agent.peers.errors import PeerError
from worker_agent.peers.identity import Identity, own_identity
from worker_agent.peers.registering import LENGTHS, PROOF, Registration
from worker_agent.peers.relay import Bounds, Relay

SECRET = b"the forty-two secrets of a training run"
ROOT = Path(__file__).resolve().parents[2]


class Recording(Relay):
    """Keeps all that passes."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = b""

    def passing(self, data: bytes) -> bytes:
        self.seen += data
        return data


class Tampering(Relay):
    """Changes a byte of whatever comes after the handshake."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._left = after

    def passing(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left >= 0 or not data:
            return data
        return data[:-1] + bytes([data[-1] ^ 1])


@contextlib.asynccontextmanager
async def behind(relay: Relay, folder: Path) -> AsyncIterator[tuple[Peer, Peer]]:
    """One worker that listens, and one that only the relay can reach."""
    async with (
        peer(0, folder / "0") as open_one,
        peer(1, folder / "1", relay=relay.address) as hidden,
    ):
        introduce([open_one, hidden])
        yield open_one, hidden


def test_a_worker_behind_a_relay_is_asked_and_asks(tmp_path: Path) -> None:
    async def go() -> None:
        async with Recording() as relay, behind(relay, tmp_path) as (open_one, hidden):
            open_one.answers["ready"] = hidden.answers["ready"] = b"yes: " + SECRET

            assert hidden.card.endpoints == (f"relay:{relay.address}",)
            assert await open_one.plane.ask(1, "ready", SECRET, timeout_s=20) == b"yes: " + SECRET
            assert hidden.asked == [(0, "ready", SECRET)]
            assert len(relay.seen) > 1000
            assert SECRET not in relay.seen
            assert b"ready" not in relay.seen
            assert await hidden.plane.ask(0, "ready", timeout_s=20) == b"yes: " + SECRET

    asyncio.run(go())


def test_streams_and_files_come_through_a_relay(tmp_path: Path) -> None:
    async def go() -> None:
        async with Recording() as relay, peers(tmp_path, 2, relay.address) as (first, second):
            said = SECRET * 50_000
            (tmp_path / "state").write_bytes(said)
            second.answers["state"] = tmp_path / "state"

            await first.plane.fetch(1, "state", b"", tmp_path / "got", most_bytes=len(said))
            async with await echo_at(second.doors / "in"):
                reader, writer = await asyncio.open_unix_connection(first.doors / "to-1")
                writer.write(said)
                writer.write_eof()
                heard = await reader.read(-1)
                writer.close()

            assert (tmp_path / "got").read_bytes() == said
            assert heard == said + b" and that was all"
            assert len(relay.seen) > 3 * len(said)
            assert SECRET not in relay.seen

    asyncio.run(go())


@pytest.mark.parametrize("after", [0, 1500, 4000])
def test_a_relay_that_changes_a_byte_only_ends_the_connection(after: int, tmp_path: Path) -> None:
    async def go() -> None:
        async with Tampering(after) as relay, behind(relay, tmp_path) as (open_one, hidden):
            hidden.answers["state"] = bytes(100_000)

            with pytest.raises(PeerError, match="worker 1 cannot be asked"):
                await open_one.plane.ask(1, "state", bytes(10_000), timeout_s=20)
            with pytest.raises(PeerError, match="worker 1 cannot be asked"):
                await open_one.plane.fetch(
                    1, "state", bytes(10_000), tmp_path / "got", most_bytes=10**6
                )
            assert not (tmp_path / "got").exists()

    asyncio.run(go())


def test_a_relay_cannot_put_itself_in_a_workers_place(tmp_path: Path) -> None:
    """Somebody else answers at the end of the pipe: with a certificate that is not the worker's."""

    async def go() -> None:
        async with (
            Relay() as relay,
            behind(relay, tmp_path) as (open_one, hidden),
            peer(1, tmp_path / "evil", relay=relay.address) as evil,
        ):
            evil.answers["ready"] = b"yes"
            evil.plane.know({0: open_one.card})
            members = relay._members
            members[hidden.identity.fingerprint] = members[evil.identity.fingerprint]

            with pytest.raises(PeerError):
                await open_one.plane.ask(1, "ready", SECRET, timeout_s=20)
            assert evil.asked == []

    asyncio.run(go())


def _with_another_key(identity: Identity, other: Identity, nonce: bytes) -> bytes:
    return other.sign(PROOF + nonce)


def _for_another_nonce(identity: Identity, other: Identity, nonce: bytes) -> bytes:
    return identity.sign(PROOF + bytes(32))


def _without_a_purpose(identity: Identity, other: Identity, nonce: bytes) -> bytes:
    return identity.sign(nonce)


def _of_nothing(identity: Identity, other: Identity, nonce: bytes) -> bytes:
    return b""


@pytest.mark.parametrize(
    "forge", [_with_another_key, _for_another_nonce, _without_a_purpose, _of_nothing]
)
def test_a_forged_registration_is_refused(
    forge: Callable[[Identity, Identity, bytes], bytes], tmp_path: Path
) -> None:
    async def go() -> None:
        async with Relay() as relay:
            identity = own_identity(tmp_path / "a", wallet("a").address)
            other = own_identity(tmp_path / "b", wallet("b").address)
            reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            writer.write(REGISTER)
            proof = forge(identity, other, await reader.readexactly(32))
            writer.write(LENGTHS.pack(len(identity.der), len(proof)) + identity.der + proof)

            assert await reader.read(-1) == b""
            writer.close()
            with pytest.raises(PeerError, match="no such worker"):
                await dial(f"relay:{relay.address}", identity.fingerprint)

    asyncio.run(go())


@pytest.mark.parametrize(
    "said",
    [
        bytes(range(256)) * 4,
        b"GET / HTTP/1.1\r\n\r\n",
        TAKE + bytes(16),
        REGISTER + b"\xff" * 70_000,
        REGISTER + LENGTHS.pack(500, 70) + bytes(570),
        CALL[:3],
    ],
)
def test_garbage_harms_no_relay(said: bytes, tmp_path: Path) -> None:
    async def go() -> None:
        async with Relay() as relay, behind(relay, tmp_path) as (open_one, hidden):
            hidden.answers["ready"] = b"yes"
            _, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            writer.write(said)
            writer.write_eof()
            await until(lambda: relay.counts["connection lost"] == 1)
            writer.close()

            assert await open_one.plane.ask(1, "ready", timeout_s=20) == b"yes"

    asyncio.run(go())


def test_a_relay_hangs_up_on_the_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "_ASK_S", 0.1)
    monkeypatch.setattr(relay_module, "SILENCE_S", 0.1)

    async def go() -> None:
        async with Relay() as relay:
            reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
            assert await reader.read(-1) == b""
            writer.close()
            identity = own_identity(tmp_path, wallet("a").address)
            registration = await Registration.open(relay.address, identity)
            # It never says that it is still there, nor does it answer.
            await until(lambda: not relay._members)
            registration.close()

    asyncio.run(go())


def test_a_pipe_in_which_nothing_moves_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "_IDLE_S", 0.2)

    async def go() -> None:
        async with Relay() as relay, behind(relay, tmp_path) as (_, hidden):
            sock = await dial(f"relay:{relay.address}", hidden.identity.fingerprint)
            with sock:
                assert await asyncio.get_running_loop().sock_recv(sock, 1) == b""

    asyncio.run(go())


def test_who_is_called_and_does_not_answer_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "_ASK_S", 0.5)

    async def go() -> None:
        async with Relay() as relay:
            identity = own_identity(tmp_path, wallet("a").address)
            registration = await Registration.open(relay.address, identity)
            with pytest.raises(PeerError, match="did not answer"):
                await dial(f"relay:{relay.address}", identity.fingerprint)
            registration.close()

    asyncio.run(go())


def test_a_relay_has_bounds(tmp_path: Path) -> None:
    async def go() -> None:
        bounds = Bounds(connections=5, registrations=1, pipes=1)
        async with Relay(bounds=bounds) as relay, behind(relay, tmp_path) as (_, hidden):
            endpoint = f"relay:{relay.address}"
            other = own_identity(tmp_path / "other", wallet("other").address)
            with pytest.raises(PeerError, match="does not take this worker"):
                await Registration.open(relay.address, other)
            with await dial(endpoint, hidden.identity.fingerprint):
                with pytest.raises(PeerError, match="too many connections"):
                    await dial(endpoint, hidden.identity.fingerprint)
                more = [await connect(relay.address) for _ in range(3)]
                assert await asyncio.get_running_loop().sock_recv(more[-1], 1) == b""
                for sock in more:
                    sock.close()
            await until(lambda: not relay._pipes)
            assert relay.counts["one too many"] == 3

    asyncio.run(go())


def test_a_worker_comes_back_when_the_relay_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registering, "_SHORTEST_PAUSE_S", 0.05)

    async def go() -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with Relay() as relay:
                pair = behind(relay, tmp_path)
                open_one, hidden = await stack.enter_async_context(pair)
                hidden.answers["ready"] = b"yes"
            with pytest.raises(PeerError, match="cannot be asked"):
                await open_one.plane.ask(1, "ready", timeout_s=20)
            again = await stack.enter_async_context(Relay(port=relay.port))
            await until(lambda: bool(again._members))

            assert await open_one.plane.ask(1, "ready", timeout_s=20) == b"yes"

    asyncio.run(go())


def test_who_registers_again_replaces_itself(tmp_path: Path) -> None:
    async def go() -> None:
        async with Relay() as relay, behind(relay, tmp_path) as (open_one, hidden):
            stale = relay._members[hidden.identity.fingerprint]
            async with peer(1, tmp_path / "1", relay=relay.address) as again:
                again.plane.know({0: open_one.card})
                again.answers["ready"] = b"yes"

                assert relay._members[hidden.identity.fingerprint] is not stale
                assert await open_one.plane.ask(1, "ready", timeout_s=20) == b"yes"

    asyncio.run(go())


def test_a_relay_that_is_not_there_is_named(tmp_path: Path) -> None:
    async def go() -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with pytest.raises(
            PeerError, match=rf"relay 127.0.0.1:{port} cannot be used .*peers.relay"
        ):
            async with peer(0, tmp_path, relay=f"127.0.0.1:{port}"):
                pass

    asyncio.run(go())


def test_a_relay_runs_by_itself(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "worker_agent.peers.relay"], cwd=ROOT, stdout=subprocess.PIPE
    ) as child:
        try:
            assert child.stdout is not None
            address = child.stdout.readline().decode().split()[-1]

            async def go() -> None:
                async with peers(tmp_path, 2, address) as (first, second):
                    second.answers["ready"] = b"yes"
                    assert await first.plane.ask(1, "ready", timeout_s=20) == b"yes"

            asyncio.run(go())
            child.send_signal(signal.SIGTERM)
            assert child.wait(20) == 0
        finally:
            child.kill()
