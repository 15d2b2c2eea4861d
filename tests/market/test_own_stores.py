"""A market in which nobody shares a folder: all travels by gateways that the agents run."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.market.yard import AUDITOR, TRAINER, Market, kill, market, root_of
from trainyard.content.cid import Cid, Codec
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.content.errors import UnavailableError
from trainyard.content.gateway_client import GatewaySource
from trainyard.content.gateways import ask_workers
from trainyard.content.names import ContentPath
from trainyard.devnet.agents import Agent
from trainyard.devnet.options import ETHER
from trainyard.devnet.ports import free_port
from trainyard.engine.evidence import TRACE
from trainyard.engine.launching import run_local
from trainyard.engine.material import fetch_files
from trainyard.engine.sealing import INPUTS
from trainyard.protocol.ledger.book import Task
from trainyard.protocol.market import UNSERVED
from trainyard.protocol.profiles import profiles_of
from trainyard.protocol.results import Result
from worker_agent.settings import Home

_SEGMENTS = 8


def at_home(yard: Market, name: str, port: int) -> dict[str, object]:
    """A store of its own, to be found at `port`."""
    return {
        "content.store": json.dumps(str(yard.devnet.place.agent(name) / "content")),
        "content.advertise": f'"http://127.0.0.1:{port}"',
    }


def serving(yard: Market, name: str, port: int) -> dict[str, object]:
    return {**at_home(yard, name, port), "content.listen": f'"127.0.0.1:{port}"'}


@contextmanager
def stranger(yard: Market, folder: Path) -> Iterator[Content]:
    """Who has nothing, and knows the requester's gateway and the chain."""
    content = Content(EmbeddedStore(folder), [GatewaySource(yard.devnet.gateway)])
    try:
        yield content
    finally:
        content.close()


def gateway_of(agent: Agent) -> psutil.Process:
    [found] = [
        child
        for child in psutil.Process(agent.child.pid).children()
        if "worker_agent.showing" in child.cmdline()
    ]
    return found


def is_open(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def result_of(content: Content, task: Task) -> Result:
    claim = task.slots[task.lead].claim
    assert claim is not None
    data = content.fetcher.get(Cid(Codec.RAW, claim.result)).block
    return Result.parse(data, manifest=task.terms.manifest, root=claim.root)


def answers(agent: Agent, task: int) -> list[dict[str, Any]]:
    folder = Home(agent.home).task(task) / "answers"
    return [json.loads(path.read_bytes()) for path in folder.glob("[!.]*.json")]


@pytest.mark.long
def test_joint_run_is_audited_paid_and_fetched_by_gateways_alone(
    yard: Market, tmp_path: Path
) -> None:
    names, ports = [yard.name() for _ in range(3)], [free_port() for _ in range(3)]
    before = yard.wealth(*names, "requester")
    manifest = yard.manifest(mode="sync", workers=2, segments=_SEGMENTS)
    with (
        yard.agent(names[0], {**TRAINER, **serving(yard, names[0], ports[0])}) as one,
        yard.agent(names[1], {**TRAINER, **serving(yard, names[1], ports[1])}) as other,
        yard.agent(names[2], {**AUDITOR, **serving(yard, names[2], ports[2])}) as auditor,
    ):
        agents = one, other, auditor
        yard.wait_for_workers(*agents)
        number = yard.post(manifest, audits=1, min_audits=1)
        task = yard.settle(number, *agents)
        after = yard.wealth(*names, "requester")

        assert root_of(one, number) == root_of(other, number)
        [seat] = task.own_panel.seats
        with stranger(yard, tmp_path / "empty") as content:
            # Without the workers nobody has it.
            with pytest.raises(UnavailableError):
                result_of(content, task)
            profiles = profiles_of(yard.requester.book, number)
            found = ask_workers(content, profiles, allow_private=True)
            assert sorted(found) == sorted(f"http://127.0.0.1:{port}" for port in ports[:2])
            result = result_of(content, task)
            yard.wait(lambda: is_shown(content, result), *agents)
            content.get(ContentPath.parse(result.run), tmp_path / "run")
            # Of the evidence only what was asked for is shown, whoever is asked.
            evidence = ContentPath.parse(result.evidence)
            shown = [
                segment
                for segment in range(_SEGMENTS)
                if has(content, evidence.child(f"{segment:06}").child(INPUTS))
            ]
        assert shown == [seat.segment]

        gateway = gateway_of(one)
        assert is_open(ports[0])
        kill(one)
        gateway.wait(20)
        assert not is_open(ports[0])

    files = fetch_files(manifest, yard.content, tmp_path / "data")
    here = run_local(manifest, files, tmp_path / "here")
    assert json.loads((tmp_path / "run" / TRACE).read_bytes())["root"] == here.trace.root.hex()
    assert {name: after[name] - before[name] for name in after} == {
        names[0]: ETHER,
        names[1]: ETHER,
        names[2]: ETHER // 100,
        "requester": -2 * ETHER - ETHER // 100,
    }


def is_shown(content: Content, result: Result) -> bool:
    """Whether the workers have opened the run by now."""
    return has(content, ContentPath.parse(result.run).child(TRACE))


def has(content: Content, path: ContentPath) -> bool:
    try:
        content.stat(path)
    except UnavailableError:
        return False
    return True


@pytest.fixture
def fresh_yard() -> Iterator[Market]:
    """A market without auditors of other tests, whose agents are gone and who may be drawn."""
    with market() as one:
        yield one


@pytest.mark.long
def test_worker_that_serves_nothing_fails_its_audit_until_it_does(fresh_yard: Market) -> None:
    yard = fresh_yard
    name, auditor_name, port = yard.name(), yard.name(), free_port()
    manifest = yard.manifest(segments=2, seed=11)
    settings = {**TRAINER, **at_home(yard, name, port)}
    other = {**AUDITOR, **at_home(yard, auditor_name, free_port())}
    with yard.agent(auditor_name, other) as auditor:
        with yard.agent(name, settings) as silent:
            yard.wait_for_workers(silent, auditor)
            number = yard.post(manifest, audits=1, min_audits=1, audit_for=250)
            yard.wait(lambda: answers(auditor, number), silent, auditor)
        [answer] = answers(auditor, number)
        assert bytes.fromhex(answer["value"]) == UNSERVED
        # The requester's part came to the auditor, and only the worker's did not.
        assert answer["reason"].startswith("the result is not served")
        assert f"http://127.0.0.1:{port}: cannot connect" in answer["reason"]

        config = Home(silent.home).config
        told = config.read_text().replace(
            '# listen = "0.0.0.0:8490"', f'listen = "127.0.0.1:{port}"'
        )
        config.write_text(told)
        with yard.agent(name, settings) as serves:
            yard.settle(number, serves, auditor)
        [answer] = answers(auditor, number)
        assert bytes.fromhex(answer["value"]) != UNSERVED


def test_requester_is_told_why_a_task_failed_in_the_sandbox_of_a_worker(yard: Market) -> None:
    """By one who knows the chain and a board: the worker's word is in its profile."""
    name, net = yard.name(), yard.devnet
    manifest = yard.manifest(segments=2, seed=12)
    # TensorFlow alone starts more threads than that.
    settings = {**TRAINER, **serving(yard, name, free_port()), "sandbox.processes": 3}
    with yard.agent(name, settings) as agent:
        yard.wait_for_workers(agent)
        registered = yard.requester.book.workers[yard.address(name)].profile
        number = yard.post(manifest, audits=0, min_audits=0)
        yard.wait(lambda: yard.requester.book.workers[yard.address(name)].profile != registered)
        where = ["--endpoint", net.url, "--market", net.market, "--chain-id", str(net.chain_id)]
        where += ["--start-block", str(net.start_block), "--gateway", net.gateway]
        document = json.loads(explained(number, *where, "--json"))
        told = explained(number, *where)
        # It is none the worse for it.
        assert not agent.child.ended.is_set()

    limit = "the task started more than 3 processes and threads"
    [notice] = document["notices"]
    assert notice["worker"] == yard.address(name)
    assert notice["reason"].endswith(f"times for good: {limit}")
    assert f"worker 0 ({yard.address(name)[:8]}…): {notice['reason']}" in told


def explained(number: int, *options: str) -> str:
    command = [sys.executable, "-m", "trainyard", "explain", str(number), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout
