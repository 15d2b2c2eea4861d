"""Failover between real endpoints, one of which is bad in one way or another."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.chain_layer.proxy import Proxy, proxy_before
from tests.chain_layer.yard import Clock, Yard
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import (
    NodeRefusedError,
    NoEndpointError,
    RevertedError,
    WrongChainError,
)
from trainyard.chain.health import Patience


@pytest.fixture
def proxy(yard: Yard) -> Iterator[Proxy]:
    with proxy_before(yard.url) as proxy:
        yield proxy


def _rate_limited(proxy: Proxy) -> None:
    proxy.status, proxy.body, proxy.headers = 429, b"slow down", {"Retry-After": "20"}


def _overloaded(proxy: Proxy) -> None:
    proxy.status, proxy.body = 503, b"<html>busy</html>"


def _garbage(proxy: Proxy) -> None:
    proxy.body = b"<html>a page</html>"


def _no_rpc(proxy: Proxy) -> None:
    proxy.body = b"[1, 2]"


def _cut_short(proxy: Proxy) -> None:
    proxy.body, proxy.promised_bytes = b'{"jsonrpc": "2.0", "id": 0, "res', 500


def _redirecting(proxy: Proxy) -> None:
    proxy.status, proxy.body, proxy.headers = 302, b"", {"Location": "http://127.0.0.1:1/"}


def _busy_by_code(proxy: Proxy) -> None:
    proxy.change = lambda method, params, answer: {
        "id": answer["id"],
        "error": {"code": -32005, "message": "daily request count exceeded"},
    }


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_rate_limited, "answered with HTTP 429"),
        (_overloaded, "answered with HTTP 503"),
        (_garbage, "its answer is no JSON-RPC"),
        (_no_rpc, "no JSON-RPC"),
        (_cut_short, "its answer"),
        (_redirecting, "its answer is no JSON-RPC"),
        (_busy_by_code, "it cannot answer now: daily request count exceeded"),
    ],
)
def test_a_bad_endpoint_is_passed_over_and_named(
    yard: Yard, proxy: Proxy, spoil: Callable[[Proxy], None], why: str
) -> None:
    spoil(proxy)
    endpoints = yard.endpoints(proxy.url, yard.url)

    assert endpoints.call("eth_chainId") == hex(yard.chain_id)
    assert why in endpoints.states()[proxy.url]
    assert endpoints.states()[yard.url] == ""


def test_it_is_tried_again_after_a_while(yard: Yard, proxy: Proxy) -> None:
    clock = Clock()
    _rate_limited(proxy)
    endpoints = yard.endpoints(proxy.url, yard.url, clock=clock)
    endpoints.call("eth_blockNumber")
    proxy.status, proxy.body = 200, None

    clock.now += 19
    endpoints.call("eth_gasPrice")
    # It had asked for twenty seconds.
    assert proxy.asked == []
    clock.now += 2
    endpoints.call("eth_gasPrice")
    assert proxy.questions("eth_gasPrice") == 1


def test_without_any_all_are_named(yard: Yard, proxy: Proxy) -> None:
    _overloaded(proxy)
    dead = "http://127.0.0.1:9"
    endpoints = yard.endpoints(f"{proxy.url}/v3/secret", dead)

    with pytest.raises(NoEndpointError) as refused:
        endpoints.call("eth_blockNumber")

    said = str(refused.value)
    assert f"{proxy.url}: answered with HTTP 503" in said
    assert f"{dead}: cannot be reached" in said
    assert "secret" not in said
    assert 0 < refused.value.retry_in_s <= 1


def test_an_answer_that_drips_is_given_up(yard: Yard, proxy: Proxy) -> None:
    """Each byte comes in time, and all of them never would."""
    proxy.drip_s = 0.05
    endpoints = Endpoints([proxy.url], chain_id=yard.chain_id, timeout_s=0.3)

    with pytest.raises(NoEndpointError, match=r"no answer within 0\.3 s"):
        endpoints.call("eth_blockNumber")


def test_another_chain_is_refused_by_name(yard: Yard, proxy: Proxy) -> None:
    proxy.change = lambda method, params, answer: (
        answer | ({"result": "0x1"} if method == "eth_chainId" else {})
    )
    endpoints = yard.endpoints(proxy.url, yard.url)

    with pytest.raises(WrongChainError, match=f"{proxy.url} serves chain 1, not {yard.chain_id}"):
        endpoints.check()
    assert endpoints.call("eth_blockNumber") == hex(yard.height)
    assert set(proxy.asked) == {"eth_chainId"}


def test_a_head_that_lags_is_passed_over(yard: Yard, proxy: Proxy) -> None:
    frozen = hex(yard.height)
    proxy.change = lambda method, params, answer: (
        answer | ({"result": frozen} if method == "eth_blockNumber" else {})
    )
    yard.anvil.mine(4)
    endpoints = yard.endpoints(proxy.url, yard.url)

    assert endpoints.call("eth_blockNumber") == hex(yard.height)
    assert "4 behind the best" in endpoints.states()[proxy.url]


def test_a_head_that_stands_still_is_passed_over(yard: Yard, proxy: Proxy) -> None:
    clock, frozen = Clock(), hex(yard.height)
    proxy.change = lambda method, params, answer: (
        answer | ({"result": frozen} if method == "eth_blockNumber" else {})
    )
    endpoints = yard.endpoints(proxy.url, yard.url, clock=clock, lag_blocks=100, still_s=30.0)
    assert endpoints.call("eth_blockNumber") == frozen
    clock.now += 31
    yard.anvil.mine(1)

    assert endpoints.call("eth_blockNumber") == hex(yard.height)
    assert "while others moved" in endpoints.states()[proxy.url]


def test_what_a_node_refuses_is_asked_of_the_next(yard: Yard, proxy: Proxy) -> None:
    def pruned(method: str, params: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
        error = {"code": -32000, "message": "missing trie node"}
        return {"id": answer["id"], "error": error} if method == "eth_getBalance" else answer

    proxy.change = pruned
    who = (yard.people[1], "latest")

    found = yard.endpoints(proxy.url, yard.url).call("eth_getBalance", *who)

    assert int(found, 16) > 0
    with pytest.raises(NodeRefusedError, match=f"{proxy.url}: it refused: missing trie node"):
        yard.endpoints(proxy.url).call("eth_getBalance", *who)


def test_a_refusal_of_the_market_is_a_sentence(yard: Yard) -> None:
    client = MarketClient(yard.endpoints(), yard.market)

    with pytest.raises(RevertedError, match="task 9 is none"):
        client.try_out(client.calls.settle(9), yard.people[0])


def test_where_no_market_is_the_address_is_named(yard: Yard) -> None:
    with pytest.raises(NoEndpointError, match=f"not that of a market at {yard.people[0]}"):
        MarketClient(yard.endpoints(), yard.people[0]).task_count()


def test_patience_ends_at_its_limit() -> None:
    patience = Patience(first_wait_s=1.0, longest_wait_s=60.0)

    assert [patience.wait_s(failures) for failures in (1, 2, 3, 7, 5_000)] == [1, 2, 4, 60, 60]
