"""What an agent's folder, chain, market and content look like to whoever asks before running it."""

import os
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any

import urllib3

from trainyard.chain.blocks import head_of
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import EndpointError, NoEndpointError, RevertedError, WrongChainError
from trainyard.chain.keystore import KeystoreError, address_in
from trainyard.chain.quantities import number_in
from trainyard.chain.receipts import tip_of
from trainyard.chain.rpc import Rpc
from trainyard.content.errors import SourceError
from trainyard.content.kubo_rpc import KuboRpc
from trainyard.engine.checkup import Problem
from trainyard.protocol.errors import TrainyardError
from trainyard.protocol.gas import AUDIT_GAS
from worker_agent.locking import holder_of
from worker_agent.policy import Policy
from worker_agent.reachability import examine_reach
from worker_agent.settings import Home, Settings, TokenMarketError

# A head as old as this is of a node that stands still, or of a chain nobody uses.
_OLD_HEAD_S = 600
# Blocks are stamped by their makers, whose clocks differ a little too.
_SKEW_S = 30
# With one so wrong, certificates of endpoints and gateways may be refused.
_BAD_SKEW_S = 3600
_ANSWER_S = 10.0


@dataclass(slots=True)
class AgentCheckup:
    """What was found, by name, and what is wrong with it."""

    found: dict[str, Any] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def miss(self, what: str, fix: str, *, needed: bool = True) -> None:
        self.problems.append(Problem(what, fix, needed))


def examine_agent(home: Home, settings: Settings) -> AgentCheckup:
    """Look at everything, also where the first thing is missing already."""
    checkup = AgentCheckup()
    address = _key(checkup, home)
    well = _endpoints(checkup, settings)
    if well:
        _market(checkup, settings, well, address)
    _content(checkup, home, settings)
    _sandbox(checkup)
    is_running = address is not None and holder_of(address, home) is not None
    if not is_running:
        _ports(checkup, settings)
    checkup.problems += examine_reach(settings, is_running=is_running)
    return checkup


def _key(checkup: AgentCheckup, home: Home) -> str | None:
    try:
        address = address_in(home.keystore)
    except KeystoreError as error:
        what, _, fix = str(error).partition(": ")
        checkup.miss(what, fix)
        return None
    holder = holder_of(address, home)
    checkup.found["address"] = address
    checkup.found["agent"] = None if holder is None else f"runs: {holder}"
    return address


def _endpoints(checkup: AgentCheckup, settings: Settings) -> list[str]:
    """Those that can be used."""
    well, states = [], {}
    for url in settings.chain.endpoints:
        rpc = Rpc(url)
        try:
            chain = number_in(rpc, rpc.request("eth_chainId"))
            head = head_of(rpc)
        except EndpointError as error:
            states[rpc.name] = error.why
            checkup.miss(f"{rpc.name}: {error.why}", "start it, or name another in [chain]")
            continue
        if chain != settings.chain.chain_id:
            states[rpc.name] = f"chain {chain}"
            wrong = WrongChainError(rpc.name, chain, settings.chain.chain_id)
            what, _, fix = str(wrong).partition(": ")
            checkup.miss(what, fix)
            continue
        age = int(time.time()) - head.timestamp
        states[rpc.name] = f"block {head.ref.number}, {age} s old"
        checkup.problems += examine_clocks(rpc.name, age, _ahead_of(url))
        well.append(url)
    checkup.found["endpoints"] = states
    return well


def examine_clocks(name: str, age_s: int, ahead_s: int | None) -> Iterator[Problem]:
    """What is wrong with a head of this age by our clock, which is so far ahead of the node's.

    An old head is of a node that stands still only if our clock is right.
    """
    set_it = "set this machine's clock, for instance with: timedatectl set-ntp true"
    if ahead_s is None and age_s < -_SKEW_S:
        # No block is made in the future: it is the clock, whatever the node says of its own.
        ahead_s = age_s
    if ahead_s is not None and abs(ahead_s) > _SKEW_S:
        where = "ahead of" if ahead_s > 0 else "behind"
        # Deadlines go by the chain's time; but whose certificate is valid goes by this clock.
        is_bad = abs(ahead_s) > _BAD_SKEW_S
        yield Problem(f"this machine's clock is {abs(ahead_s)} s {where} {name}", set_it, is_bad)
        age_s -= ahead_s
    if age_s > _OLD_HEAD_S:
        fix = "see whether the node follows its chain"
        if ahead_s is None:
            fix += ", and whether this machine's clock is right: the node does not say its own"
        yield Problem(f"the newest block of {name} is {age_s} s old", fix, False)


def _ahead_of(url: str) -> int | None:
    """By how much our clock is ahead of that of an endpoint, by the date of its answer."""
    asked = {"jsonrpc": "2.0", "id": 1, "method": "eth_chainId", "params": []}
    try:
        answer = urllib3.request("POST", url, json=asked, timeout=_ANSWER_S, retries=False)
        told = parsedate_to_datetime(answer.headers["Date"])
    except (urllib3.exceptions.HTTPError, ValueError, KeyError, TypeError):
        return None
    return int(time.time() - told.timestamp())


def _market(
    checkup: AgentCheckup, settings: Settings, urls: list[str], address: str | None
) -> None:
    chain = settings.chain
    endpoints = Endpoints(urls, chain_id=chain.chain_id)
    client = MarketClient(endpoints, chain.market)
    try:
        if endpoints.call("eth_getCode", chain.market, "latest") in ("0x", None):
            fix = "correct market in [chain], or chain_id and endpoints"
            checkup.miss(f"there is no contract at {chain.market}", fix)
            return
        checkup.found["market"] = f"{chain.market}, {client.task_count()} tasks"
        if address is None:
            return
        balance = int(endpoints.call("eth_getBalance", address, "latest"), 16)
        credit, worker = client.account(address).credit, client.worker(address)
        token = client.currency()
        gas_price = chain.fees.price(endpoints.run(head_of), endpoints.run(tip_of))
    except (EndpointError, NoEndpointError, RevertedError) as error:
        checkup.miss(str(error), "see whether the address in [chain] is that of a market")
        return
    checkup.found |= {"balance_wei": balance, "credit": credit, "bond": worker.bond}
    checkup.found["registered"] = any(worker.env_class)
    if token is not None:
        what, _, fix = str(TokenMarketError(chain.market, token)).partition(": ")
        checkup.miss(what, fix)
    for what, fix in examine_prices(settings.policy, gas_price):
        checkup.miss(what, fix, needed=False)
    if balance == 0:
        fix = f"send something to {address}"
        checkup.miss("the agent's account has nothing to pay fees with", fix)
    if not any(worker.env_class):
        fix = "the agent registers itself when it runs"
        checkup.miss("the worker is not registered with the market", fix, needed=False)


def examine_prices(policy: Policy, gas_price: int) -> Iterator[tuple[str, str]]:
    """What the market pays against what it costs to take part."""
    costs = sum(AUDIT_GAS.values()) * gas_price
    if policy.bond and policy.min_audit_fee < costs:
        fix = f"set min_audit_fee = {costs} in [policy], or audit for less than that"
        yield f"an audit may pay less than its gas, which is about {costs} wei now", fix


def _content(checkup: AgentCheckup, home: Home, settings: Settings) -> None:
    if settings.content.kubo is not None:
        rpc = KuboRpc(settings.content.kubo, timeout_s=10.0)
        try:
            checkup.found["content"] = f"{rpc.name}, version {rpc.ask('version')['Version']}"
        except (SourceError, KeyError) as error:
            fix = "start the node, or correct kubo in [content]"
            checkup.miss(f"{rpc.name} does not answer: {error}", fix)
        finally:
            rpc.close()
        return
    folder = settings.content.store or home.content_store
    checkup.found["content"] = str(folder)
    there = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        # Asking for rights tells root lies; writing does not.
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        fix = f"make {there} writable, or name another store in [content]"
        checkup.miss(f"{folder} cannot be written: {os.strerror(error.errno or 0)}", fix)


def _sandbox(checkup: AgentCheckup) -> None:
    try:
        import importlib

        # By its name: this command has to say what is missing, also if that is missing.
        report = importlib.import_module("worker_agent.sandbox").find_sandbox()
    except (ImportError, AttributeError):
        checkup.miss("this installation has no sandbox", "reinstall trainyard")
    except TrainyardError as error:
        what, _, fix = str(error).partition(": ")
        checkup.miss(what, fix or "install bubblewrap, and allow user namespaces")
    else:
        checkup.found["sandbox"] = str(getattr(report, "bwrap", report))
        for limit in ("memory", "processes", "cores"):
            checkup.found[f"{limit}_limit"] = getattr(report, limit, "")
        if os.geteuid() == 0:
            what = "as root, whatever gets out of a sandbox is root"
            checkup.miss(what, "run the agent as an account of its own", needed=False)


def _ports(checkup: AgentCheckup, settings: Settings) -> None:
    peers, wanted = settings.peers, []
    if peers.port:
        tasks = range(max(1, settings.policy.concurrency))
        wanted += [(peers.host, peers.port + index, "port in [peers]") for index in tasks]
    if settings.metrics_port:
        wanted.append(("127.0.0.1", settings.metrics_port, "metrics_port"))
    for host, port, setting in wanted:
        try:
            with socket.create_server((host, port)):
                pass
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            fix = f"end what listens there, or change {setting}"
            checkup.miss(f"cannot listen at {host}:{port}: {why}", fix)
