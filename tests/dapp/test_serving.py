"""The server as operators start it: one command, a relay beside it, and an end."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.agent.peers_yard import introduce, peer
from tests.dapp.server import wait_for
from tests.dapp.yard import Yard
from trainyard.content.lifeline import dying_with_parent

_END_S = 30


@contextmanager
def started(yard: Yard, folder: Path, **more: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """The command's process, and what it says first."""
    given = {
        "ENDPOINTS": yard.url,
        "CHAIN_ID": str(yard.chain_id),
        "MARKET": yard.market,
        "START_BLOCK": str(yard.start),
        "DATA": str(folder / "dapp"),
        "PORT": "0",
    } | more
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "trainyard", "dapp", "serve", "--json"],
            env=os.environ | {f"TRAINYARD_DAPP_{name}": one for name, one in given.items()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            preexec_fn=dying_with_parent(),
        )
    with process:
        try:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said, (folder / "log").read_text()
            yield process, json.loads(said)
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(address: str) -> bool:
    try:
        return httpx.get(f"{address}/readyz", trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def test_a_relay_runs_beside_the_server_and_ends_with_it(played: Yard, tmp_path: Path) -> None:
    async def reach(relay: str) -> bytes:
        """Ask a worker that only the relay can reach."""
        async with peer(0, tmp_path / "0") as one, peer(1, tmp_path / "1", relay=relay) as hidden:
            introduce([one, hidden])
            hidden.answers["ready"] = b"yes"
            assert hidden.card.endpoints == (f"relay:{relay}",)
            return await one.plane.ask(1, "ready", b"are you?", timeout_s=20)

    port = free_port()
    with started(played, tmp_path, RELAY_PORT=str(port)) as (process, said):
        assert said["relay"] == f"127.0.0.1:{port}"
        wait_for(lambda: is_ready(said["address"]), "the server")

        assert asyncio.run(reach(said["relay"])) == b"yes"

        process.terminate()
        # Ended in good order, it tells by which signal.
        assert process.wait(_END_S) == -signal.SIGTERM
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port)) != 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert any(line.get("route") == "/readyz" for line in lines)
