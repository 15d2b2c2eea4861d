"""A bond comes back when its worker retires, who may then come back as well."""

from contextlib import closing
from pathlib import Path

import pytest
from eth_account.signers.local import LocalAccount

from tests.agent.books import CLASS, ME, situation, task
from tests.chain_layer.yard import ETHER, Yard
from tests.market.command import Trainyard
from trainyard.chain.calls import Call
from trainyard.chain.client import MarketClient
from trainyard.chain.journal import State
from trainyard.chain.keystore import create_keystore
from trainyard.chain.outbox import Outbox
from trainyard.protocol.ledger.book import Worker
from trainyard.protocol.market import TaskState
from worker_agent.actions import Action, Send
from worker_agent.config_file import config_text
from worker_agent.deciding.membership import for_membership
from worker_agent.locking import held_key
from worker_agent.policy import Policy as Wanted
from worker_agent.retiring import RETIRE, UNBOND, retire_worker
from worker_agent.settings import Home, Settings

BOND, TARGET = 10 * ETHER, "0x" + "ab" * 20


class Bonded:
    """Somebody whose bond the market holds."""

    def __init__(self, yard: Yard, folder: Path) -> None:
        self.yard, self.home = yard, Home(folder)
        self.account: LocalAccount = yard.purse("retiring")
        chain = {"endpoints": [yard.url], "chain_id": yard.chain_id, "market": yard.market}
        self.settings = Settings.model_validate({"chain": {**chain, "start_block": yard.start}})
        self.client = MarketClient(yard.endpoints(), yard.market)

    def register(self, key: str) -> None:
        call = self.yard.calls.register(b"p" * 32, CLASS, BOND, value=BOND)
        assert self.send(key, call) is State.MINED

    def send(self, key: str, call: Call) -> State:
        with closing(self.yard.store(self.home.folder)) as store:
            outbox = Outbox(self.yard.endpoints(), store, self.account)
            outbox.submit(key, call)
            # Blocks come by themselves, but not always before anvil has answered.
            self.yard.anvil.mine()
            outbox.step()
            return outbox.entry(key).state

    def count(self, prefix: str) -> int:
        with closing(self.yard.store(self.home.folder)) as store:
            return Outbox(self.yard.endpoints(), store, self.account).succeeded(prefix)

    @property
    def worker(self) -> Worker:
        return self.client.worker(self.account.address)


@pytest.fixture
def bonded(yard: Yard, tmp_path: Path) -> Bonded:
    one = Bonded(yard, tmp_path)
    one.register("register")
    return one


def test_a_bond_comes_back_when_the_market_lets_go_of_it(yard: Yard, bonded: Bonded) -> None:
    where = bonded.home, bonded.settings, bonded.account

    retire_worker(*where, to=TARGET, timeout_s=0.0)
    yard.anvil.mine()
    waiting = retire_worker(*where, to=TARGET, timeout_s=0.0)
    assert waiting.waits_for is not None
    assert "the end of the time for which a bond stays" in waiting.waits_for
    assert (waiting.bond, waiting.unbonds_at) == (BOND, bonded.worker.unbonds_at)
    # However often it is run, it retires once.
    assert (bonded.count(RETIRE), bonded.count(UNBOND)) == (1, 0)

    yard.anvil.next_block_at(bonded.worker.unbonds_at)
    yard.anvil.mine()
    done = retire_worker(*where, to=TARGET, timeout_s=30.0)

    assert (done.waits_for, done.withdrawn, done.bond, done.credit) == (None, BOND, 0, 0)
    held = yard.anvil.request("eth_getBalance", TARGET, "latest")
    assert int(held, 16) == BOND
    assert bonded.count(UNBOND) == 1
    # And what an agent sends then is not taken for what it sent before.
    bonded.register("register/after-1")
    assert bonded.worker.bond == BOND


def test_what_is_to_stay_in_the_market_is_credit(yard: Yard, bonded: Bonded) -> None:
    where = bonded.home, bonded.settings, bonded.account
    retire_worker(*where, to=None, timeout_s=0.0)
    yard.anvil.mine()
    yard.anvil.next_block_at(bonded.worker.unbonds_at)
    yard.anvil.mine()

    done = retire_worker(*where, to=None, timeout_s=30.0)

    assert (done.waits_for, done.withdrawn, done.credit) == (None, 0, BOND)


@pytest.mark.parametrize(("retired", "suffix"), [(0, ""), (2, "/after-2")])
def test_whoever_has_retired_registers_and_bonds_with_keys_of_their_own(
    retired: int, suffix: str
) -> None:
    s = situation(task(TaskState.SETTLED), policy=Wanted(bond=BOND), retired=retired)
    bonding = for_membership(s)
    assert _keys(bonding) == [f"bond/0{suffix}"]
    del s.book.workers[ME]
    assert _keys(for_membership(s)) == [f"register/{CLASS.hex()}/{BOND}{suffix}"]


def _keys(actions: list[Action]) -> list[str]:
    return [one.key for one in actions if isinstance(one, Send)]


def test_command_says_what_it_waits_for_and_in_the_end_what_went_where(
    yard: Yard, bonded: Bonded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, password = bonded.home, tmp_path / "password"
    create_keystore(home.keystore, bytes(bonded.account.key), "secret", work=2)
    home.config.write_text(config_text(bonded.settings))
    password.write_text("secret")
    password.chmod(0o600)
    trainyard = Trainyard(tmp_path / "command")
    retire = ("worker", "retire", "--home", home.folder, "--password-file", password)

    code, _, err = trainyard.run(*retire)
    assert (code, "say --to" in err) == (2, True)
    monkeypatch.setenv("XDG_STATE_HOME", trainyard.environment["XDG_STATE_HOME"])
    with held_key(bonded.account.address, home):
        code, _, err = trainyard.run(*retire, "--to", TARGET)
    assert (code, "drain --wait" in err) == (2, True)
    assert bonded.count(RETIRE) == 0

    sent = trainyard.document(*retire, "--to", TARGET, "--timeout", "0")
    yard.anvil.mine()
    assert sent["waits_for"] is not None
    code, out, _ = trainyard.run(*retire, "--to", TARGET, "--timeout", "0")
    assert (code, "it waits for the end of the time for which a bond stays" in out) == (0, True)
    yard.anvil.next_block_at(bonded.worker.unbonds_at)
    yard.anvil.mine()
    done = trainyard.document(*retire, "--keep")

    assert (done["worker"], done["to"], done["waits_for"]) == (bonded.account.address, None, None)
    assert (done["bond"], done["credit"]) == (0, BOND)
