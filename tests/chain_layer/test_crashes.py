"""Processes that are killed at the worst moments, and others that go on where they were."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from eth_account.signers.local import LocalAccount

from tests.chain_layer.proxy import proxy_before
from tests.chain_layer.yard import ETHER, Yard
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.journal import State
from trainyard.chain.outbox import Fault, Outbox

_PATIENCE_BLOCKS = 3
_SENDING = [fault for fault in Fault if fault.name.endswith(("_JOURNAL", "_SEND"))]
_OF = {
    name: [Fault[f"BEFORE_{name}"], Fault[f"AFTER_{name}"]]
    for name in ("MOVE", "NOTE", "START_OVER")
}


def _in_child(work: Callable[[], object]) -> int:
    """Do `work` in a process of its own; how that ended, as `os.waitstatus_to_exitcode` says it."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            # Nothing of what pytest would do at its end.
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _killed_at(fault: Fault) -> Callable[[Fault], None]:
    def reach(reached: Fault) -> None:
        if reached is fault:
            os.kill(os.getpid(), signal.SIGKILL)

    return reach


def _outbox(yard: Yard, folder: Path, account: LocalAccount, fault: Fault | None = None) -> Outbox:
    on_fault = _killed_at(fault) if fault else lambda reached: None
    return Outbox(yard.endpoints(), yard.store(folder), account, confirmations=2, on_fault=on_fault)


def _credit(yard: Yard, account: LocalAccount) -> int:
    return MarketClient(yard.endpoints(), yard.market).account(account.address).credit


@pytest.mark.parametrize("fault", _SENDING)
def test_a_first_sending_that_is_killed_happens_once(
    yard: Yard, tmp_path: Path, fault: Fault
) -> None:
    account, call = yard.purse("killed"), yard.calls.deposit(ETHER, value=ETHER)

    killed = _in_child(lambda: _outbox(yard, tmp_path, account, fault).submit("deposit", call))
    outbox = _outbox(yard, tmp_path, account)
    outbox.submit("deposit", call)
    outbox.step()
    yard.anvil.mine(2)
    outbox.step()

    assert killed == -signal.SIGKILL
    assert outbox.entry("deposit").state is State.DONE
    assert len(outbox.entry("deposit").versions) == 1
    assert yard.mined_of(account.address) == 1
    assert _credit(yard, account) == ETHER


@pytest.mark.parametrize("fault", _SENDING)
def test_a_replacement_that_is_killed_happens_once(
    yard: Yard, tmp_path: Path, fault: Fault
) -> None:
    account, call = yard.purse("killed"), yard.calls.deposit(ETHER, value=ETHER)
    yard.anvil.request("evm_setAutomine", False)
    outbox = _outbox(yard, tmp_path, account)
    outbox.submit("deposit", call)
    yard.anvil.request("anvil_dropAllTransactions")
    yard.anvil.mine(_PATIENCE_BLOCKS)

    killed = _in_child(lambda: _outbox(yard, tmp_path, account, fault).step())
    outbox.step()
    yard.anvil.mine(2)
    outbox.step()

    assert killed == -signal.SIGKILL
    done = outbox.entry("deposit")
    assert done.state is State.DONE
    assert done.mined == done.newest.hash
    assert len(done.versions) == 2
    assert yard.mined_of(account.address) == 1
    assert _credit(yard, account) == ETHER


@pytest.mark.parametrize("fault", _OF["MOVE"])
def test_what_is_killed_when_it_learns_that_it_is_mined_learns_it_again(
    yard: Yard, tmp_path: Path, fault: Fault
) -> None:
    account, call = yard.purse("killed"), yard.calls.deposit(ETHER, value=ETHER)
    outbox = _outbox(yard, tmp_path, account)
    outbox.submit("deposit", call)
    yard.anvil.mine(2)

    killed = _in_child(lambda: _outbox(yard, tmp_path, account, fault).step())
    outbox.step()

    assert killed == -signal.SIGKILL
    assert outbox.entry("deposit").state is State.DONE
    assert yard.mined_of(account.address) == 1


@pytest.mark.parametrize("fault", _OF["NOTE"])
def test_what_is_killed_when_it_could_not_send_sends_later(
    yard: Yard, tmp_path: Path, fault: Fault
) -> None:
    account, call = yard.purse("killed"), yard.calls.deposit(ETHER, value=ETHER)

    def submit() -> None:
        with proxy_before(yard.anvil.url) as proxy:
            proxy.refused_methods = {"eth_sendRawTransaction"}
            endpoints = Endpoints([proxy.url], chain_id=yard.endpoints().chain_id)
            store, reach = yard.store(tmp_path), _killed_at(fault)
            Outbox(endpoints, store, account, on_fault=reach).submit("deposit", call)

    killed = _in_child(submit)
    outbox = _outbox(yard, tmp_path, account)
    noted = outbox.entry("deposit").why
    outbox.step()
    yard.anvil.mine(2)
    outbox.step()

    assert killed == -signal.SIGKILL
    assert ("limit exceeded" in noted) is (fault is Fault.AFTER_NOTE)
    done = outbox.entry("deposit")
    assert (done.state, done.why, len(done.versions)) == (State.DONE, "", 1)
    assert yard.mined_of(account.address) == 1


@pytest.mark.parametrize("fault", _OF["START_OVER"])
def test_what_is_killed_when_it_fell_out_of_the_chain_is_sent_again(
    yard: Yard, tmp_path: Path, fault: Fault
) -> None:
    account, call = yard.purse("killed"), yard.calls.deposit(ETHER, value=ETHER)
    before = yard.anvil.request("evm_snapshot")
    outbox = _outbox(yard, tmp_path, account)
    outbox.submit("deposit", call)
    yard.anvil.mine(4)
    outbox.step()
    yard.anvil.request("evm_revert", before)
    yard.anvil.request("anvil_dropAllTransactions")
    yard.anvil.mine(9)

    killed = _in_child(lambda: _outbox(yard, tmp_path, account, fault).revive())
    outbox.revive()
    outbox.step()
    yard.anvil.mine(2)
    outbox.step()

    assert killed == -signal.SIGKILL
    done = outbox.entry("deposit")
    assert (done.state, len(done.versions)) == (State.DONE, 1)
    assert yard.mined_of(account.address) == 1
    assert _credit(yard, account) == ETHER


def test_two_processes_with_one_key_send_once(yard: Yard, tmp_path: Path) -> None:
    """Both are about to write the journal when the other may."""
    account, call = yard.purse("twice"), yard.calls.deposit(ETHER, value=ETHER)

    def other_first(reached: Fault) -> None:
        if reached is Fault.BEFORE_JOURNAL:
            theirs = _in_child(lambda: _outbox(yard, tmp_path, account).submit("deposit", call))
            assert theirs == 0

    mine = Outbox(yard.endpoints(), yard.store(tmp_path), account, on_fault=other_first)
    mine.submit("deposit", call)
    yard.anvil.mine()

    assert yard.mined_of(account.address) == 1
    assert _credit(yard, account) == ETHER


def test_a_cursor_that_is_killed_leaves_no_gap(yard: Yard, tmp_path: Path) -> None:
    for amount in range(1, 6):
        yard.deposit(amount)
    marks = tmp_path / "dealt-with"

    def follow(until: int | None) -> None:
        store = yard.store(tmp_path)
        for number, batch in enumerate(yard.cursor(store, span=1).batches()):
            with marks.open("a") as file:
                file.writelines(f"{seen.block.number}\n" for seen in batch.events)
            if number == until:
                os.kill(os.getpid(), signal.SIGKILL)
        store.close()

    killed = _in_child(lambda: follow(4))
    follow(None)

    blocks = [int(line) for line in marks.read_text().split()]
    assert killed == -signal.SIGKILL
    # What was in hand when it was killed comes twice, and nothing else does.
    assert sorted(set(blocks)) == list(dict.fromkeys(blocks))
    assert set(range(yard.height - 4, yard.height + 1)) <= set(blocks)
    deposits = [block for block in blocks if block > yard.height - 5]
    assert len(deposits) == 6


def test_what_is_done_and_falls_out_of_the_chain_is_sent_again_when_revived(
    yard: Yard, tmp_path: Path
) -> None:
    account = yard.purse("deep")
    outbox = Outbox(yard.endpoints(), yard.store(tmp_path), account, confirmations=2)
    before = yard.anvil.request("evm_snapshot")
    for number in (1, 2, 3):
        outbox.submit(f"deposit {number}", yard.calls.deposit(number, value=number))
    yard.anvil.mine(4)
    outbox.step()
    assert {outbox.entry(f"deposit {number}").state for number in (1, 2, 3)} == {State.DONE}
    assert outbox.revive() == []

    yard.anvil.request("evm_revert", before)
    yard.anvil.request("anvil_dropAllTransactions")
    yard.anvil.mine(9)
    revived = [entry.key for entry in outbox.revive()]
    outbox.step()
    yard.anvil.mine(3)
    outbox.step()

    assert revived == ["deposit 1", "deposit 2", "deposit 3"]
    assert {outbox.entry(key).state for key in revived} == {State.DONE}
    assert {len(outbox.entry(key).versions) for key in revived} == {1}
    assert yard.mined_of(account.address) == 3
    assert _credit(yard, account) == 6
