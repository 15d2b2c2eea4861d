"""What the market stores is what its events tell, by the same types."""

from dataclasses import replace
from pathlib import Path

import pytest
from eth_utils.crypto import keccak

from tests.chain_layer.yard import ETHER, TERMS, Yard
from trainyard.chain.client import MarketClient
from trainyard.chain.store import Store
from trainyard.chain.views import BookView
from trainyard.protocol.commitments import Claim, Market
from trainyard.protocol.ledger.book import Account, Book, Slot, Worker
from trainyard.protocol.market import Policy, SeatState, TaskState
from trainyard.protocol.trace import Trace


@pytest.fixture
def client(yard: Yard) -> MarketClient:
    return MarketClient(yard.endpoints(), yard.market)


def _book(yard: Yard, store: Store) -> Book:
    view = BookView()
    for batch in yard.cursor(store).batches():
        view.take(batch)
    return view.book


def test_a_life_read_from_storage_is_that_of_the_events(
    yard: Yard, client: MarketClient, store: Store
) -> None:
    calls, (requester, worker, _) = yard.calls, yard.people
    result, root, salt = keccak(b"result"), keccak(b"root"), keccak(b"salt")
    commitment = Market(yard.chain_id, yard.market).claim_commitment(1, worker, salt, result, root)
    yard.send(calls.register(b"p" * 32, TERMS.env_class, ETHER, value=3 * ETHER), by=1)
    yard.send(calls.set_duty(1, 2, 3), by=1)
    yard.send(calls.post(TERMS, value=2 * TERMS.escrow))
    yard.send(calls.join(1, b"k" * 32), by=1)
    yard.send(calls.commit(1, 0, commitment), by=1)

    running, book = client.task(1), _book(yard, store)

    assert running is not None
    assert running.state is TaskState.REVEALING
    assert running.deadline == book.tasks[1].deadline
    assert client.worker(worker) == book.workers[worker]
    assert client.pool_size(TERMS.env_class) == 1
    yard.send(calls.reveal(1, 0, salt, result, root), by=1)
    yard.send(calls.settle(1))
    settled, book = client.task(1), _book(yard, yard.store(_folder(store)))
    assert settled is not None
    task = book.tasks[1]
    assert (settled.state, settled.lead, settled.locked) == (task.state, task.lead, task.locked)
    assert settled.terms.reward == TERMS.reward
    assert client.slot(1, 0).digest == task.slots[0].digest
    for who in (requester, worker):
        assert client.account(who) == book.accounts[who]
    assert client.solvency()[1] == book.owed
    assert client.params() == book.params[-1]
    assert client.task_count() == len(book.tasks)
    assert client.bond_of(1) == book.params[0].seat_bond


def test_a_panel_and_a_dispute_are_those_of_the_events(
    yard: Yard, client: MarketClient, store: Store
) -> None:
    calls, (_, worker, auditor) = yard.calls, yard.people
    trace = Trace([keccak(text=f"state {index}") for index in range(5)])
    claim = Claim.of(keccak(b"result"), trace.root)
    terms = replace(TERMS, policy=Policy.AUDIT, audits=1, audit_fee=ETHER // 100, segments=4)
    bond = client.params().seat_bond
    yard.send(calls.deposit(bond + terms.escrow, value=bond + terms.escrow))
    yard.send(calls.register(b"p" * 32, terms.env_class, 0, value=ETHER), by=1)
    yard.send(calls.register(b"q" * 32, terms.env_class, bond, value=bond), by=2)
    yard.send(calls.post(terms))
    yard.send(calls.join(1, b"k" * 32), by=1)
    yard.send(calls.submit(1, 0, claim.result, claim.root), by=1)
    yard.anvil.mine(client.params().draw_delay + 1)
    yard.send(calls.draw(1))
    drawn = client.panel(1)
    (seat,) = drawn.seats
    state = trace.after(seat.segment)
    answer = Market(yard.chain_id, yard.market).answer_commitment(1, 0, auditor, b"s" * 32, state)
    yard.send(calls.audit_commit(1, 0, answer), by=2)
    yard.send(calls.open(1, claim, [state], [trace.proof_after(seat.segment)]), by=1)
    yard.send(calls.audit_reveal(1, 0, b"s" * 32, state), by=2)
    yard.send(calls.challenge_unserved(1, (disputed := (seat.segment + 1) % 4)))

    task = _book(yard, store).tasks[1]

    assert (seat.member, seat.state) == (auditor, SeatState.DRAWN)
    assert client.panel(1) == task.own_panel
    assert client.dispute(1, disputed) == task.disputes[disputed]
    assert client.slot(1, 0).worker == worker
    stored = client.task(1)
    assert stored is not None
    assert stored.state is TaskState.DISPUTED
    assert replace(stored.terms, join_for=terms.join_for) == terms


def test_what_is_not_there_is_empty(yard: Yard, client: MarketClient) -> None:
    yard.send(yard.calls.post(TERMS, value=TERMS.escrow))
    nobody = yard.people[2]

    assert client.task(7) is None
    assert client.slot(1, 0) == Slot()
    assert client.dispute(1, 0) is None
    assert client.panel(1).seats == []
    assert client.account(nobody) == Account()
    assert client.worker(nobody) == Worker(bytes(32), bytes(32))
    assert client.currency() is None


def _folder(store: Store) -> Path:
    folder = store.path.parent / "later"
    folder.mkdir()
    return folder
