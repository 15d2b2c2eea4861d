"""What Prometheus can ask the agent for, on loopback alone."""

import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from trainyard.protocol.errors import PermanentError
from trainyard.protocol.market import TaskState
from worker_agent.progress import LIVE, Shelf
from worker_agent.reporting import account_report, roles_of
from worker_agent.serving import Server
from worker_agent.situation import ENDED, slots_of

if TYPE_CHECKING:
    from worker_agent.agent import Agent
    from worker_agent.sight import Sight

_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class MetricsPortError(PermanentError):
    """The port of the settings is in use."""


@contextmanager
def metrics_server(agent: "Agent", port: int) -> Iterator[Server]:
    try:
        listener = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        raise MetricsPortError(
            f"cannot listen at 127.0.0.1:{port}: {error.strerror}; change metrics_port"
        ) from error
    registry = CollectorRegistry(auto_describe=False)
    registry.register(AgentCollector(agent))
    server = Server(listener, b"\r\n\r\n", lambda head: _page(head, registry))
    try:
        yield server
    finally:
        server.close()


class AgentCollector(Collector):
    """Asks the agent itself each time: nothing is counted twice."""

    def __init__(self, agent: "Agent") -> None:
        self._agent = agent

    def collect(self) -> Iterable[Metric]:
        agent, sight = self._agent, self._agent.sight
        mode = _gauge("mode", "1 for what the agent does now", ["mode"])
        for name in ("running", "paused", "draining"):
            mode.add_metric([name], float(agent.mode == name))
        yield mode
        yield _value("failed_looks", "Looks at the chain that failed in a row", agent.failures)
        endpoints = _gauge("endpoint_up", "Whether an endpoint is well", ["endpoint"])
        for name, illness in agent.endpoints.states().items():
            endpoints.add_metric([name], float(not illness))
        yield endpoints
        sent = _gauge("transactions", "Transactions ever signed, by their state", ["state"])
        for state, count in agent.outbox.counts().items():
            sent.add_metric([state], count)
        yield sent
        yield _value("children", "Processes that work for a task", len(agent.children))
        yield _value("resident_bytes", "Memory of the agent's own process", _resident())
        yield _count(
            "cpu_seconds", "Processor time of the agent's own process", sum(os.times()[:2])
        )
        failed = _count_of("work_failures", "Work that failed since the start", ["work"])
        for work, count in sorted(agent.site.failures.items()):
            failed.add_metric([work], count)
        yield failed
        if sight is not None:
            yield from self._seen(sight)

    def _seen(self, sight: "Sight") -> Iterable[Metric]:
        agent, me = self._agent, self._agent.account.address
        yield _value("head", "The newest block that was seen", sight.block)
        yield _value("head_age_seconds", "How old that block is", sight.age_s)
        yield _value("lag_blocks", "Blocks whose events are not read yet", sight.lag)
        yield _count("events", "Events of the market that were read", agent.watcher.events)
        account = account_report(sight.book, me, sight.purse)
        for name, meaning in _ACCOUNT.items():
            yield _value(name, meaning, account[name.removesuffix("_count")])
        ours = _gauge("tasks", "Tasks that we are in, by state", ["state"])
        found = [t for t in sight.book.tasks.values() if roles_of(t, me) and t.state not in ENDED]
        for state in TaskState:
            if state not in ENDED and state is not TaskState.NONE:
                count = sum(task.state is state for task in found)
                ours.add_metric([state.name.lower()], count)
        yield ours
        yield from self._training(sight)

    def _training(self, sight: "Sight") -> Iterable[Metric]:
        share = _gauge("training_share", "How much of a task is trained", ["task"])
        loss = _gauge("training_loss", "The loss of a task's last step", ["task"])
        energy = _gauge("energy_joules", "What training took here, an estimate", ["task"])
        for number, task in sight.book.tasks.items():
            if task.state in ENDED or not slots_of(task, self._agent.account.address):
                continue
            live = Shelf(self._agent.home.task(number)).read(LIVE)
            if live is not None:
                share.add_metric([str(number)], live["step"] / max(live["steps"], 1))
                energy.add_metric([str(number)], live["energy_j"])
                if live["loss"] is not None:
                    loss.add_metric([str(number)], live["loss"])
        yield from (share, loss, energy)


_ACCOUNT = {
    "balance_wei": "What the account holds outside of the market",
    "credit": "What the market owes the account",
    "bond": "The bond for duties",
    "bond_locked": "What seats hold of the bond",
    "staked": "What tasks hold as stakes",
    "is_in_pool": "Whether we can be drawn",
    "settled_count": "Tasks that were settled",
    "failed_count": "Tasks that failed",
    "audits_right": "Audits that were right",
    "audits_wrong": "Audits that were wrong",
}


def _page(head: bytes, registry: CollectorRegistry) -> bytes:
    line = head.split(b"\r\n", 1)[0].split()
    if len(line) != 3 or line[0] != b"GET":
        return _reply("405 Method Not Allowed", b"only GET\n")
    if line[1].partition(b"?")[0] not in (b"/metrics", b"/"):
        return _reply("404 Not Found", b"ask for /metrics\n")
    try:
        page = generate_latest(registry)
    except Exception:
        # Whatever is wrong with a figure, the agent goes on.
        structlog.get_logger().exception("the metrics cannot be shown")
        return _reply("500 Internal Server Error", b"the agent could not answer; see its log\n")
    return _reply("200 OK", page)


def _reply(status: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {_TYPE}\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _gauge(name: str, meaning: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"trainyard_{name}", meaning, labels=labels)


def _value(name: str, meaning: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"trainyard_{name}", meaning, value=value)


def _count(name: str, meaning: str, value: float) -> CounterMetricFamily:
    return CounterMetricFamily(f"trainyard_{name}", meaning, value=value)


def _count_of(name: str, meaning: str, labels: list[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"trainyard_{name}", meaning, labels=labels)
