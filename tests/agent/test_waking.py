"""Being told of new blocks: the agent looks sooner, and its loss changes nothing else."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from tests.agent.operators import Scene, scene, wait_until
from trainyard.devnet.agents import Agent
from worker_agent.children import passed_environment
from worker_agent.waking import Waker


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    # A block for each transaction, and none without.
    with scene(tmp_path_factory.mktemp("market"), block_time_s=0) as found:
        yield found


def head(market: Scene, agent: Agent) -> int:
    return market.worker("status", agent.home)["chain"]["head"] or 0


def listeners(agent: Agent) -> list[psutil.Process]:
    found = []
    for child in psutil.Process(agent.child.pid).children():
        # One that was killed has no command line for a moment, and then is gone.
        with suppress(psutil.ZombieProcess, psutil.NoSuchProcess):
            if "worker_agent.waking" in child.cmdline():
                found.append(child)
    return found


def test_agent_that_hardly_ever_looks_is_woken_by_blocks(market: Scene) -> None:
    address = market.devnet.url.replace("http", "ws")
    agent = market.agent("worker-1", chain__poll_s=100_000.0, chain__wake_by=f'"{address}"')
    wait_until(lambda: market.worker("status", agent.home)["running"])
    before = wait_until(lambda: head(market, agent))

    def is_seen() -> bool:
        market.devnet.chain.mine()
        return bool(head(market, agent) > before)

    wait_until(is_seen)
    [listener] = listeners(agent)
    # Providers put their customers' keys into addresses.
    assert not any(address in word for word in listener.cmdline())

    os.kill(listener.pid, signal.SIGKILL)
    wait_until(lambda: not listeners(agent))
    assert market.worker("status", agent.home)["mode"] == "running"
    agent.stop()
    assert agent.child.process.returncode == 0


def test_address_where_nobody_answers_changes_nothing(market: Scene, tmp_path: Path) -> None:
    agent = market.agent("worker-2", chain__poll_s=0.2, chain__wake_by='"ws://127.0.0.1:1"')
    wait_until(lambda: market.worker("status", agent.home)["running"])
    before = wait_until(lambda: head(market, agent))
    market.devnet.chain.mine()

    wait_until(lambda: head(market, agent) > before)
    [listener] = listeners(agent)
    os.kill(agent.child.pid, signal.SIGKILL)
    # It does not outlive the agent, however that ends.
    listener.wait(20)


def test_without_an_address_there_is_nothing() -> None:
    waker = Waker(None)
    waker.see_to()
    assert waker.handles == ()
    waker.read([1])
    waker.close()


def test_listener_is_passed_environmently_what_children_get(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", "/run/credentials/trainyard.service")
    monkeypatch.setenv("HTTPS_PROXY", "http://user:secret@127.0.0.1:1")
    waker = Waker("ws://127.0.0.1:1")
    waker.see_to()
    try:
        mine = psutil.Process().children()
        [listener] = [one for one in mine if "worker_agent.waking" in one.cmdline()]
        passed = listener.environ()
    finally:
        waker.close()

    assert passed == passed_environment()
    assert "PATH" in passed
    assert not passed.keys() & {"CREDENTIALS_DIRECTORY", "HTTPS_PROXY"}
