"""The agent's little server: a question that cannot be answered ends nobody."""

import socket
from collections.abc import Iterable

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from worker_agent.metrics import _page
from worker_agent.serving import Server


class _TooLarge(Collector):
    def collect(self) -> Iterable[Metric]:
        gauge = GaugeMetricFamily("share", "Of a step that no float holds")
        gauge.add_metric([], 10**400 / 3)
        yield gauge


def test_page_that_cannot_be_made_is_an_error_of_the_server() -> None:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_TooLarge())

    assert _page(b"GET /metrics HTTP/1.1", registry).startswith(b"HTTP/1.1 500 ")
    assert _page(b"GET /metrics HTTP/1.1", CollectorRegistry()).startswith(b"HTTP/1.1 200 ")


def test_server_outlives_an_answer_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    def answer(question: bytes) -> bytes:
        return b"%d" % (6 // int(question))

    server = Server(socket.create_server(("127.0.0.1", 0)), b"\n", answer)
    address = server._listener.getsockname()
    try:
        found = [_ask(server, address, question) for question in (b"0\n", b"2\n")]
        assert found == [b"", b"3"]
        assert server.count == 0
    finally:
        server.close()


def _ask(server: Server, address: tuple[str, int], question: bytes) -> bytes:
    with socket.create_connection(address, timeout=10) as one:
        one.sendall(question)
        server.serve()
        while server.count:
            server.serve()
        return one.recv(100)
