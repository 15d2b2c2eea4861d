"""What must survive a crash, in one SQLite file: the cursor's place with the market's book some
way behind it, and the outbox's journal.

It is a cache of the chain but for the journal. A file belongs to one market on one chain, and says
so.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainyard.chain.errors import StoreError, StoreUnavailableError

_VERSION = 2
_SCHEMA = """
CREATE TABLE bound (chain_id INTEGER NOT NULL, market BLOB NOT NULL);
CREATE TABLE blocks (number INTEGER PRIMARY KEY, hash BLOB NOT NULL);
CREATE TABLE logs (
    block INTEGER NOT NULL, place INTEGER NOT NULL, block_hash BLOB NOT NULL, tx BLOB NOT NULL,
    topics BLOB NOT NULL, data BLOB NOT NULL, PRIMARY KEY (block, place)
);
CREATE TABLE intents (
    key TEXT PRIMARY KEY, sender TEXT NOT NULL, nonce INTEGER NOT NULL, target TEXT NOT NULL,
    data BLOB NOT NULL, value TEXT NOT NULL, gas INTEGER NOT NULL, state TEXT NOT NULL,
    why TEXT NOT NULL DEFAULT '', mined BLOB, mined_block INTEGER, mined_hash BLOB,
    UNIQUE (sender, nonce)
);
CREATE TABLE versions (
    hash BLOB PRIMARY KEY, intent TEXT NOT NULL REFERENCES intents (key), raw BLOB NOT NULL,
    max_fee INTEGER NOT NULL, tip INTEGER NOT NULL, since_block INTEGER NOT NULL
);
CREATE INDEX versions_of_intent ON versions (intent);
"""
_BOOK = "CREATE TABLE book (block INTEGER NOT NULL, data BLOB NOT NULL)"


class Store:
    """One file. For one thread at a time; processes exclude each other while they write."""

    def __init__(self, path: Path, *, chain_id: int, market: str) -> None:
        self.path = path
        # Transactions are ours to begin and end. The thread may be another one from call to call.
        self._database = sqlite3.connect(
            path, isolation_level=None, timeout=30.0, check_same_thread=False
        )
        try:
            self._prepare(chain_id, bytes.fromhex(market.removeprefix("0x")))
        except sqlite3.DatabaseError as error:
            self.close()
            raise StoreError(f"{path} is no store that can be read: {error}") from error
        except StoreError:
            self.close()
            raise

    def close(self) -> None:
        self._database.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All of the block's changes, or none; they are on the disk when it ends."""
        try:
            self._database.execute("BEGIN IMMEDIATE")
            yield
            self._database.execute("COMMIT")
        except BaseException as error:
            # A full disk may have ended it already.
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            if isinstance(error, sqlite3.OperationalError):
                raise StoreUnavailableError(f"{self.path} cannot be written: {error}") from error
            raise

    def rows(self, question: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._database.execute(question, values).fetchall()

    def row(self, question: str, *values: Any) -> tuple[Any, ...] | None:
        found: tuple[Any, ...] | None = self._database.execute(question, values).fetchone()
        return found

    def write(self, change: str, *values: Any) -> None:
        self._database.execute(change, values)

    def write_many(self, change: str, rows: list[tuple[Any, ...]]) -> None:
        self._database.executemany(change, rows)

    def _prepare(self, chain_id: int, market: bytes) -> None:
        self._database.execute("PRAGMA journal_mode = WAL")
        # Without it, a loss of power could take back what was said to be journaled.
        self._database.execute("PRAGMA synchronous = FULL")
        with self.writing():
            version = self._database.execute("PRAGMA user_version").fetchone()[0]
            if version == 0:
                # Not `executescript`, which would end the transaction first.
                for statement in _SCHEMA.split(";"):
                    self._database.execute(statement)
                self.write("INSERT INTO bound VALUES (?, ?)", chain_id, market)
            elif version not in (1, _VERSION):
                raise StoreError(
                    f"{self.path} is of version {version}, and this is {_VERSION}: update Trainyard"
                )
            if version < _VERSION:
                # The first version had no book: the cursor begins anew, and the journal stays.
                self._database.execute(_BOOK)
                self._database.execute(f"PRAGMA user_version = {_VERSION}")
        bound = self.row("SELECT chain_id, market FROM bound")
        if bound != (chain_id, market):
            of = f"0x{bound[1].hex()} on chain {bound[0]}" if bound else "nothing"
            raise StoreError(
                f"{self.path} belongs to market {of}, not 0x{market.hex()} on chain {chain_id}:"
                " name another file"
            )
