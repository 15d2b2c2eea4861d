"""What an agent sees of the market, in every state of a task and after every kind of reorg."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chain_layer.proxy import proxy_before
from tests.chain_layer.yard import ETHER, TERMS, Yard
from trainyard.chain.errors import StoreUnavailableError
from trainyard.chain.fees import GWEI, FeePolicy
from trainyard.chain.outbox import Outbox
from trainyard.protocol.commitments import Claim, Market
from trainyard.protocol.market import Policy, TaskState
from trainyard.protocol.trace import Trace
from worker_agent.sight import Watcher

_REQUESTER, _WORKER, _AUDITOR = range(3)
_TRACE = Trace([bytes([number]) * 32 for number in (1, 2)])
_CLAIM = Claim.of(b"r" * 32, _TRACE.root)
_SALT, _CARD, _PROFILE, _WRONG = (word * 32 for word in (b"s", b"k", b"p", b"w"))
_DAY_S = 86_400

Step = Callable[[Yard], None]


@contextmanager
def _watcher(yard: Yard, folder: Path) -> Iterator[Watcher]:
    folder.mkdir(exist_ok=True)
    store = yard.store(folder)
    try:
        yield Watcher(yard.endpoints(), yard.cursor(store), yard.people[_WORKER])
    finally:
        store.close()


# Each life goes through states one after the other; together they are in all of them.


def _registered(yard: Yard) -> None:
    yard.send(yard.calls.register(_PROFILE, TERMS.env_class, 0), _WORKER)
    bond = 10 * ETHER
    yard.send(yard.calls.register(_PROFILE, TERMS.env_class, bond, value=bond), _AUDITOR)


def _joined(yard: Yard) -> None:
    yard.send(yard.calls.join(1, _CARD, value=ETHER), _WORKER)


def _post(policy: Policy, **more: Any) -> Step:
    def post(yard: Yard) -> None:
        terms = replace(TERMS, policy=policy, **more)
        yard.send(yard.calls.post(terms, value=terms.escrow), _REQUESTER)

    return post


def _draw(yard: Yard) -> None:
    yard.anvil.mine(8)
    yard.send(yard.calls.draw(1), _WORKER)


def _audit_commit(yard: Yard) -> None:
    market = Market(yard.chain_id, yard.market)
    sealed = market.answer_commitment(1, 0, yard.people[_AUDITOR], _SALT, _WRONG)
    yard.send(yard.calls.audit_commit(1, 0, sealed), _AUDITOR)


def _open(yard: Yard) -> None:
    # There is one segment, so it is known which was drawn.
    states, proofs = [_TRACE.after(0)], [_TRACE.proof_after(0)]
    yard.send(yard.calls.open(1, _CLAIM, states, proofs), _WORKER)


def _commit(yard: Yard) -> None:
    market = Market(yard.chain_id, yard.market)
    sealed = market.claim_commitment(1, yard.people[_WORKER], _SALT, _CLAIM.result, _CLAIM.root)
    yard.send(yard.calls.commit(1, 0, sealed), _WORKER)


def _reveal(yard: Yard) -> None:
    yard.send(yard.calls.reveal(1, 0, _SALT, _CLAIM.result, _CLAIM.root), _WORKER)
    yard.send(yard.calls.expire(1), _WORKER)


def _expire(yard: Yard) -> None:
    now = yard.anvil.web3.eth.get_block("latest")["timestamp"]
    yard.anvil.next_block_at(now + 2 * _DAY_S)
    yard.send(yard.calls.expire(1), _WORKER)


_AUDITED = _post(Policy.AUDIT, segments=1, audits=1, min_audits=1, audit_fee=ETHER // 100)
_LIVES: dict[str, list[tuple[TaskState, Step]]] = {
    "audited": [
        (TaskState.OPEN, _AUDITED),
        (TaskState.RUNNING, _joined),
        (
            TaskState.SUBMITTED,
            lambda y: y.send(y.calls.submit(1, 0, _CLAIM.result, _CLAIM.root), _WORKER),
        ),
        (TaskState.AUDITING, _draw),
        (TaskState.OPENING, _audit_commit),
        (TaskState.WINDOW, _open),
        (TaskState.DISPUTED, lambda y: y.send(y.calls.audit_reveal(1, 0, _SALT, _WRONG), _AUDITOR)),
    ],
    "replicated": [
        (TaskState.OPEN, _post(Policy.REPLICATE)),
        (TaskState.RUNNING, _joined),
        (TaskState.REVEALING, _commit),
        (TaskState.SETTLED, _reveal),
    ],
    "failed": [
        (TaskState.OPEN, _post(Policy.REPLICATE)),
        (TaskState.RUNNING, _joined),
        (TaskState.FAILED, _expire),
    ],
    "cancelled": [
        (TaskState.OPEN, _post(Policy.REPLICATE)),
        (TaskState.CANCELLED, lambda y: y.send(y.calls.cancel(1), _REQUESTER)),
    ],
}


def test_lives_go_through_every_state() -> None:
    assert {state for life in _LIVES.values() for state, _ in life} == {
        state for state in TaskState if state is not TaskState.NONE
    }


@pytest.mark.parametrize("depth", [1, 2, 12, 64])
@pytest.mark.parametrize("life", _LIVES)
def test_in_every_state_a_reorg_leaves_the_same_view_as_a_fresh_one(
    yard: Yard, tmp_path: Path, life: str, depth: int
) -> None:
    """The step into each state falls out of the chain, other blocks come, and it is taken again."""
    _registered(yard)
    yard.anvil.mine(4)
    with _watcher(yard, tmp_path) as watcher:
        state = None
        for number, (reached, step) in enumerate(_LIVES[life]):
            watcher.look()
            before, height = yard.anvil.request("evm_snapshot"), yard.height
            step(yard)
            yard.anvil.mine(max(0, depth - (yard.height - height)))
            assert _state(watcher) is reached
            reorgs, undone = watcher.reorgs, yard.height - height

            yard.anvil.request("evm_revert", before)
            yard.deposit(number + 1)
            yard.anvil.mine(undone)
            seen = watcher.look()
            with _watcher(yard, tmp_path / "fresh") as fresh:
                assert fresh.look().book == seen.book
            assert undone >= depth
            assert watcher.reorgs == reorgs + 1
            assert _state(watcher) is state

            step(yard)
            with _watcher(yard, tmp_path / "fresh") as fresh:
                assert fresh.look().book == watcher.look().book
            state = reached
            assert _state(watcher) is state


def test_a_reorg_deeper_than_is_kept_makes_it_read_all_anew(yard: Yard, tmp_path: Path) -> None:
    _registered(yard)
    with _watcher(yard, tmp_path) as watcher:
        watcher.look()
        before = yard.anvil.request("evm_snapshot")
        _post(Policy.REPLICATE)(yard)
        yard.anvil.mine(200)
        assert _state(watcher) is TaskState.OPEN

        yard.anvil.request("evm_revert", before)
        yard.deposit(1)
        yard.anvil.mine(250)
        seen = watcher.look()

        assert watcher.reorgs == 1
        assert _state(watcher) is None
        with _watcher(yard, tmp_path / "fresh") as fresh:
            assert fresh.look().book == seen.book


def test_what_cannot_be_kept_is_not_taken_twice(yard: Yard, tmp_path: Path) -> None:
    """As on a full disk; here the store is in another one's hands."""
    yard.deposit(1, _WORKER)
    store = yard.store(tmp_path)
    cursor = yard.cursor(store)
    watcher = Watcher(yard.endpoints(), cursor, yard.people[_WORKER])
    store.write("PRAGMA query_only = ON")
    for _ in range(3):
        with pytest.raises(StoreUnavailableError):
            watcher.look()
        yard.deposit(1, _WORKER)
    store.write("PRAGMA query_only = OFF")

    book = watcher.look().book
    store.close()

    assert book.accounts[yard.people[_WORKER]].credit == 4


def test_gas_is_priced_with_the_tip_that_would_be_offered(yard: Yard, tmp_path: Path) -> None:
    """On a chain whose nodes ask for a high tip, that is most of what an answer costs."""

    def dear(method: str, params: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
        is_tip = method == "eth_maxPriorityFeePerGas"
        return answer | {"result": hex(30 * GWEI)} if is_tip else answer

    policy = FeePolicy(most_tip_wei=20 * GWEI)
    with proxy_before(yard.url) as proxy, closing(yard.store(tmp_path)) as store:
        proxy.change = dear
        endpoints = yard.endpoints(proxy.url)
        sight = Watcher(endpoints, yard.cursor(store), yard.people[_WORKER], policy).look()
        outbox = Outbox(endpoints, store, yard.purse("sender"), fees=policy)
        offered = outbox.submit("deposit", yard.calls.deposit(1, value=1)).newest.fees

    assert offered.tip == 20 * GWEI
    base_fee = (offered.max_fee - offered.tip) // 2
    assert sight.gas_price == base_fee + offered.tip


def _state(watcher: Watcher) -> TaskState | None:
    task = watcher.look().book.tasks.get(1)
    return None if task is None else task.state


def test_post_is_seen_with_its_block_also_after_a_reorg(yard: Yard, tmp_path: Path) -> None:
    """Only what lies deep is joined."""
    before = yard.anvil.request("evm_snapshot")
    _post(Policy.REPLICATE)(yard)
    first = yard.height
    yard.anvil.mine(2)
    with _watcher(yard, tmp_path) as watcher:
        assert watcher.look().posted == {1: first}

        yard.anvil.request("evm_revert", before)
        yard.anvil.mine(2)
        assert watcher.look().posted == {}
        _post(Policy.REPLICATE)(yard)
        assert watcher.look().posted == {1: first + 2}
