"""A devnet with real agents for `benchmarks.end_to_end`, and what a task on it took.

Agents have stores of their own, as on machines of their own, and serve them by gateways. Before
each gateway there is a relay: what passes it is content that one party sent another.
"""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from benchmarks.end_to_end_accounts import Accounts, adopting
from benchmarks.end_to_end_counting import counted
from benchmarks.end_to_end_jobs import Job, Moment, Outcome
from benchmarks.end_to_end_relays import Relay, relayed
from benchmarks.end_to_end_requester import RECEIPT
from trainyard.content.content import Content
from trainyard.content.embedded import EmbeddedStore
from trainyard.datasets import add_arrays
from trainyard.devnet.agents import Agent, run_command, start_agent
from trainyard.devnet.chain import OwnChain
from trainyard.devnet.devnet import Devnet
from trainyard.devnet.options import DEVNET_PARAMS, Options
from trainyard.devnet.ports import free_port
from trainyard.engine.costs import Costs
from trainyard.engine.journal import Journal
from trainyard.protocol.ledger.book import ZERO_WORD
from trainyard.protocol.manifest import Local, Manifest, RoundsPlan
from trainyard.sdk.connecting import market_of
from trainyard.sdk.market import Market
from trainyard.sdk.receipts import AuditLine, Receipt

AUDITORS = 2
# Each role has agents of its own, so that their processor time can be told apart.
_TRAINER = {"policy.bond": 0}
_AUDITOR = {"policy.bond": 2 * DEVNET_PARAMS.seat_bond, "policy.concurrency": 0}
_PATIENCE_S = 300.0
_LOOK_S = 0.2
# Homes are made by commands that wait for the disk as much as for a core.
_AT_ONCE = 3
# Agents end their work for a task a moment after it is settled.
_AFTER_S = 60.0
# It is over when all together take no more than this part of a core; some processes only wait.
_QUIET_S, _QUIET_PART = 1.0, 0.1
_CONTENT = "content"
_NOTHING = f"0x{ZERO_WORD.hex()}"


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
    segments: int
    # Audits that found what the workers had claimed.
    audits: int
    # That the market waited for challengers, as the terms say.
    challenge_s: float
    # States of the run with their times since the call, and the manifest that they are of.
    moments: tuple[Moment, ...]
    manifest: Path


class Yard:
    """A running devnet with its agents."""

    def __init__(
        self,
        net: Devnet,
        market: Market,
        agents: Sequence[Agent],
        accounts: Accounts,
        relays: Sequence[Relay],
    ) -> None:
        self.net, self._market, self._accounts, self._relays = net, market, accounts, relays
        self._trainers, self._auditors = agents[:-AUDITORS], agents[-AUDITORS:]

    def wait_for_agents(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while True:
            workers = self._market.read().book.workers.values()
            drawn = sum(one.pool_index > 0 for one in workers)
            if len(workers) == len(self._trainers) + AUDITORS and drawn == AUDITORS:
                return
            for agent in (*self._trainers, *self._auditors):
                if agent.child.ended.is_set():
                    raise SystemExit(agent.child.epitaph())
            if time.monotonic() > deadline:
                raise SystemExit(f"{len(workers)} agents registered, {drawn} to be drawn")
            time.sleep(_LOOK_S)

    def keep(self, job: Job) -> None:
        """Give everybody a job's records, which are no part of what is counted, for any way."""
        images, labels = job.arrays()
        arrays = {"image": images, "target": labels}
        add_arrays(self._market.content, arrays)
        for agent in (*self._trainers, *self._auditors):
            with closing(Content(EmbeddedStore(agent.home / _CONTENT))) as content:
                add_arrays(content, arrays)

    def train(self, job: Job, *, most: int) -> Traded:
        """What a job comes to, with so many states of its run and the last."""
        self._wait_until_idle()
        before, sent = self._used(), self._sent_bytes()
        requester_s = counted(
            [sys.executable, "-m", "benchmarks.end_to_end_requester", str(job.save())],
            job.folder,
            environment={"XDG_STATE_HOME": str(self.net.place.folder / "requester")},
        )
        self._wait_until_idle()
        used = self._used().since(before)
        outcome = Outcome.load(job)
        receipt = Receipt.load(job.folder / RECEIPT)
        sent = self._sent_bytes() - sent
        folders = [
            folder
            for agent in self._trainers
            if (folder := agent.home / "tasks" / str(outcome.task) / "run").exists()
        ]
        journal = Journal.read(folders[0])
        manifest = job.folder / "manifest.json"
        manifest.write_bytes(journal.manifest)
        return Traded(
            outcome=outcome,
            cpu_s=requester_s + used.work + used.others,
            trainers=tuple(sorted(used.trainers, reverse=True)),
            auditors=used.auditors,
            steps_s=max(_steps_s(folder) for folder in folders),
            peer_bytes=_peer_bytes(job, folders),
            content_bytes=sent,
            gas=sum(self._gas(one) for one in receipt.transactions),
            segments=Manifest.parse(journal.manifest).plan.segments,
            audits=agreed(receipt.audits),
            challenge_s=self._challenge_s(outcome.task),
            moments=moments(journal, outcome.began_at, most),
            manifest=manifest,
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
        work = self._accounts.work_s()
        return Used(
            tuple(work[pid] for pid in trainers),
            sum(work[pid] for pid in auditors),
            sum(sum(one.cpu_times()[:2]) for one in others) - self._accounts.looking_s,
        )

    @property
    def _chain_pid(self) -> int:
        chain = self.net.chain
        if not isinstance(chain, OwnChain):
            raise TypeError("the devnet of a benchmark has a chain of its own")
        return chain.child.pid

    def _sent_bytes(self) -> int:
        return sum(relay.bytes for relay in self._relays)

    def _challenge_s(self, number: int) -> float:
        return self._market.read().book.tasks[number].terms.challenge_for

    def _gas(self, transaction: str) -> int:
        receipt = self._market.endpoints.call("eth_getTransactionReceipt", transaction)
        return int(receipt["gasUsed"], 16)


def agreed(audits: Iterable[AuditLine]) -> int:
    """How many were answered, and with what was opened for them; others were drawn in vain."""
    return sum(one.answer == one.opened != _NOTHING for one in audits)


@contextmanager
def running_yard(folder: Path, trainers: int) -> Iterator[Yard]:
    """Agents that train, agents that audit, and nobody who does both."""
    count = trainers + AUDITORS
    # Agents are set as all that a devnet starts, apart from who trains and who checks.
    options = Options(chain="anvil", workers=count, auditors=0, agent_settings=())
    with ExitStack() as parts:
        net = parts.enter_context(Devnet(folder, options))
        ports = [int(net.gateway.rpartition(":")[2]), *(free_port() for _ in range(count))]
        relays = [parts.enter_context(relayed(port)) for port in ports]

        def start(number: int) -> Agent:
            name = f"worker-{number + 1}"
            settings: dict[str, object] = {
                **(_TRAINER if number < trainers else _AUDITOR),
                "content.store": json.dumps(str(net.place.agent(name) / _CONTENT)),
                "content.listen": f'"127.0.0.1:{ports[number + 1]}"',
                "content.advertise": f'"http://127.0.0.1:{relays[number + 1].port}"',
                "content.gateways": f'["http://127.0.0.1:{relays[0].port}"]',
                "content.boards": f'["http://127.0.0.1:{relays[0].port}"]',
            }
            agent = start_agent(net, name, settings, command=_adopting_agent)
            parts.callback(agent.stop)
            return agent

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            agents = list(pool.map(start, range(count)))
        market = parts.enter_context(market_of(net))
        accounts = parts.enter_context(Accounts([agent.child.pid for agent in agents]))
        yard = Yard(net, market, agents, accounts, relays)
        yard.wait_for_agents()
        yield yard


def _adopting_agent(home: Path) -> list[str]:
    return adopting(run_command(home))


def _steps_s(run: Path) -> float:
    """From the first state, which is there before the first step, to the last."""
    states = sorted((run / "states").glob("*.safetensors"))
    return states[-1].stat().st_mtime - states[0].stat().st_mtime


def moments(journal: Journal, began_at: float, most: int) -> tuple[Moment, ...]:
    """So many states that all workers share, and the last; in rounds those after a merge."""
    plan = Manifest.parse(journal.manifest).plan
    shared = [
        segment + 1
        for segment in range(plan.segments)
        if not isinstance(plan, RoundsPlan) or not isinstance(plan.part(segment), Local)
    ]
    paths = [journal.path_of(number) for number in shared[:: -(-len(shared) // most)]]
    paths = list(dict.fromkeys([*paths, journal.path_of(shared[-1])]))
    return tuple(Moment(path.stat().st_mtime - began_at, path) for path in paths if path.exists())


def _peer_bytes(job: Job, runs: Sequence[Path]) -> int:
    """What workers sent each other, by their journals.

    Each worker of mode sync has one of its own; in rounds each has the journal of all.
    """
    journals = runs[:1] if job.mode == "rounds" else runs
    return sum(Costs.of(Journal.read(run)).sent_bytes for run in journals)
