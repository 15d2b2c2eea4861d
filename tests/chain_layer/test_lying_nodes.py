"""A cursor in front of a node that leaves logs out, mixes forks up, or answers about few blocks."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.chain_layer.proxy import Change, Proxy, proxy_before
from tests.chain_layer.yard import Clock, Yard
from trainyard.chain.cursor import Cursor
from trainyard.chain.errors import NoEndpointError
from trainyard.chain.store import Store

Answer = dict[str, Any]


@pytest.fixture
def proxy(yard: Yard) -> Iterator[Proxy]:
    with proxy_before(yard.url) as proxy:
        yield proxy


def _on_ranges(change: Any) -> Change:
    """Spoil what `eth_getLogs` says of a range, and leave single blocks as they are."""

    def changed(method: str, params: list[Any], answer: Answer) -> Answer:
        if method != "eth_getLogs" or "blockHash" in params[0]:
            return answer
        return answer | {"result": change(answer["result"])}

    return changed


def _amounts(cursor: Cursor) -> list[int]:
    return [
        seen.event.args["amount"]
        for batch in cursor.batches()
        for seen in batch.events
        if seen.event.name == "Deposited"
    ]


def _all_but_last(logs: list[Any]) -> list[Any]:
    return logs[:-1]


def _nothing(logs: list[Any]) -> list[Any]:
    return []


def _one_block_left_out(logs: list[Any]) -> list[Any]:
    return [log for log in logs if log["blockNumber"] != logs[-2]["blockNumber"]]


def _other_fork(logs: list[Any]) -> list[Any]:
    return [log | {"blockHash": "0x" + "ab" * 32} for log in logs]


def _doubled(logs: list[Any]) -> list[Any]:
    return [*logs, logs[-1]]


def _strange_contract(logs: list[Any]) -> list[Any]:
    return [*logs, logs[-1] | {"address": "0x" + "11" * 20, "logIndex": "0x99"}]


def _out_of_range(logs: list[Any]) -> list[Any]:
    return [*logs, logs[-1] | {"blockNumber": "0xffffff"}]


def _made_up(logs: list[Any]) -> list[Any]:
    return [*logs, logs[-1] | {"topics": ["0x" + "22" * 32], "logIndex": "0x99"}]


def _no_data(logs: list[Any]) -> list[Any]:
    return [*(log | {"data": "0x"} for log in logs[:-1]), logs[-1]]


def _no_list(logs: list[Any]) -> Any:
    return {"logs": logs}


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_all_but_last, "leaves logs out"),
        (_nothing, "leaves logs out"),
        (_one_block_left_out, "leaves logs out"),
        (_other_fork, "on two forks"),
        (_doubled, "the same log twice"),
        (_strange_contract, "another contract"),
        (_out_of_range, "a log of block 16777215"),
        (_made_up, "a log that block .* does not have"),
        (_no_data, "malformed log"),
        (_no_list, "no list of logs"),
    ],
)
def test_wrong_logs_are_found(yard: Yard, proxy: Proxy, store: Store, spoil: Any, why: str) -> None:
    for amount in (1, 2, 3):
        yard.deposit(amount)
    proxy.change = _on_ranges(spoil)

    with pytest.raises(NoEndpointError, match=f"{proxy.url}: .*{why}"):
        yard.cursor(store, proxy.url).next()
    assert _amounts(yard.cursor(store, proxy.url, yard.url)) == [1, 2, 3]


def test_an_answer_that_ends_within_a_block_is_found(
    yard: Yard, proxy: Proxy, store: Store
) -> None:
    """The bloom of the block does not tell one deposit from two."""
    call = yard.calls.deposit(5, value=5)
    request = {"to": call.to, "data": f"0x{call.data.hex()}", "value": "0x5", "gas": "0x100000"}
    yard.anvil.send_in_one_block([request | {"from": who} for who in yard.people[:2]])
    proxy.change = _on_ranges(_all_but_last)

    with pytest.raises(NoEndpointError, match="1 logs in a range, and 2 others"):
        yard.cursor(store, proxy.url).next()
    assert _amounts(yard.cursor(store)) == [5, 5]


def test_blocks_of_two_chains_are_found(yard: Yard, proxy: Proxy, store: Store) -> None:
    yard.deposit(1)
    # Nothing in it: only what stands on it can tell that it is another block.
    yard.anvil.mine()
    odd = hex(yard.height)
    yard.deposit(2)

    def mixed(method: str, params: list[Any], answer: Answer) -> Answer:
        if method == "eth_getBlockByNumber" and params[0] == odd:
            return answer | {"result": answer["result"] | {"hash": "0x" + "cd" * 32}}
        return answer

    proxy.change = mixed

    with pytest.raises(NoEndpointError, match="does not follow"):
        yard.cursor(store, proxy.url).next()


def test_a_reorg_in_the_middle_of_a_question_is_found(
    yard: Yard, proxy: Proxy, store: Store
) -> None:
    """The logs are of one chain, and the blocks of the next."""
    before = yard.anvil.request("evm_snapshot")
    yard.deposit(1)

    def reorganise(method: str, params: list[Any], answer: Answer) -> Answer:
        if method == "eth_getLogs":
            proxy.change = lambda method, params, answer: answer
            yard.anvil.request("evm_revert", before)
            yard.deposit(2)
        return answer

    proxy.change = reorganise
    cursor = yard.cursor(store, proxy.url, clock=(clock := Clock()))

    with pytest.raises(NoEndpointError, match="on two forks"):
        cursor.next()
    clock.now += 1
    assert _amounts(cursor) == [2]


def test_ranges_shrink_until_a_node_answers(yard: Yard, proxy: Proxy, store: Store) -> None:
    refused = []

    def few_blocks(method: str, params: list[Any], answer: Answer) -> Answer:
        if method == "eth_getLogs" and "blockHash" not in params[0]:
            blocks = int(params[0]["toBlock"], 16) - int(params[0]["fromBlock"], 16) + 1
            if blocks > 10:
                refused.append(blocks)
                error = {"code": -32005, "message": "query returned more than 10000 results"}
                return {"id": answer["id"], "error": error}
        return answer

    yard.deposit(1)
    yard.anvil.mine(40)
    yard.deposit(2)
    proxy.change = few_blocks

    assert _amounts(yard.cursor(store, proxy.url)) == [1, 2]
    assert refused


def test_a_node_without_batches_is_asked_one_by_one(yard: Yard, proxy: Proxy, store: Store) -> None:
    yard.deposit(1)
    proxy.batches = False

    assert _amounts(yard.cursor(store, proxy.url)) == [1]
    assert proxy.questions("eth_getBlockByNumber") > 1
