"""What an agent decided upon is sent once, and again only where two of it do no harm."""

import pytest
from eth_account.signers.local import LocalAccount
from structlog.testing import capture_logs

from tests.chain_layer.yard import ETHER, TERMS, Yard
from trainyard.chain.fees import GWEI
from trainyard.chain.journal import State
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store
from trainyard.protocol.commitments import Market
from worker_agent import sending
from worker_agent.actions import Hurry, Send
from worker_agent.deciding import decide
from worker_agent.policy import Policy
from worker_agent.progress import Fetched, Progress
from worker_agent.sending import Sender
from worker_agent.sight import Sight, Watcher
from worker_agent.situation import Situation

CONFIRMATIONS = 8
KEY, CARD = "take", b"k" * 32


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
    assert list(sender.given_up) == [KEY]
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


def test_a_join_that_is_under_way_is_hurried_until_nobody_can_join_any_more(
    yard: Yard, outbox: Outbox, account: LocalAccount, store: Store
) -> None:
    """What is pending is not decided upon again, and yet in vain from the deadline on."""
    outbox.submit("register", yard.calls.register(b"p" * 32, TERMS.env_class, 0))
    yard.send(yard.calls.post(TERMS, value=TERMS.escrow))
    outbox.step()
    watcher, sender = Watcher(yard.endpoints(), yard.cursor(store), account.address), Sender(outbox)
    deadline = watcher.look().book.tasks[1].deadline
    yard.anvil.request("evm_setNextBlockTimestamp", deadline - 50)
    yard.anvil.mine()
    yard.anvil.request("evm_setAutomine", False)

    key, counts = f"1/join/{CARD.hex()}", []
    for gwei in (100, 220, 460):
        sight = watcher.look()
        for action in decide(offered(yard, outbox, account, sight)):
            match action:
                case Send():
                    sender.send(action)
                case Hurry():
                    sender.hurry(action)
        yard.anvil.request("anvil_setNextBlockBaseFeePerGas", hex(gwei * GWEI))
        yard.anvil.mine()
        sender.step()
        counts.append(len(outbox.entry(key).versions))

    assert counts == [2, 3, 4]


def offered(yard: Yard, outbox: Outbox, account: LocalAccount, sight: Sight) -> Situation:
    """All is here to join the first task."""
    fetched = Fetched("single", 1, TERMS.segments, 0.01, 1, 1)
    return Situation(
        me=account.address,
        market=Market(yard.chain_id, yard.market),
        book=sight.book,
        now=sight.now,
        block=sight.block,
        clock=0.0,
        policy=Policy(at_a_loss=True),
        env_class=TERMS.env_class,
        progress={1: Progress(fetched=fetched, card=CARD)},
        purse=sight.purse,
        pending={one.key: one.call for one in outbox.unseen(sight.block - sight.lag)},
        salt=lambda *about: bytes(32),
    )
