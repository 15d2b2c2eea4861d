"""What an agent stands on goes away for a while, or lies: it misses nothing, and is paid."""

import json
import resource
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.chain_layer.proxy import Proxy, proxy_before
from tests.integration.hostile_gateway import Fault, HostileGateway
from tests.market.clocks import wrong_clock
from tests.market.yard import TRAINER, Market, live_of
from trainyard.content.cid import Cid, Codec
from trainyard.content.fetching import DirectFeed
from trainyard.content.names import ContentPath
from trainyard.content.reading import Walk
from trainyard.demo.watching import Requester
from trainyard.devnet.agents import Agent, make_home
from trainyard.devnet.options import ETHER
from trainyard.protocol.manifest import Manifest
from trainyard.protocol.market import Policy, TaskState
from worker_agent.asking import ask
from worker_agent.settings import Home

_REPLICATE: dict[str, Any] = {"policy": Policy.REPLICATE, "segments": 0}
_LOOKS, _BLOCKS = 12, 4
_FIVE_HOURS_S = 5 * 3600
_DISK_BYTES = 64 << 20


@pytest.fixture
def proxy(yard: Market) -> Iterator[Proxy]:
    with proxy_before(yard.devnet.url) as one:
        yield one


def _through(proxy: Proxy) -> dict[str, object]:
    return TRAINER | {"chain.endpoints": json.dumps([proxy.url])}


def _said(agent: Agent, event: str, **about: str) -> list[dict[str, Any]]:
    return _lines(agent.home / "agent.log", event, **about)


def _shown(agent: Agent, event: str, **about: str) -> list[dict[str, Any]]:
    """The same, as it stands outside of the agent's home."""
    return _lines(agent.log, event, **about)


def _lines(path: Path, event: str, **about: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    wanted = {"event": event, **about}
    return [line for line in lines if wanted.items() <= line.items()]


class _Outage:
    """Something is wrong until the agent has noticed."""

    def __init__(self, yard: Market, proxy: Proxy, agent: Agent) -> None:
        self._yard, self._proxy, self._agent = yard, proxy, agent

    def is_told(self, event: str = "waiting", times: int = 1, **about: str) -> None:
        before = len(_said(self._agent, event, **about))
        self._yard.wait(
            lambda: len(_said(self._agent, event, **about)) >= before + times, self._agent
        )

    def is_looked_at(self, times: int = _LOOKS) -> None:
        """Until the agent has looked at the chain so often: each look ends with its balance."""
        before = self._proxy.questions("eth_getBalance")
        self._yard.wait(
            lambda: self._proxy.questions("eth_getBalance") >= before + times, self._agent
        )

    def lasts(self, blocks: int = _BLOCKS) -> None:
        """For so many blocks, whether the agent can look at them or not."""
        chain = self._yard.devnet.chain
        until = chain.head().ref.number + blocks
        self._yard.wait(lambda: chain.head().ref.number >= until, self._agent)


def _blocks(yard: Market, manifest: Manifest) -> dict[Cid, bytes]:
    """All that a worker has to fetch."""
    path = ContentPath.parse(manifest.data.train.path)
    feed = DirectFeed(yard.content.fetcher)
    found = {
        cid: bytes(block) for cid, block, _ in Walk(feed, yard.content.limits).blocks(path.root)
    }
    return found | {Cid(Codec.RAW, manifest.digest): manifest.canonical}


def test_bad_endpoints_a_halted_chain_bad_content_and_a_wrong_clock(
    yard: Market, proxy: Proxy, tmp_path: Path
) -> None:
    manifest = yard.manifest(segments=2)
    worker = yard.name()
    before = yard.wealth(worker)
    clock = wrong_clock(tmp_path / "clock", _FIVE_HOURS_S)
    with HostileGateway(_blocks(yard, manifest), Fault.FLIPPED) as gateway:
        settings = _through(proxy) | {
            "content.store": json.dumps(str(tmp_path / "store")),
            "content.gateways": json.dumps([gateway.address]),
            # They are asked too, and the devnet's has everything.
            "content.boards": "[]",
        }
        proxy.status, proxy.headers = 429, {"Retry-After": "1"}
        with yard.agent(worker, settings, environment=clock) as agent:
            outage = _Outage(yard, proxy, agent)
            yard.wait((agent.home / "agent.log").exists, agent)
            outage.is_told(times=2)
            proxy.status, proxy.headers = 200, {}
            yard.wait_for_workers(agent)

            task = yard.post(manifest, **_REPLICATE)
            outage.is_told("failed", work="fetch")
            gateway.fault = Fault.RESET
            outage.is_told("failed", work="fetch")
            gateway.fault = Fault.NONE
            yard.wait_for(task, TaskState.RUNNING, agents=(agent,))

            proxy.change = _without_logs
            posted = [_unfit(yard, manifest)]
            outage.is_told()
            proxy.change = _Stale()
            outage.is_looked_at(1)
            posted.append(_unfit(yard, manifest))
            outage.is_looked_at()
            assert not _knows(agent, posted[-1])
            proxy.change = lambda method, params, answer: answer
            proxy.body = b"<html>bad gateway</html>"
            posted.append(_unfit(yard, manifest))
            outage.is_told(times=2)
            proxy.body = None
            yard.devnet.chain.request("evm_setIntervalMining", 0)
            outage.is_looked_at()
            yard.devnet.chain.request("evm_setIntervalMining", 1)

            yard.settle(task, agent)
            missed = [one for one in posted if not _knows(agent, one)]
            after = yard.wealth(worker)
            failures = _said(agent, "failed")

    assert after[worker] - before[worker] == ETHER
    assert missed == []
    assert "another hash" in failures[0]["reason"]
    assert {failure["work"] for failure in failures} == {"fetch"}


def _unfit(yard: Market, manifest: Manifest) -> int:
    """A task that shows whether an agent has seen it, and that none of them takes."""
    return yard.post(manifest, **_REPLICATE, min_settled=99)


def _knows(agent: Agent, task: int) -> bool:
    found = ask(Home(agent.home), "why-not", task=task)
    return any("it asks for 99 settled tasks" in one["why"] for one in found["reasons"])


def _without_logs(method: str, params: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
    """A node that cuts its answers about many blocks short."""
    is_cut = method == "eth_getLogs" and "blockHash" not in params[0]
    return answer | {"result": []} if is_cut else answer


class _Stale:
    """A node whose head stands still."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, Any]] = {}

    def __call__(self, method: str, params: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
        if method != "eth_blockNumber" and "latest" not in params:
            return answer
        known = self._known.setdefault(f"{method} {params}", answer)
        return known | {"id": answer["id"]}


@contextmanager
def _small_disk(yard: Market, name: str, settings: dict[str, object]) -> Iterator[Path]:
    """An agent's home on a disk of its own, which only root can have."""
    home = make_home(yard.devnet, name, settings)
    before = yard.folder / f"{name} before"
    home.rename(before)
    home.mkdir()
    mounted = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES},mode=700", "none", str(home)]
    if subprocess.run(mounted, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small disk; a limit on files plays one elsewhere")
    try:
        shutil.copytree(before, home, dirs_exist_ok=True)
        yield home
    finally:
        subprocess.run(["umount", str(home)], check=True)


def _fill(home: Path) -> Path:
    ballast = home / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


@pytest.mark.long
def test_disk_that_is_full_and_has_room_again(yard: Market, proxy: Proxy) -> None:
    """First before a task is taken, and then in the middle of its training."""
    manifest = yard.manifest(segments=60)
    worker = yard.name()
    before = yard.wealth(worker)
    with (
        _small_disk(yard, worker, _through(proxy)) as home,
        yard.agent(worker, _through(proxy)) as agent,
    ):
        outage = _Outage(yard, proxy, agent)
        yard.wait_for_workers(agent)
        ballast = _fill(home)
        task = yard.post(manifest, **_REPLICATE)
        outage.lasts()
        ballast.unlink()
        yard.wait(lambda: live_of(agent, task).get("states", 0) >= 1, agent)
        ballast = _fill(home)
        # On that disk nothing can be said either.
        yard.wait(lambda: _shown(agent, "failed", work="train"), agent)
        [failed, *_] = _shown(agent, "failed", work="train")
        ballast.unlink()
        yard.settle(task, agent)
        after = yard.wealth(worker)

    assert "is full" in failed["reason"] or "No space left on device" in failed["reason"]
    assert after[worker] - before[worker] == ETHER


@pytest.mark.long
def test_full_disk_of_the_agent_and_of_its_worker(yard: Market, proxy: Proxy) -> None:
    """To the one that writes, a limit on files and a full disk are the same: an error."""
    manifest = yard.manifest(segments=60)
    worker = yard.name()
    before = yard.wealth(worker)
    with yard.agent(worker, _through(proxy)) as agent:
        outage = _Outage(yard, proxy, agent)
        yard.wait_for_workers(agent)
        _limit_files([agent.child.pid], 1)
        task = yard.post(manifest, **_REPLICATE)
        outage.lasts()
        _limit_files([agent.child.pid], resource.RLIM_INFINITY)
        yard.wait(lambda: live_of(agent, task).get("states", 0) >= 1, agent)
        # What it says fits, and a state does not.
        _limit_files([one.pid for one in _below(agent)], 8192)
        outage.is_told("failed", work="train")
        yard.settle(task, agent)
        after = yard.wealth(worker)
        failure, *_ = _said(agent, "failed", work="train")

    assert "File too large" in failure["reason"]
    assert after[worker] - before[worker] == ETHER


def _below(agent: Agent) -> list[psutil.Process]:
    return psutil.Process(agent.child.pid).children(recursive=True)


def _limit_files(pids: list[int], size: int) -> None:
    for pid in pids:
        hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))


def test_post_that_is_replaced_under_its_number(yard: Market) -> None:
    """What was fetched for one task, and the join that was sent to it, are not for the other."""
    worker, rival = yard.name(), yard.name()
    one, other = yard.manifest(seed=11), yard.manifest(seed=12)
    # With a slot that stays free: nobody trains.
    waiting = _REPLICATE | {"slots": 2, "quorum": 2}
    chain = yard.devnet.chain
    with (
        yard.agent(worker, TRAINER) as agent,
        closing(_requester(yard, rival)) as poster,
    ):
        yard.wait_for_workers(agent)
        known = chain.request("evm_snapshot")
        first, nonce = yard.next_number(), yard.nonce(worker)
        terms = yard.terms(one, **waiting)
        poster.send("post", poster.calls.post(terms, value=terms.escrow))
        yard.wait(lambda: _joined(yard, first), agent)
        assert _manifest(agent, first) == one.canonical

        chain.request("evm_revert", known)
        chain.request("anvil_dropAllTransactions")
        # The other branch is the longer one, as after any reorg: one that is not looks like a node
        # that is behind.
        chain.request("anvil_mine", hex(2 * _LOOKS))
        yard.wait(lambda: yard.task(first) is None, agent)
        second = yard.post(other, **waiting)
        yard.wait(lambda: _joined(yard, second), agent)
        joined_with = _manifest(agent, second)
        sent = _sent(yard, worker, nonce)
        yard.requester.send("cancel", yard.requester.calls.cancel(second))
        yard.wait(lambda: yard.state(second) is TaskState.CANCELLED, agent)

    assert second == first
    assert joined_with == other.canonical
    # The nonce of the join to the one was used up by nothing.
    assert (sent["to"], sent["input"]) == (sent["from"], "0x")


def _requester(yard: Market, name: str) -> Requester:
    return Requester(yard.devnet, yard.devnet.accounts[name], yard.folder / f"{name}.sqlite")


def _joined(yard: Market, number: int) -> bool:
    task = yard.task(number)
    return task is not None and bool(task.joined)


def _manifest(agent: Agent, number: int) -> bytes:
    return (agent.home / "tasks" / str(number) / "manifest.json").read_bytes()


def _sent(yard: Market, name: str, nonce: int) -> dict[str, Any]:
    """The transaction of an account that has this nonce."""
    who, head = yard.address(name).lower(), yard.devnet.chain.head().ref.number
    for number in range(head, yard.devnet.start_block - 1, -1):
        block = yard.devnet.chain.request("eth_getBlockByNumber", hex(number), True)
        for one in block["transactions"]:
            if one["from"].lower() == who and int(one["nonce"], 16) == nonce:
                return dict(one)
    raise LookupError(f"{name} has sent nothing with nonce {nonce}")


@pytest.mark.long
def test_claim_that_falls_out_of_the_chain_is_made_again(yard: Market) -> None:
    """Deeper than the agent waits for: what it had done with is taken up again."""
    manifest = yard.manifest(segments=2)
    worker = yard.name()
    before = yard.wealth(worker)
    chain = yard.devnet.chain
    with yard.agent(worker, TRAINER) as agent:
        yard.wait_for_workers(agent)
        task = yard.post(manifest, **_REPLICATE)
        yard.wait_for(task, TaskState.RUNNING, agents=(agent,))
        known, nonce = chain.request("evm_snapshot"), yard.nonce(worker)
        yard.settle(task, agent)
        sent = yard.nonce(worker)
        # As deep as nothing is looked at any more.
        settled = chain.head().ref.number
        yard.wait(lambda: chain.head().ref.number >= settled + 3, agent)

        chain.request("evm_revert", known)
        chain.request("anvil_dropAllTransactions")
        assert yard.nonce(worker) == nonce
        yard.wait(lambda: yard.state(task) is not TaskState.SETTLED, agent)
        yard.settle(task, agent)
        yard.wait(lambda: yard.nonce(worker) == sent, agent)
        after = yard.wealth(worker)

    assert sent > nonce
    assert after[worker] - before[worker] == ETHER
