"""What shows what an agent has: a process without the key that comes back, and goes with it."""

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.agent.operators import Scene, free_port, scene, wait_until
from trainyard.content.board import Board
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateway_server import GatewayServer
from trainyard.devnet.agents import Agent, password_file
from trainyard.protocol.errors import TransientError
from trainyard.protocol.profiles import Profile
from worker_agent.settings import ContentPlaces, Home
from worker_agent.showing import Showcase


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("market"), block_time_s=0) as found:
        yield found


def showers(agent: Agent) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(agent.child.pid).children():
        # One that was killed has no command line for a moment, and then is gone.
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if "worker_agent.showing" in child.cmdline():
                found.append(child)
    return found


def given(address: str, cid: Cid) -> bytes | None:
    source = GatewaySource(address)
    try:
        return source.fetch(cid)
    except TransientError:
        return None
    finally:
        source.close()


def own_store(market: Scene, name: str, port: int) -> dict[str, object]:
    return {
        "content__store": json.dumps(str(market.folder / f"{name} store")),
        "content__listen": f'"127.0.0.1:{port}"',
        "content__advertise": f'"http://127.0.0.1:{port}"',
    }


def test_agent_serves_its_store_and_nothing_outlives_it(market: Scene) -> None:
    port = free_port()
    agent = market.agent("worker-1", **own_store(market, "worker-1", port))
    address = str(market.devnet.accounts["worker-1"].address)
    book = wait_until(
        lambda: (found := market.person("requester").book()).workers.get(address) and found
    )
    cid = Cid(Codec.RAW, book.workers[address].profile)

    # Whoever knows the chain and the board finds the gateway, and by it all else.
    block = wait_until(lambda: given(market.devnet.gateway, cid))
    assert Profile.parse(block).gateway == f"http://127.0.0.1:{port}"
    assert wait_until(lambda: given(f"http://127.0.0.1:{port}", cid)) == block

    [shower] = showers(agent)
    environment = shower.environ()
    assert "CREDENTIALS_DIRECTORY" not in environment
    assert str(password_file(agent.home)) not in " ".join(shower.cmdline())
    os.kill(shower.pid, signal.SIGKILL)
    # It is soon there again, and the agent has said so.
    [again] = wait_until(lambda: [one for one in showers(agent) if one.pid != shower.pid])
    wait_until(lambda: given(f"http://127.0.0.1:{port}", cid))
    assert "nothing is served" in Home(agent.home).log.read_text()

    os.kill(agent.child.pid, signal.SIGKILL)
    again.wait(20)
    assert given(f"http://127.0.0.1:{port}", cid) is None


def test_agent_that_ends_in_order_ends_it_too(market: Scene) -> None:
    port = free_port()
    agent = market.agent("worker-2", **own_store(market, "worker-2", port))
    [shower] = wait_until(lambda: showers(agent))
    wait_until(lambda: market.worker("status", agent.home)["running"])
    agent.stop()
    assert agent.child.process.returncode == 0
    assert not shower.is_running()


def test_port_that_is_taken_is_told_and_tried_again_later(tmp_path: Path) -> None:
    content = Content(EmbeddedStore(tmp_path / "store"))
    profile = Profile.of("trainyard/test", b"c" * 32)
    cid = Cid.of(Codec.RAW, profile.data)
    with content.store.batch() as batch:
        batch.put(cid, profile.data)
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    with GatewayServer(content, board=Board()) as taken:
        listen = taken.address.removeprefix("http://")
        config = f"""
[chain]
endpoints = ["http://127.0.0.1:1"]
chain_id = 1
market = "0x{"ab" * 20}"
start_block = 0
[content]
store = "{tmp_path / "store"}"
listen = "{listen}"
"""
        home.config.write_text(config)
        showcase = Showcase(home, ContentPlaces(listen=listen))
        showcase.see_to()
        [handle] = showcase.handles
        wait_until(lambda: os.read(handle, 1) == b"" if _can_be_read(handle) else False)
        showcase.read([handle])
        assert showcase.handles == ()
        assert f"cannot listen at http://{listen}" in home.gateway_log.read_text()
        # Not at once: it would come to nothing again.
        showcase.see_to()
        assert showcase.handles == ()
    content.close()


def _can_be_read(handle: int) -> bool:
    return bool(select.select([handle], [], [], 0)[0])


def test_where_nothing_is_to_be_shown_there_is_nothing(tmp_path: Path) -> None:
    showcase = Showcase(Home(tmp_path), ContentPlaces())
    showcase.see_to()
    assert showcase.handles == ()
    showcase.read([1])
    showcase.close()
    assert list(tmp_path.iterdir()) == []


def test_it_knows_nothing_of_keys() -> None:
    """Nothing that could open one is loaded where strangers ask."""
    code = (
        "import sys, worker_agent.showing, worker_agent.exhibiting; "
        "print([one for one in sys.modules if one.startswith('trainyard.chain.keystore')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]"
