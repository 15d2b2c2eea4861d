"""Events in order, at least once, and what a reorg takes back."""

from pathlib import Path
from random import Random

import pytest

from tests.chain_layer.yard import TERMS, Yard
from trainyard.chain.cursor import Cursor, Found, Undone
from trainyard.chain.errors import ReorgTooDeepError, StoreError, StoreUnavailableError
from trainyard.chain.store import Store
from trainyard.chain.views import BookView
from trainyard.protocol.ledger import Book


def _amounts(batch: Found | Undone | None) -> list[int]:
    assert batch is not None
    return [seen.event.args["amount"] for seen in batch.events if seen.event.name == "Deposited"]


def _caught_up(cursor: Cursor) -> BookView:
    view = BookView()
    for batch in cursor.batches():
        view.take(batch)
    return view


def _fresh_book(yard: Yard, folder: Path) -> Book:
    """The market as somebody finds it who has seen no reorg."""
    store = yard.store(folder)
    book = _caught_up(yard.cursor(store)).book
    store.close()
    return book


def test_events_are_found_once_and_in_order(yard: Yard, store: Store) -> None:
    for amount in (1, 2, 3):
        yard.deposit(amount)
    cursor = yard.cursor(store)

    batches = list(cursor.batches())

    assert [_amounts(batch) for batch in batches] == [[1, 2, 3]]
    assert [seen.event.name for seen in batches[0].events][:2] == [
        "OwnershipTransferred",
        "ParamsSet",
    ]
    assert cursor.next() is None
    assert cursor.place is not None
    assert cursor.place.number == yard.height


def test_a_batch_comes_again_until_it_is_kept(yard: Yard, tmp_path: Path) -> None:
    yard.deposit(7)
    store = yard.store(tmp_path)
    first = yard.cursor(store).next()
    store.close()

    again = yard.store(tmp_path)
    cursor = yard.cursor(again)

    assert cursor.next() == first
    assert first is not None
    cursor.keep(first)
    with pytest.raises(StoreError, match="the batch follows None"):
        cursor.keep(first)
    again.close()


def test_the_place_survives_a_restart(yard: Yard, tmp_path: Path) -> None:
    yard.deposit(1)
    store = yard.store(tmp_path)
    list(yard.cursor(store).batches())
    store.close()
    yard.deposit(2)

    again = yard.store(tmp_path)

    assert [_amounts(batch) for batch in yard.cursor(again).batches()] == [[2]]
    again.close()


def test_a_book_is_built_from_a_task(yard: Yard, store: Store) -> None:
    yard.send(yard.calls.post(TERMS, value=TERMS.escrow))

    book = _caught_up(yard.cursor(store)).book

    assert book.tasks[1].terms == TERMS
    assert book.tasks[1].requester == yard.people[0]


@pytest.mark.parametrize("depth", [1, 2, 12, 64])
def test_a_reorg_is_rolled_back(yard: Yard, store: Store, tmp_path: Path, depth: int) -> None:
    yard.deposit(1)
    common = yard.height
    before = yard.anvil.request("evm_snapshot")
    yard.deposit(2)
    if depth > 1:
        yard.anvil.mine(depth - 2)
        yard.deposit(3)
    cursor, view = yard.cursor(store), BookView()
    for batch in cursor.batches():
        view.take(batch)
    yard.anvil.request("evm_revert", before)
    # Longer than what it takes the place of, and with something else in it.
    yard.deposit(4, by=1)
    yard.anvil.mine(depth)

    undone, *rest = list(_taken(cursor, view))

    assert isinstance(undone, Undone)
    assert undone.to.number == common
    assert _amounts(undone) == ([3, 2] if depth > 1 else [2])
    assert [_amounts(batch) for batch in rest] == [[4]]
    assert view.book == _fresh_book(yard, _folder(tmp_path))


def test_a_reorg_while_away_is_found_at_the_start(yard: Yard, tmp_path: Path) -> None:
    before = yard.anvil.request("evm_snapshot")
    yard.deposit(1)
    store = yard.store(tmp_path)
    list(yard.cursor(store).batches())
    store.close()
    yard.anvil.request("evm_revert", before)
    yard.deposit(2)

    again = yard.store(tmp_path)
    undone, found = list(yard.cursor(again).batches())

    assert isinstance(undone, Undone)
    assert (_amounts(undone), _amounts(found)) == ([1], [2])
    again.close()


def test_a_reorg_beyond_the_limit_says_what_to_do(yard: Yard, store: Store) -> None:
    before = yard.anvil.request("evm_snapshot")
    yard.deposit(1)
    yard.anvil.mine(4)
    cursor = yard.cursor(store, depth=3)
    list(cursor.batches())
    yard.anvil.request("evm_revert", before)
    yard.deposit(2)
    yard.anvil.mine(5)

    with pytest.raises(ReorgTooDeepError, match=r"more than 3 blocks .* forget its place"):
        cursor.next()

    cursor.forget()
    assert _amounts(cursor.next()) == [2]


def test_a_chain_that_is_shorter_for_now_undoes_nothing(yard: Yard, store: Store) -> None:
    yard.deposit(1)
    before = yard.anvil.request("evm_snapshot")
    yard.anvil.mine(3)
    cursor = yard.cursor(store)
    list(cursor.batches())
    yard.anvil.request("evm_revert", before)

    assert cursor.next() is None


def test_confirmations_are_waited_for(yard: Yard, store: Store) -> None:
    yard.deposit(1)
    yard.anvil.mine(2)
    yard.deposit(2)
    cursor = yard.cursor(store, confirmations=2)

    assert [_amounts(batch) for batch in cursor.batches()] == [[1]]
    yard.anvil.mine(2)
    assert [_amounts(batch) for batch in cursor.batches()] == [[2]]


def test_old_blocks_are_passed_over_in_haste(yard: Yard, store: Store) -> None:
    """With `thorough` off: the same events, though most blocks are never looked at."""
    yard.deposit(1)
    yard.anvil.mine(300)
    yard.deposit(2)
    cursor = yard.cursor(store, thorough=False, depth=8, span=50)

    found = [amount for batch in cursor.batches() for amount in _amounts(batch)]

    assert found == [1, 2]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_the_chain_does_the_book_is_that_of_the_chain(
    yard: Yard, store: Store, tmp_path: Path, seed: int
) -> None:
    """Deposits, empty blocks, reorgs within reorgs, and a cursor that looks now and then."""
    chance, cursor, view = Random(seed), yard.cursor(store, span=7), BookView()
    forks = [yard.anvil.request("evm_snapshot")]
    undone = 0
    for amount in range(1, 40):
        match chance.choice(("deposit", "deposit", "mine", "fork", "return", "look")):
            case "deposit":
                yard.deposit(amount, by=chance.randrange(3))
            case "mine":
                yard.anvil.mine(chance.randrange(1, 5))
            case "fork":
                forks.append(yard.anvil.request("evm_snapshot"))
            case "return":
                # A snapshot is used up, and so are those that were taken after it.
                del forks[(place := chance.randrange(len(forks))) + 1 :]
                yard.anvil.request("evm_revert", forks[place])
                forks[place] = yard.anvil.request("evm_snapshot")
            case "look":
                undone += sum(isinstance(batch, Undone) for batch in _taken(cursor, view))
    # Longer than all that was: a shorter chain may be a node that lags.
    yard.anvil.mine(100)

    undone += sum(isinstance(batch, Undone) for batch in _taken(cursor, view))

    assert undone
    assert view.book == _fresh_book(yard, _folder(tmp_path))


def test_a_full_disk_loses_nothing(yard: Yard, store: Store) -> None:
    yard.deposit(1)
    yard.anvil.mine(300)
    cursor = yard.cursor(store)
    batch = cursor.next()
    assert batch is not None
    (pages,) = store.row("PRAGMA page_count") or (0,)
    store.row(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(StoreUnavailableError, match="disk is full"):
        cursor.keep(batch)

    assert cursor.place is None
    store.row("PRAGMA max_page_count = 1000000")
    cursor.keep(batch)
    assert cursor.place == batch.to


def test_a_store_of_another_market_is_refused(yard: Yard, tmp_path: Path) -> None:
    yard.store(tmp_path).close()

    with pytest.raises(StoreError, match=r"belongs to market 0x.* name another file"):
        Store(tmp_path / "chain.sqlite", chain_id=1, market=yard.market)


def _taken(cursor: Cursor, view: BookView) -> list[Found | Undone]:
    taken = []
    for batch in cursor.batches():
        view.take(batch)
        taken.append(batch)
    return taken


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "fresh"
    folder.mkdir()
    return folder
