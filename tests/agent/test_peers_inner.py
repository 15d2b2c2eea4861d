"""Processes in two sandboxes talk as if they were on one machine."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agent.peer_sandboxes import INNER, ROOT, inside
from tests.agent.peers_yard import peers
from worker_agent.peers.inner import Config

CALLER = """
import hashlib, random, socket, sys, time
port, length = int(sys.argv[1]), int(sys.argv[2])
data = random.Random(1).randbytes(length)
with socket.create_connection(("127.0.0.1", port)) as sock:
    sock.sendall(data)
    sock.shutdown(socket.SHUT_WR)
    heard = b"".join(iter(lambda: sock.recv(1 << 16), b""))
print(hashlib.sha256(data).hexdigest(), heard.decode())
"""
# Says what it heard only when the other has said all, and comes late.
LISTENER = """
import hashlib, socket, sys, time
time.sleep(0.5)
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    sock, _ = server.accept()
    with sock:
        heard = b"".join(iter(lambda: sock.recv(1 << 16), b""))
        sock.sendall(hashlib.sha256(heard).hexdigest().encode())
sys.exit(3)
"""
LENGTH = 5_000_000


def python(code: str, *given: object) -> list[str]:
    return [sys.executable, "-c", code, *map(str, given)]


def test_sandboxes_talk_through_the_planes(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            peers(tmp_path),
            inside(tmp_path / "0", 0, python(CALLER, 20_001, LENGTH)) as caller,
            inside(tmp_path / "1", 1, python(LISTENER, 20_001)) as listener,
        ):
            said, _ = await caller.communicate()

            sent, heard = said.split()
            assert sent == heard
            assert caller.returncode == 0
            assert await listener.wait() == 3

    asyncio.run(go())


def test_what_a_command_says_last_arrives_though_it_ends_at_once(tmp_path: Path) -> None:
    """A leader of a cluster ends while its last answer to a follower is still on its way."""
    hearing = """
import socket
with socket.create_connection(("127.0.0.1", 20001)) as sock:
    print(sum(map(len, iter(lambda: sock.recv(1 << 16), b""))))
"""
    speaking = f"""
import os, socket
with socket.create_server(("127.0.0.1", 20001)) as server:
    sock, _ = server.accept()
    sock.sendall(bytes({LENGTH}))
    os._exit(0)
"""

    async def go() -> None:
        async with (
            peers(tmp_path),
            inside(tmp_path / "0", 0, python(hearing)) as caller,
            inside(tmp_path / "1", 1, python(speaking)),
        ):
            said, _ = await caller.communicate()
            assert int(said) == LENGTH

    asyncio.run(go())


def test_a_worker_may_have_several_processes(tmp_path: Path) -> None:
    """As in mode async, where one worker also leads and keeps the weights."""
    ports = [[20_000, 20_001, 20_002], [20_003]]

    async def go() -> None:
        async with (
            peers(tmp_path),
            inside(tmp_path / "0", 0, python(LISTENER, 20_002), ports=ports),
            inside(tmp_path / "1", 1, python(CALLER, 20_002, 1000), ports=ports) as caller,
        ):
            said, _ = await caller.communicate()
            sent, heard = said.split()
            assert sent == heard

    asyncio.run(go())


def test_only_the_ports_of_the_run_can_be_reached_from_outside(tmp_path: Path) -> None:
    async def go() -> None:
        async with (
            peers(tmp_path) as (first, _),
            inside(tmp_path / "1", 1, python(LISTENER, 20_005)),
        ):
            # The other end may say anything in the two bytes with which a stream begins.
            reader, writer = await asyncio.open_unix_connection(first.doors / "to-1")
            writer.write((20_005).to_bytes(2, "big") + b"let me in")
            writer.write_eof()
            assert await reader.read(-1) == b""
            writer.close()

    asyncio.run(go())


def test_a_worker_that_is_gone_is_noticed_at_once(tmp_path: Path) -> None:
    """TensorFlow waits for ever for a peer whose connection stays open."""
    waiting = """
import socket, sys
with socket.create_connection(("127.0.0.1", 20001)) as sock:
    print(sock.recv(5).decode(), flush=True)
    try:
        print(repr(sock.recv(5)))
    except ConnectionError as error:
        print("lost")
"""
    greeting = """
import socket, time
with socket.create_server(("127.0.0.1", 20001)) as server:
    sock, _ = server.accept()
    sock.sendall(b"hello")
    time.sleep(600)
"""

    async def go() -> None:
        async with (
            peers(tmp_path),
            inside(tmp_path / "0", 0, python(waiting)) as caller,
            inside(tmp_path / "1", 1, python(greeting)) as listener,
        ):
            assert caller.stdout is not None
            assert await caller.stdout.readline() == b"hello\n"
            listener.kill()
            assert await caller.stdout.readline() in (b"b''\n", b"lost\n")

    asyncio.run(go())


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Of a run with one worker, which needs no network."""
    Config(str(tmp_path), 0, [[20_000]]).write(tmp_path / "inner.json")
    return tmp_path / "inner.json"


@pytest.mark.parametrize(
    ("code", "status"),
    [("raise SystemExit(75)", 75), ("import os; os.kill(os.getpid(), 9)", 128 + 9), ("", 0)],
)
def test_its_status_is_that_of_the_command(code: str, status: int, config: Path) -> None:
    ended = subprocess.run([*INNER, config, "--", *python(code)], cwd=ROOT, timeout=60, check=False)

    assert ended.returncode == status


def test_what_is_said_to_it_is_said_to_the_command(config: Path) -> None:
    code = "import sys; print(sys.stdin.read().upper()); print('no', file=sys.stderr)"
    ended = subprocess.run(
        [*INNER, config, "--", *python(code)],
        cwd=ROOT,
        input="hello",
        text=True,
        capture_output=True,
        timeout=60,
        check=True,
    )

    assert (ended.stdout, ended.stderr) == ("HELLO\n", "no\n")


TELLS_OF_SIGNALS = """
import os, signal, sys
def told(number, _):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        sys.exit(9)
signal.signal(signal.SIGUSR1, told)
signal.signal(signal.SIGTERM, told)
print(os.getpid(), flush=True)
while True:
    signal.pause()
"""


def test_signals_reach_the_command(config: Path) -> None:
    with subprocess.Popen(
        [*INNER, config, "--", *python(TELLS_OF_SIGNALS)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as inner:
        assert inner.stdout is not None
        inner.stdout.readline()
        inner.send_signal(signal.SIGUSR1)
        assert inner.stdout.readline() == "SIGUSR1\n"
        inner.send_signal(signal.SIGTERM)
        assert inner.stdout.readline() == "SIGTERM\n"
        assert inner.wait(60) == 9


def test_the_command_does_not_outlive_it(config: Path) -> None:
    with subprocess.Popen(
        [*INNER, config, "--", *python(TELLS_OF_SIGNALS)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    ) as inner:
        assert inner.stdout is not None
        inner.stdout.readline()
        inner.kill()
        # The pipe ends when nobody holds it any more, the command included.
        assert inner.stdout.read() == ""


@pytest.mark.parametrize("given", [[], ["--"], ["python"]])
def test_a_wrong_call_says_how_it_is_called(given: list[str], config: Path) -> None:
    ended = subprocess.run(
        [*INNER, config, *given], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode == 1
    assert ended.stderr.startswith("usage: ")
    assert "Traceback" not in ended.stderr


def test_it_needs_nothing_but_the_standard_library() -> None:
    code = """
import sys, worker_agent.peers.inner
tops = {name.partition(".")[0] for name in sys.modules}
print(sorted(tops - set(sys.stdlib_module_names) - {"worker_agent", "trainyard", "__main__"}))
"""
    ended = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}){code}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout == "[]\n"
