"""A cluster of TensorFlow in which one worker can be reached by nobody: it only connects to others.

What reaches it comes by a relay, which is a process of its own here as it is for operators.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.market.yard import AUDITOR, TRAINER, Market, live_of, root_of
from trainyard.devnet.agents import Agent
from trainyard.devnet.options import ETHER
from trainyard.engine.launching import run_local
from trainyard.engine.material import fetch_files
from trainyard.protocol.cards import PeerCard
from trainyard.protocol.commitments import Market as MarketName
from trainyard.protocol.manifest import Manifest
from worker_agent.joining import read_card

_SEGMENTS = 8


@contextmanager
def relaying() -> Iterator[tuple[psutil.Process, str]]:
    """A relay by its command, and where it is."""
    command = [sys.executable, "-m", "worker_agent.peers.relay"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            address = process.stdout.readline().removeprefix("relay on ").strip()
            yield psutil.Process(process.pid), address
        finally:
            process.terminate()


def listens(process: psutil.Process) -> list[str]:
    """Where a process takes connections from other machines."""
    return [
        f"{one.laddr.ip}:{one.laddr.port}"
        for one in process.net_connections("inet")
        if one.status == psutil.CONN_LISTEN
    ]


def outside(agent: Agent) -> list[psutil.Process]:
    """The agent and its runner. What they run in a sandbox has a network of its own, of nobody."""
    own = psutil.Process(agent.child.pid)
    runners = [one for one in own.children() if "worker_agent.runner" in one.cmdline()]
    assert len(runners) == 1
    return [own, *runners]


def card_of(yard: Market, task: int, slot: int) -> PeerCard:
    found = yard.task(task)
    assert found is not None
    worker = found.slots[slot].worker
    assert worker is not None
    name = MarketName(yard.devnet.chain_id, yard.devnet.market)
    return read_card(yard.content, found.slots[slot].peer_card, name, task, worker)


def root(yard: Market, manifest: Manifest, folder: Path) -> str:
    """What the task has to come to."""
    files = fetch_files(manifest, yard.content, folder / "data")
    return run_local(manifest, files, folder / "run").trace.root.hex()


def test_worker_that_only_connects_trains_with_one_that_listens(
    yard: Market, tmp_path: Path
) -> None:
    manifest = yard.manifest(mode="sync", workers=2, segments=_SEGMENTS)
    open_name, hidden_name, auditor_name = yard.name(), yard.name(), yard.name()
    before = yard.wealth(open_name, hidden_name, auditor_name, "requester")
    with (
        relaying() as (relay, address),
        yard.agent(open_name, TRAINER) as open_one,
        yard.agent(hidden_name, {**TRAINER, "peers.relay": json.dumps(address)}) as hidden,
        yard.agent(auditor_name, AUDITOR) as auditor,
    ):
        agents = (open_one, hidden, auditor)
        yard.wait_for_workers(*agents)
        task = yard.post(manifest, audits=1, min_audits=1)
        yard.wait(
            lambda: all(live_of(one, task).get("states", 0) >= 2 for one in agents[:2]), *agents
        )
        carried = [one for one in relay.net_connections("inet") if one.raddr]
        taken_at = [listens(one) for one in outside(hidden)]
        found = yard.task(task)
        assert found is not None
        cards = {found.slots[slot].worker: card_of(yard, task, slot) for slot in (0, 1)}
        yard.settle(task, *agents)
        after = yard.wealth(open_name, hidden_name, auditor_name, "requester")
        roots = {root_of(one, task) for one in (open_one, hidden)}

    # Nothing of it listens, others know it by the relay alone, and the relay was in use.
    assert taken_at == [[], []]
    assert cards[yard.address(hidden_name)].endpoints == (f"relay:{address}",)
    assert not cards[yard.address(open_name)].endpoints[0].startswith("relay:")
    assert len(carried) >= 3
    assert roots == {root(yard, manifest, tmp_path)}
    assert {name: after[name] - before[name] for name in after} == {
        open_name: ETHER,
        hidden_name: ETHER,
        auditor_name: ETHER // 100,
        "requester": -2 * ETHER - ETHER // 100,
    }
