"""What an agent decided upon is sent once, and again only where two of it do no harm."""

import pytest
from eth_account.signers.local import LocalAccount
from structlog.testing import capture_logs

from tests.chain_layer.yard import ETHER, Yard
from trainyard.chain.fees import GWEI
from trainyard.chain.journal import State
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store
from worker_agent import sending
from worker_agent.actions import Send
from worker_agent.sending import Sender

CONFIRMATIONS = 8
KEY = "take"


@pytest.fixture
def account(yard: Yard) -> LocalAccount:
    return yard.purse("sender")


@pytest.fixture
def outbox(yard: Yard, store: Store, account: LocalAccount) -> Outbox:
    return Outbox(yard.endpoints(), store, account, confirmations=CONFIRMATIONS)


def put_in(yard: Yard, outbox: Outbox, key: str) -> None:
    outbox.submit(key, yard.calls.deposit(ETHER, value=ETHER))
    yard.anvil.mine()
    outbox.step()


def fail(yard: Yard, outbox: Outbox, send: Send, key: str = KEY) -> None:
    """Have it refused in its block, as one that was right when it was sent."""
    outbox.submit(key, send.call, gas=200_000)
    yard.anvil.mine()
    outbox.step()
    assert outbox.entry(key).why


def has(outbox: Outbox, key: str) -> bool:
    try:
        outbox.entry(key)
    except LookupError:
        return False
    return True


@pytest.mark.parametrize("adds_up", [False, True])
def test_what_adds_up_is_tried_again_only_when_no_reorg_can_revive_it(
    yard: Yard, outbox: Outbox, account: LocalAccount, adds_up: bool
) -> None:
    send = Send(KEY, yard.calls.withdraw(account.address, ETHER), adds_up=adds_up)
    fail(yard, outbox, send)
    assert outbox.entry(KEY).state is State.MINED
    put_in(yard, outbox, "once more")

    Sender(outbox).send(send)
    assert has(outbox, f"{KEY}#2") is not adds_up

    yard.anvil.mine(CONFIRMATIONS)
    outbox.step()
    assert outbox.entry(KEY).state is State.REVERTED
    Sender(outbox).send(send)
    assert has(outbox, f"{KEY}#2")


def test_after_the_last_attempt_it_says_so_once(
    yard: Yard, outbox: Outbox, account: LocalAccount, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "_MOST_ATTEMPTS", 2)
    send = Send(KEY, yard.calls.withdraw(account.address, ETHER))
    fail(yard, outbox, send)
    fail(yard, outbox, send, f"{KEY}#2")
    sender = Sender(outbox)

    with capture_logs() as logs:
        for _ in range(3):
            sender.send(send)

    [said] = [one for one in logs if one["log_level"] == "error"]
    assert (said["action"], said["attempts"]) == (KEY, 2)
    assert said["reason"]
    assert not has(outbox, f"{KEY}#3")


def test_what_is_decided_with_a_deadline_is_hurried_and_what_is_not_any_more_is_not(
    yard: Yard, outbox: Outbox
) -> None:
    yard.anvil.request("evm_setAutomine", False)
    sender = Sender(outbox)
    now = int(yard.anvil.request("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    send = Send(KEY, yard.calls.deposit(ETHER, value=ETHER), by=now + 40)

    counts = []
    # Each block is dearer than what was offered after the one before.
    for gwei, is_decided in ((100, True), (220, True), (460, False)):
        if is_decided:
            sender.send(send)
        yard.anvil.request("anvil_setNextBlockBaseFeePerGas", hex(gwei * GWEI))
        yard.anvil.mine()
        sender.step()
        counts.append(len(outbox.entry(KEY).versions))

    assert counts == [2, 3, 3]
