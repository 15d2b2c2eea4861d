"""Transactions are sent once: across repeats, refusals, replacements, reorgs and other senders."""

from typing import Any

import pytest
from eth_account.signers.local import LocalAccount

from tests.chain_layer.proxy import proxy_before
from tests.chain_layer.yard import ETHER, Yard
from trainyard.chain.calls import Call
from trainyard.chain.client import MarketClient
from trainyard.chain.errors import IntentConflictError, NoEndpointError, RevertedError
from trainyard.chain.fees import GWEI, FeePolicy
from trainyard.chain.journal import State
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store


@pytest.fixture
def account(yard: Yard) -> LocalAccount:
    """Somebody on a chain whose blocks come when a test says so.

    Else they come soon after anvil has answered, which is before or after the next question.
    """
    yard.anvil.request("evm_setAutomine", False)
    return yard.purse("sender")


@pytest.fixture
def outbox(yard: Yard, store: Store, account: LocalAccount) -> Outbox:
    return Outbox(yard.endpoints(), store, account, confirmations=3)


def _credit(yard: Yard, account: LocalAccount) -> int:
    return MarketClient(yard.endpoints(), yard.market).account(account.address).credit


def _deposit(yard: Yard, amount: int = ETHER) -> Call:
    return yard.calls.deposit(amount, value=amount)


def test_an_intent_is_sent_mined_and_confirmed(
    yard: Yard, outbox: Outbox, account: LocalAccount
) -> None:
    sent = outbox.submit("deposit", _deposit(yard))

    assert sent.state is State.PENDING
    assert outbox.step() == []
    yard.anvil.mine()
    assert [entry.state for entry in outbox.step()] == [State.MINED]
    assert outbox.step() == []
    yard.anvil.mine(2)
    (done,) = outbox.step()
    assert done.state is State.DONE
    assert done.mined == sent.newest.hash
    assert _credit(yard, account) == ETHER


def test_one_key_is_sent_once(yard: Yard, outbox: Outbox, account: LocalAccount) -> None:
    first = outbox.submit("deposit", _deposit(yard))
    yard.anvil.mine()

    assert outbox.submit("deposit", _deposit(yard)) == first
    assert yard.mined_of(account.address) == 1
    with pytest.raises(IntentConflictError, match="'deposit' is the key of another"):
        outbox.submit("deposit", _deposit(yard, 2 * ETHER))


def test_what_would_be_refused_is_not_kept(yard: Yard, outbox: Outbox) -> None:
    with pytest.raises(RevertedError, match="is not registered as a worker"):
        outbox.submit("retire", yard.calls.retire())

    with pytest.raises(LookupError, match="nothing was submitted with the key 'retire'"):
        outbox.entry("retire")


def test_a_reverted_one_says_why(yard: Yard, outbox: Outbox, account: LocalAccount) -> None:
    outbox.submit("withdraw", yard.calls.withdraw(account.address, 5), gas=200_000)
    yard.anvil.mine(3)

    (reverted,) = outbox.step()

    assert reverted.state is State.REVERTED
    assert reverted.why == f"{account.address} has a credit of 0, and needs 5"


def test_too_little_gas_is_told_from_a_refusal(yard: Yard, outbox: Outbox) -> None:
    outbox.submit("deposit", _deposit(yard), gas=30_000)
    yard.anvil.mine(3)

    assert "ran out of gas" in outbox.step()[0].why


def test_several_keep_their_order(yard: Yard, outbox: Outbox, account: LocalAccount) -> None:
    sent = [outbox.submit(f"deposit {index}", _deposit(yard)) for index in range(3)]
    yard.anvil.mine(3)

    assert [entry.nonce for entry in sent] == [0, 1, 2]
    assert {entry.state for entry in outbox.step()} == {State.DONE}
    assert _credit(yard, account) == 3 * ETHER


def test_a_stuck_one_is_replaced_at_its_nonce(
    yard: Yard, outbox: Outbox, account: LocalAccount
) -> None:
    first = outbox.submit("deposit", _deposit(yard)).newest
    for _ in range(3):
        yard.anvil.request("anvil_setNextBlockBaseFeePerGas", hex(100 * GWEI))
        yard.anvil.mine()
    assert yard.mined_of(account.address) == 0

    outbox.step()
    old, new = outbox.entry("deposit").versions
    yard.anvil.mine(3)

    assert old == first
    assert new.fees.max_fee * 8 >= old.fees.max_fee * 9
    assert new.fees.tip * 8 >= old.fees.tip * 9
    (done,) = outbox.step()
    assert (done.state, done.mined) == (State.DONE, new.hash)
    assert _credit(yard, account) == ETHER


def test_whichever_version_is_mined_counts(
    yard: Yard, outbox: Outbox, account: LocalAccount
) -> None:
    first = outbox.submit("deposit", _deposit(yard)).newest
    yard.anvil.request("anvil_dropAllTransactions")
    yard.anvil.mine(3)
    outbox.step()
    # The node that mines has only ever heard of the first.
    yard.anvil.request("anvil_dropAllTransactions")
    yard.anvil.request("eth_sendRawTransaction", f"0x{first.raw.hex()}")
    yard.anvil.mine(3)

    (done,) = outbox.step()

    assert len(done.versions) == 2
    assert (done.state, done.mined) == (State.DONE, first.hash)
    assert _credit(yard, account) == ETHER


def test_no_fee_is_raised_beyond_the_limit(yard: Yard, store: Store, account: LocalAccount) -> None:
    policy = FeePolicy(most_wei=2 * GWEI)
    outbox = Outbox(yard.endpoints(), store, account, fees=policy)
    outbox.submit("deposit", _deposit(yard))
    for _ in range(3):
        yard.anvil.request("anvil_setNextBlockBaseFeePerGas", hex(100 * GWEI))
        yard.anvil.mine()

    outbox.step()

    assert "raise the limit" in outbox.entry("deposit").why
    assert len(outbox.entry("deposit").versions) == 1


@pytest.mark.parametrize("depth", [1, 5])
def test_one_that_falls_out_of_the_chain_is_sent_again(
    yard: Yard, store: Store, account: LocalAccount, depth: int
) -> None:
    """As the same bytes, also if it was mined longer ago than a stuck one would wait."""
    outbox = Outbox(yard.endpoints(), store, account, confirmations=8)
    before = yard.anvil.request("evm_snapshot")
    sent = outbox.submit("deposit", _deposit(yard))
    yard.anvil.mine(depth)
    assert [entry.state for entry in outbox.step()] == [State.MINED]
    yard.anvil.request("evm_revert", before)
    yard.anvil.mine(depth)
    assert yard.mined_of(account.address) == 0

    (fallen,) = outbox.step()
    yard.anvil.mine()
    # Not before whoever calls had time to see what the chain is now.
    assert yard.mined_of(account.address) == 0
    outbox.step()
    yard.anvil.mine(8)

    assert (fallen.state, fallen.mined) == (State.PENDING, None)
    assert [version.raw for version in fallen.versions] == [sent.newest.raw]
    (done,) = outbox.step()
    assert (done.state, done.mined) == (State.DONE, sent.newest.hash)
    assert _credit(yard, account) == ETHER


@pytest.mark.parametrize(
    ("field", "why"),
    [("blockHash", "a receipt of another block"), ("transactionHash", "of another transaction")],
)
def test_a_receipt_that_cannot_be_ours_is_not_believed(
    yard: Yard, store: Store, account: LocalAccount, field: str, why: str
) -> None:
    def forged(method: str, params: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
        if method == "eth_getTransactionReceipt" and answer["result"]:
            return answer | {"result": answer["result"] | {field: "0x" + "ab" * 32}}
        return answer

    with proxy_before(yard.url) as proxy:
        proxy.change = forged
        outbox = Outbox(yard.endpoints(proxy.url), store, account, confirmations=1)
        outbox.submit("deposit", _deposit(yard))
        yard.anvil.mine()

        with pytest.raises(NoEndpointError, match=why):
            outbox.step()

    assert outbox.entry("deposit").state is State.PENDING


def test_what_cannot_be_sent_now_is_sent_later(
    yard: Yard, store: Store, account: LocalAccount
) -> None:
    with proxy_before(yard.url) as proxy:
        outbox = Outbox(yard.endpoints(proxy.url, first_wait_s=0.0), store, account)
        outbox.submit("first", _deposit(yard))
        yard.anvil.mine()
        proxy.refused_methods = {"eth_sendRawTransaction"}
        late = outbox.submit("second", _deposit(yard))
        assert "it cannot answer now" in late.why
        yard.anvil.mine()
        assert yard.mined_of(account.address) == 1
        proxy.refused_methods = set()

        outbox.step()
        yard.anvil.mine()

    assert yard.mined_of(account.address) == 2
    assert _credit(yard, account) == 2 * ETHER


@pytest.mark.parametrize("blocks", [4, 5, 20])
def test_a_nonce_that_somebody_else_used_is_told(
    yard: Yard, outbox: Outbox, account: LocalAccount, blocks: int
) -> None:
    outbox.submit("deposit", _deposit(yard))
    yard.anvil.request("anvil_dropAllTransactions")
    foreign = account.sign_transaction(
        {
            "to": yard.people[1],
            "value": 1,
            "nonce": 0,
            "gas": 21_000,
            "gasPrice": 50 * GWEI,
            "chainId": yard.chain_id,
        }
    )
    yard.anvil.request("eth_sendRawTransaction", f"0x{foreign.raw_transaction.hex()}")
    yard.anvil.mine(blocks)

    (displaced,) = outbox.step()

    assert displaced.state is State.DISPLACED
    assert displaced.why == f"another transaction of {account.address} has nonce 0"
    assert outbox.submit("deposit again", _deposit(yard)).nonce == 1


def _dear_block(yard: Yard, gwei: int = 100) -> None:
    yard.anvil.request("anvil_setNextBlockBaseFeePerGas", hex(gwei * GWEI))
    yard.anvil.mine()


def test_near_its_deadline_one_is_raised_at_every_block_and_what_is_before_it(
    yard: Yard, outbox: Outbox
) -> None:
    outbox.submit("before", _deposit(yard))
    outbox.submit("late", _deposit(yard))
    outbox.submit("after", _deposit(yard))
    now = int(yard.anvil.request("eth_getBlockByNumber", "latest", False)["timestamp"], 16)

    # Each dearer than what was offered after the one before.
    for gwei in (100, 220):
        _dear_block(yard, gwei)
        outbox.step({"late": now + 30})

    keys = ("before", "late", "after")
    assert [len(outbox.entry(key).versions) for key in keys] == [3, 3, 1]


@pytest.mark.parametrize("left_s", [-1, 3600])
def test_far_from_its_deadline_or_after_it_nothing_is_hurried(
    yard: Yard, outbox: Outbox, left_s: int
) -> None:
    outbox.submit("deposit", _deposit(yard))
    now = int(yard.anvil.request("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    _dear_block(yard)

    outbox.step({"deposit": now + left_s})

    assert len(outbox.entry("deposit").versions) == 1


def test_an_endpoint_that_names_a_huge_tip_is_not_followed(
    yard: Yard, store: Store, account: LocalAccount
) -> None:
    def greedy(method: str, params: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
        is_tip = method == "eth_maxPriorityFeePerGas"
        return answer | {"result": hex(400 * GWEI)} if is_tip else answer

    with proxy_before(yard.url) as proxy:
        proxy.change = greedy
        policy = FeePolicy(most_tip_wei=3 * GWEI)
        outbox = Outbox(yard.endpoints(proxy.url), store, account, fees=policy)
        sent = outbox.submit("deposit", _deposit(yard))

    assert sent.newest.fees.tip == 3 * GWEI


@pytest.mark.parametrize("confirmations", [1, 12])
def test_what_no_look_has_seen_yet_is_named(
    yard: Yard, store: Store, account: LocalAccount, confirmations: int
) -> None:
    """Also what counts on staying already: who is behind would count on the same money twice."""
    outbox = Outbox(yard.endpoints(), store, account, confirmations=confirmations)
    outbox.submit("deposit", _deposit(yard))
    seen = yard.height
    assert [one.key for one in outbox.unseen(seen)] == ["deposit"]
    yard.anvil.mine()
    outbox.step()

    assert [one.key for one in outbox.unseen(seen)] == ["deposit"]
    assert outbox.unseen(yard.height) == []


def _is_first(key: str) -> bool:
    return key == "first"


def test_what_is_void_is_never_mined_and_what_is_after_it_is(
    yard: Yard, outbox: Outbox, account: LocalAccount
) -> None:
    """It is in the node's pool already: something that does nothing takes its place."""
    outbox.submit("first", _deposit(yard))
    outbox.submit("second", _deposit(yard, 2 * ETHER))

    outbox.step(is_void=_is_first)
    yard.anvil.mine(3)
    first, second = outbox.step()

    assert (first.state, second.state) == (State.DISPLACED, State.DONE)
    assert "was given to one that does nothing" in first.why
    assert yard.mined_of(account.address) == 2
    assert _credit(yard, account) == 2 * ETHER


@pytest.mark.parametrize("depth", [1, 5])
def test_what_falls_out_of_the_chain_and_is_void_by_then_is_not_sent_again(
    yard: Yard, outbox: Outbox, account: LocalAccount, depth: int
) -> None:
    before = yard.anvil.request("evm_snapshot")
    outbox.submit("first", _deposit(yard))
    yard.anvil.mine(depth)
    outbox.step()
    yard.anvil.request("evm_revert", before)
    yard.anvil.request("anvil_dropAllTransactions")
    yard.anvil.mine(depth)

    outbox.revive()
    # Where it was not final yet, the first one finds that it fell out.
    for _ in range(2):
        outbox.step(is_void=_is_first)
    yard.anvil.mine(3)
    outbox.step()

    assert outbox.entry("first").state is State.DISPLACED
    assert yard.mined_of(account.address) == 1
    assert _credit(yard, account) == 0


def test_what_was_void_once_stays_so(yard: Yard, outbox: Outbox, account: LocalAccount) -> None:
    """It was done again by another transaction since: also after a reorg it is not done twice."""
    before = yard.anvil.request("evm_snapshot")
    outbox.submit("first", _deposit(yard))
    outbox.step(is_void=_is_first)
    yard.anvil.mine(3)
    outbox.step()
    yard.anvil.request("evm_revert", before)
    yard.anvil.request("anvil_dropAllTransactions")

    outbox.revive()
    # Long enough for its fee to be raised, too.
    for _ in range(3):
        _dear_block(yard)
    outbox.step()
    yard.anvil.mine(3)
    outbox.step()

    assert outbox.entry("first").state is State.DISPLACED
    assert _credit(yard, account) == 0


def test_what_was_mined_before_it_could_be_made_void_counts(
    yard: Yard, outbox: Outbox, account: LocalAccount
) -> None:
    outbox.submit("first", _deposit(yard))
    yard.anvil.mine(3)

    (done,) = outbox.step(is_void=_is_first)

    assert done.state is State.DONE
    assert _credit(yard, account) == ETHER


@pytest.mark.parametrize("is_pruned", [False, True])
def test_node_without_receipts_does_not_make_ours_somebody_elses(
    yard: Yard, store: Store, account: LocalAccount, is_pruned: bool
) -> None:
    """Else it would be done once more: a deposit, a bond, a withdrawal."""
    with proxy_before(yard.url) as proxy:
        outbox = Outbox(yard.endpoints(proxy.url), store, account, confirmations=3)
        outbox.submit("deposit", _deposit(yard))
        yard.anvil.mine(6)
        settled = yard.height - 3

        def forgetful(method: str, params: list[Any], answer: dict[str, Any]) -> dict[str, Any]:
            if method == "eth_getTransactionReceipt":
                return answer | {"result": None}
            if is_pruned and method == "eth_getTransactionCount":
                is_old = params[1].startswith("0x") and int(params[1], 16) < settled
                error = {"code": -32000, "message": "missing trie node"}
                return {"id": answer["id"], "error": error} if is_old else answer
            return answer

        proxy.change = forgetful
        with pytest.raises(NoEndpointError, match="has no receipt of what is mined with nonce 0"):
            outbox.step()

    assert outbox.entry("deposit").state is State.PENDING
    # One that has them is believed.
    again = Outbox(yard.endpoints(), store, account, confirmations=3)
    assert [entry.state for entry in again.step()] == [State.DONE]
