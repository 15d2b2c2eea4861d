"""A devnet with real agents for `benchmarks.end_to_end`, and what a task on it took."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.end_to_end_accounts import Accounts, adopting
from benchmarks.end_to_end_counting import counted
from benchmarks.end_to_end_jobs import Job, Outcome
from benchmarks.end_to_end_requester import RECEIPT
from trainyard.content.embedded import EmbeddedStore
from trainyard.datasets import add_arrays
from trainyard.devnet.agents import Agent, run_command, start_agent
from trainyard.devnet.chain import OwnChain
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import DEVNET_PARAMS, Options
from trainyard.engine.costs import Costs
from trainyard.engine.journal import Journal
from trainyard.protocol.manifest import Local, Manifest, RoundsPlan
from trainyard.sdk.connecting import market_of
from trainyard.sdk.market import Market
from trainyard.sdk.receipts import Receipt

TRAINERS, AUDITORS = 3, 2
_SETTINGS = ("chain.poll_s=0.5", "chain.margin_s=3", "chain.confirmations=2")
# Each role has agents of its own, so that their processor time can be told apart.
_TRAINER = {"policy.bond": 0}
_AUDITOR = {"policy.bond": 2 * DEVNET_PARAMS.seat_bond, "policy.concurrency": 0}
_PATIENCE_S = 120.0
_LOOK_S = 0.2
# Homes are made by commands that wait for the disk as much as for a core.
_AT_ONCE = 3
# Agents end their work for a task a moment after it is settled.
_AFTER_S = 60.0
# It is over when all together take no more than this part of a core; some processes only wait.
_QUIET_S, _QUIET_PART = 1.0, 0.1


@dataclass(frozen=True, slots=True)
class Used:
    """Seconds of processors since a devnet began."""

    # Of each agent that trains, and of all that audit: the processes that they started.
    trainers: tuple[float, ...]
    auditors: float
    # Of the agents themselves, the chain, and this process, which serves content.
    others: float

    @property
    def work(self) -> float:
        return sum(self.trainers) + self.auditors

    def since(self, before: "Used") -> "Used":
        return Used(
            tuple(now - then for now, then in zip(self.trainers, before.trainers, strict=True)),
            self.auditors - before.auditors,
            self.others - before.others,
        )


@dataclass(frozen=True, slots=True)
class Traded:
    """What a task came to."""

    outcome: Outcome
    # All processes together, polls and all.
    cpu_s: float
    # Of the processes that agents started for it.
    trainers: tuple[float, ...]
    auditors: float
    steps_s: float
    peer_bytes: int
    content_bytes: int
    gas: int
    audits: int


class Yard:
    """A running devnet with its agents."""

    def __init__(
        self, net: Devnet, market: Market, agents: Sequence[Agent], accounts: Accounts
    ) -> None:
        self.net, self._market, self._accounts = net, market, accounts
        self._trainers, self._auditors = agents[:TRAINERS], agents[TRAINERS:]

    def wait_for_agents(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            workers = self._market.read().book.workers.values()
            drawn = sum(one.pool_index > 0 for one in workers)
            if len(workers) == TRAINERS + AUDITORS and drawn == AUDITORS:
                return
            for agent in (*self._trainers, *self._auditors):
                if agent.child.ended.is_set():
                    raise SystemExit(agent.child.epitaph())
            if time.monotonic() > deadline:
                raise SystemExit(f"{len(workers)} agents registered, {drawn} to be drawn")
            time.sleep(_LOOK_S)

    def keep(self, job: Job) -> None:
        """Put a job's records into content, so that no task pays for it that comes first."""
        images, labels = job.arrays()
        add_arrays(self._market.content, {"image": images, "target": labels})

    def train(self, job: Job) -> Traded:
        self._wait_until_idle()
        before, kept = self._used(), self._kept_bytes()
        requester_s = counted(
            [sys.executable, "-m", "benchmarks.end_to_end_requester", str(job.save())],
            job.folder,
            environment={"XDG_STATE_HOME": str(self.net.place.folder / "requester")},
        )
        self._wait_until_idle()
        used = self._used().since(before)
        outcome = Outcome.load(job)
        receipt = Receipt.load(job.folder / RECEIPT)
        folders = [
            folder
            for agent in self._trainers
            if (folder := agent.home / "tasks" / str(outcome.task) / "run").exists()
        ]
        return Traded(
            outcome=outcome,
            cpu_s=requester_s + used.work + used.others,
            trainers=tuple(sorted(used.trainers, reverse=True)),
            auditors=used.auditors,
            steps_s=max(_steps_s(folder) for folder in folders),
            peer_bytes=_peer_bytes(job, folders),
            content_bytes=self._kept_bytes() - kept,
            gas=sum(self._gas(one) for one in receipt.transactions),
            audits=len(receipt.audits),
        )

    def _wait_until_idle(self) -> None:
        """Until no process of an agent computes any more, so that no other task pays for it."""
        deadline = time.monotonic() + _AFTER_S
        before = self._used().work
        while True:
            time.sleep(_QUIET_S)
            now = self._used().work
            if now - before < _QUIET_S * _QUIET_PART:
                return
            if time.monotonic() > deadline:
                raise SystemExit(f"agents still compute {_AFTER_S:.0f} s after the end of a task")
            before = now

    def _used(self) -> Used:
        trainers, auditors = (
            [agent.child.pid for agent in agents] for agents in (self._trainers, self._auditors)
        )
        others = (
            psutil.Process(pid) for pid in (os.getpid(), self._chain_pid, *trainers, *auditors)
        )
        return Used(
            tuple(self._accounts.work_s(pid) for pid in trainers),
            sum(self._accounts.work_s(pid) for pid in auditors),
            sum(sum(one.cpu_times()[:2]) for one in others),
        )

    @property
    def _chain_pid(self) -> int:
        chain = self.net.chain
        if not isinstance(chain, OwnChain):
            raise TypeError("the devnet of a benchmark has a chain of its own")
        return chain.child.pid

    def _kept_bytes(self) -> int:
        store = self._market.content.store
        if not isinstance(store, EmbeddedStore):
            raise TypeError("the devnet of a benchmark has an embedded store")
        return store.usage().bytes

    def _gas(self, transaction: str) -> int:
        receipt = self._market.endpoints.call("eth_getTransactionReceipt", transaction)
        return int(receipt["gasUsed"], 16)


@contextmanager
def running_yard(folder: Path) -> Iterator[Yard]:
    """Agents that train, agents that audit, and nobody who does both."""
    options = Options(
        chain="anvil", workers=TRAINERS + AUDITORS, auditors=0, agent_settings=_SETTINGS
    )
    with ExitStack() as parts:
        net = parts.enter_context(Devnet(folder, options))

        def start(number: int) -> Agent:
            settings = _TRAINER if number < TRAINERS else _AUDITOR
            agent = start_agent(net, f"worker-{number + 1}", settings, command=_adopting_agent)
            parts.callback(agent.stop)
            return agent

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            agents = list(pool.map(start, range(TRAINERS + AUDITORS)))
        market = parts.enter_context(market_of(net))
        accounts = parts.enter_context(Accounts([agent.child.pid for agent in agents]))
        yard = Yard(net, market, agents, accounts)
        yard.wait_for_agents()
        yield yard


def _adopting_agent(home: Path) -> list[str]:
    return adopting(run_command(home))


def _steps_s(run: Path) -> float:
    """From the first state, which is there before the first step, to the last."""
    states = sorted((run / "states").glob("*.safetensors"))
    return states[-1].stat().st_mtime - states[0].stat().st_mtime


def _peer_bytes(job: Job, runs: Sequence[Path]) -> int:
    """What workers sent each other, by their journals.

    Each worker of mode sync has one of its own. In rounds each has the journal of all; there the
    others fetch a worker's leaf too, which an audit of its part begins with, beside its delta.
    """
    if job.mode != "rounds":
        return sum(Costs.of(Journal.read(run)).sent_bytes for run in runs)
    journal = Journal.read(runs[0])
    plan = Manifest.parse(journal.manifest).plan
    if not isinstance(plan, RoundsPlan):
        raise TypeError("a run in rounds has the plan of one")
    leaves = sum(
        journal.path_of(segment + 1).stat().st_size * (job.workers - 1)
        for segment in range(plan.segments)
        if isinstance(plan.part(segment), Local)
    )
    return Costs.of(journal).sent_bytes + leaves
