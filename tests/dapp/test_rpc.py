"""What strangers may have the server ask the chain, and how much of it at once."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

import httpx
import pytest
from hexbytes import HexBytes

from dapp.errors import ApiError
from dapp.security.clients import asking
from dapp.services import STRANGERS_AT_ONCE, STRANGERS_MOST_OF_ONE, ChainDesk
from tests.dapp.server import Client, dapp_for, settings_for
from tests.dapp.yard import Yard
from trainyard.chain.client import MarketClient
from trainyard.chain.codec import market_codec
from trainyard.chain.endpoints import Endpoints

_OTHER = "0x" + "11" * 20
_FOREVER = HexBytes("0x5b600056")


@pytest.fixture(scope="module")
def client(played: Yard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with dapp_for(settings_for(played, tmp_path_factory.mktemp("dapp"))) as found:
        yield found


def ask(client: Client, method: str, *params: Any) -> httpx.Response:
    document = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(params)}
    return client.post("/rpc", json=document)


def count_call(yard: Yard) -> dict[str, str]:
    """As the page's library asks."""
    data = market_codec().call("taskCount", ())
    return {"from": _OTHER, "to": yard.market.lower(), "data": f"0x{data.hex()}", "value": "0x0"}


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
def test_the_market_is_called(client: Client, played: Yard, method: str) -> None:
    call = count_call(played)

    for params in ((call,), (call, "latest"), (call | {"gas": "0x100000"}, "latest")):
        answer = ask(client, method, *params).json()
        assert int(answer["result"], 16) > 0, answer


def test_what_the_page_reads_beside_it_is_answered(client: Client, played: Yard) -> None:
    assert int(ask(client, "eth_getBalance", _OTHER, "latest").json()["result"], 16) == 0
    assert ask(client, "eth_getBlockByNumber", "latest", True).json()["result"]["number"]
    assert ask(client, "eth_feeHistory", "0x4", "latest", [50]).json()["result"]["oldestBlock"]


@pytest.mark.parametrize("method", ["eth_call", "eth_estimateGas"])
def test_no_other_code_runs_for_strangers(client: Client, played: Yard, method: str) -> None:
    call = count_call(played)
    code = {played.market: {"code": _FOREVER.to_0x_hex()}}
    for status, params in (
        (403, [call | {"to": _OTHER}, "latest"]),
        (403, [{"data": _FOREVER.to_0x_hex()}, "latest"]),
        (403, [call | {"to": None}]),
        (403, [call | {"to": [played.market]}]),
        (422, [call, "latest", code]),
        (422, [call | {"accessList": []}, "latest"]),
        (422, [call | {"gas": hex(2**40)}, "latest"]),
        (422, [call | {"gas": "much"}, "latest"]),
        (422, [call | {"data": "0x" + "00" * (256 << 10)}, "latest"]),
        (422, ["latest"]),
        (422, []),
    ):
        answer = ask(client, method, *params)
        assert answer.status_code == status, answer.text
        assert answer.json()["error"]["message"]


class Held:
    """Questions that end when the test says so, each of a client."""

    def __init__(self, desk: ChainDesk) -> None:
        self._desk, self._go = desk, threading.Event()
        self._inside = threading.Semaphore(0)
        self._pool = ThreadPoolExecutor(STRANGERS_AT_ONCE)

    def begin(self, client: str) -> None:
        context = copy_context()
        context.run(asking.set, client)
        self._pool.submit(context.run, self._desk.ask, self._wait)
        assert self._inside.acquire(timeout=30)

    def end(self) -> None:
        self._go.set()
        self._pool.shutdown()

    def _wait(self, endpoints: Endpoints, market: MarketClient) -> None:
        self._inside.release()
        self._go.wait(60)


@pytest.fixture
def held() -> Iterator[Held]:
    desk = ChainDesk.for_strangers(("http://127.0.0.1:1",), 1, _OTHER)
    found = Held(desk)
    yield found
    found.end()


def test_one_client_has_so_many_questions_at_once(held: Held) -> None:
    for _ in range(STRANGERS_MOST_OF_ONE):
        held.begin("one")

    with pytest.raises(ApiError) as refused:
        asked_by("one", held._desk)

    assert (refused.value.status, refused.value.retry_after_s) == (503, 1.0)
    assert asked_by("another", held._desk) == "an answer"


def test_nobody_waits_for_a_place(held: Held) -> None:
    for place in range(STRANGERS_AT_ONCE):
        held.begin(f"client {place}")

    with pytest.raises(ApiError) as refused:
        asked_by("one more", held._desk)

    assert (refused.value.status, refused.value.retry_after_s) == (503, 2.0)


def asked_by(client: str, desk: ChainDesk) -> Any:
    context = copy_context()
    context.run(asking.set, client)
    return context.run(desk.ask, lambda endpoints, market: "an answer")


def test_what_strangers_ask_makes_nothing_ill_for_the_server(
    client: Client,
) -> None:
    services = client.app.state.services

    def fail(endpoints: Endpoints, market: MarketClient) -> Any:
        return endpoints.run(lambda rpc: (_ for _ in ()).throw(rpc.error("it cannot answer now")))

    for _ in range(STRANGERS_AT_ONCE):
        with pytest.raises(ApiError, match="cannot answer now"):
            services.passing.ask(fail)

    assert services.chain.ask(lambda _, market: market.task_count()) > 0
    assert client.get(str(client.base_url.join("/readyz"))).status_code == 200
