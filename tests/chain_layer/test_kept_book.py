"""The market's book across restarts: nothing is read twice, and nothing is believed that is old."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from tests.chain_layer.proxy import Proxy, proxy_before
from tests.chain_layer.test_crashes import _in_child
from tests.chain_layer.test_sight import _LIVES, _WORKER, _registered
from tests.chain_layer.yard import Yard
from trainyard.chain.book_text import UnreadableBookError, read_book, write_book
from trainyard.chain.store import Store
from trainyard.protocol.ledger import Book
from worker_agent import sight
from worker_agent.sight import Watcher


@pytest.fixture
def proxy(yard: Yard) -> Iterator[Proxy]:
    with proxy_before(yard.url) as proxy:
        yield proxy


# The book itself is kept at every look, or only its events are.
@pytest.fixture(params=[1, 500])
def many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sight, "_MANY_EVENTS", request.param)
    return int(request.param)


@contextmanager
def watching(yard: Yard, folder: Path, *urls: str) -> Iterator[Watcher]:
    folder.mkdir(exist_ok=True)
    store = yard.store(folder)
    try:
        cursor = yard.cursor(store, *urls)
        yield Watcher(yard.endpoints(*urls), cursor, yard.people[_WORKER])
    finally:
        store.close()


def seen(yard: Yard, folder: Path, *urls: str) -> Book:
    with watching(yard, folder, *urls) as watcher:
        return watcher.look().book


def live(yard: Yard, life: str) -> None:
    """All of a task's life, each step some blocks after the one before."""
    _registered(yard)
    for _, step in _LIVES[life]:
        step(yard)
        yard.anvil.mine(20)


@pytest.mark.parametrize("life", _LIVES)
def test_a_book_is_the_same_when_it_was_written_and_read(
    yard: Yard, tmp_path: Path, life: str
) -> None:
    live(yard, life)
    book = seen(yard, tmp_path)
    assert book.tasks
    assert read_book(write_book(book)) == book


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: b"x" + data[1:]])
def test_what_is_damaged_is_no_book(change: object) -> None:
    assert callable(change)
    with pytest.raises(UnreadableBookError):
        read_book(change(write_book(Book())))


def test_a_restarted_agent_asks_only_for_what_came_since(
    yard: Yard, tmp_path: Path, proxy: Proxy, many: int
) -> None:
    live(yard, "audited")
    yard.anvil.mine(300)
    seen(yard, tmp_path, proxy.url)
    assert proxy.questions("eth_getBlockByNumber") > 300

    proxy.asked.clear()
    yard.deposit(5, _WORKER)
    found = seen(yard, tmp_path, proxy.url)

    # The one that came, the place, and heads.
    assert proxy.questions("eth_getBlockByNumber") < 10
    assert found == seen(yard, tmp_path / "fresh")
    assert found.accounts[yard.people[_WORKER]].credit == 5


@pytest.mark.parametrize("life", _LIVES)
def test_a_reorg_while_nobody_looked_is_followed(
    yard: Yard, tmp_path: Path, life: str, many: int
) -> None:
    _registered(yard)
    yard.anvil.mine(150)
    *before, (_, last) = _LIVES[life]
    for _, step in before:
        step(yard)
    snapshot, height = yard.anvil.request("evm_snapshot"), yard.height
    last(yard)
    seen(yard, tmp_path)
    undone = yard.height - height

    yard.anvil.request("evm_revert", snapshot)
    yard.deposit(1)
    yard.anvil.mine(undone)
    with watching(yard, tmp_path) as watcher:
        found = watcher.look().book
        assert watcher.reorgs == 1

    assert found == seen(yard, tmp_path / "fresh")
    # And what was found then is kept as well.
    assert seen(yard, tmp_path) == found


def test_a_reorg_too_deep_while_nobody_looked_makes_it_read_all_anew(
    yard: Yard, tmp_path: Path, many: int
) -> None:
    snapshot = yard.anvil.request("evm_snapshot")
    live(yard, "replicated")
    yard.anvil.mine(200)
    seen(yard, tmp_path)
    yard.anvil.request("evm_revert", snapshot)
    yard.deposit(1)
    yard.anvil.mine(400)

    found = seen(yard, tmp_path)

    assert found.tasks == {}
    assert found == seen(yard, tmp_path / "fresh")


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE book SET data = x'00'",
        "DELETE FROM book",
        "UPDATE book SET block = 1000000000",
        # As the first version left it.
        "PRAGMA user_version = 1; DROP TABLE book",
    ],
)
def test_what_cannot_be_used_is_built_anew_from_the_first_block(
    yard: Yard, tmp_path: Path, damage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sight, "_MANY_EVENTS", 1)
    live(yard, "failed")
    expected = seen(yard, tmp_path)
    store = yard.store(tmp_path)
    for statement in damage.split(";"):
        store.write(statement)
    store.close()

    assert seen(yard, tmp_path) == expected


def test_logs_are_kept_only_as_long_as_a_book_or_a_reorg_needs_them(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sight, "_MANY_EVENTS", 1)
    live(yard, "replicated")
    yard.anvil.mine(200)
    seen(yard, tmp_path)
    store = yard.store(tmp_path)
    assert store.row("SELECT count(*) FROM logs") == (0,)
    assert store.row("SELECT count(*) FROM book") == (1,)
    store.close()


def killed_at(write: int, yard: Yard, folder: Path) -> int:
    """A look that ends before so many of its writes were done; how its process ended."""

    def look() -> None:
        numbers = count()
        for name in ("write", "write_many"):
            _die_in(name, lambda: next(numbers) == write)
        seen(yard, folder)

    return _in_child(look)


def _die_in(name: str, is_due: Any) -> None:
    honest = getattr(Store, name)

    def write(self: Store, *arguments: Any) -> None:
        if is_due():
            os.kill(os.getpid(), signal.SIGKILL)
        honest(self, *arguments)

    # In a process of its own, which nothing else is in.
    setattr(Store, name, write)


def test_a_look_that_is_killed_at_any_write_is_made_up_for_by_the_next(
    yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a reorg to follow, events to keep, and a book that is written as well."""
    monkeypatch.setattr(sight, "_MANY_EVENTS", 1)
    _registered(yard)
    yard.anvil.mine(150)
    yard.deposit(3, _WORKER)
    snapshot = yard.anvil.request("evm_snapshot")
    yard.deposit(4, _WORKER)
    seen(yard, tmp_path / "before")
    yard.anvil.request("evm_revert", snapshot)
    yard.deposit(5, _WORKER)
    yard.anvil.mine(140)
    expected = seen(yard, tmp_path / "fresh")
    assert expected.accounts[yard.people[_WORKER]].credit == 8

    for number in count():
        folder = tmp_path / str(number)
        copytree(tmp_path / "before", folder)
        ended = killed_at(number, yard, folder)
        assert seen(yard, folder) == expected
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
    # Of going back, of going on, and of the book.
    assert number >= 8
