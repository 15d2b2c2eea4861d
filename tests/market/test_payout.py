"""A worker that is paid out goes on with what it began with."""

import pytest

from tests.market.yard import TRAINER, Market
from trainyard.devnet.options import ETHER

# Nobody audits here: this is about money alone.
_TERMS = {"audits": 0, "min_audits": 0, "answer_for": 12, "train_for": 900}
_TARGET = "0x" + "7a" * 20


def _balance(yard: Market, address: str) -> int:
    return int(yard.devnet.chain.request("eth_getBalance", address, "latest"), 16)


@pytest.mark.long
def test_worker_with_one_stake_takes_one_task_after_another_and_sends_home_what_it_earns(
    yard: Market,
) -> None:
    """The second task is on offer while the stake of the first comes back, and needs all of it."""
    name = yard.name()
    me = yard.address(name)
    yard.devnet.chain.request("anvil_setBalance", me, hex(ETHER + ETHER // 10))
    with yard.agent(name, {**TRAINER, "payout": f'"{_TARGET}"'}) as agent:
        yard.wait_for_workers(agent)
        tasks = [yard.post(yard.manifest(segments=2, seed=seed), **_TERMS) for seed in (81, 82)]
        for task in tasks:
            yard.settle(task, agent)
        yard.wait(lambda: _balance(yard, _TARGET) == 2 * ETHER, agent)

    yard.look()
    assert yard.requester.book.account(me).credit == ETHER
    assert 0 < _balance(yard, me) < ETHER // 10
