"""Where the cursor is, and the last blocks and logs behind it, in the store."""

from typing import Protocol

from trainyard.chain.blocks import BlockRef, Log
from trainyard.chain.errors import StoreError
from trainyard.chain.store import Store
from trainyard.chain.walking import Walk

_WORD = 32


class KeepsPlaces(Protocol):
    """What a cursor needs to be remembered, wherever that is."""

    def last(self) -> BlockRef | None: ...

    def at_most(self, number: int) -> BlockRef | None:
        """The latest known block of this number or a lower one."""
        ...

    def latest_first(self) -> list[BlockRef]: ...

    def logs_after(self, number: int) -> list[Log]: ...

    def advance(self, after: BlockRef | None, walk: Walk) -> None: ...

    def go_back(self, after: BlockRef, to: BlockRef) -> None: ...

    def clear(self) -> None: ...


class Places:
    """Keeps as many blocks as a reorg may undo, and their logs."""

    def __init__(self, store: Store, depth: int) -> None:
        self._store, self._depth = store, depth

    def last(self) -> BlockRef | None:
        row = self._store.row("SELECT number, hash FROM blocks ORDER BY number DESC LIMIT 1")
        return BlockRef(*row) if row else None

    def at_most(self, number: int) -> BlockRef | None:
        """The latest known block of this number or a lower one."""
        row = self._store.row(
            "SELECT number, hash FROM blocks WHERE number <= ? ORDER BY number DESC LIMIT 1", number
        )
        return BlockRef(*row) if row else None

    def latest_first(self) -> list[BlockRef]:
        rows = self._store.rows("SELECT number, hash FROM blocks ORDER BY number DESC")
        return [BlockRef(*row) for row in rows]

    def logs_after(self, number: int) -> list[Log]:
        rows = self._store.rows(
            "SELECT block, block_hash, place, tx, topics, data FROM logs"
            " WHERE block > ? ORDER BY block, place",
            number,
        )
        return [
            Log(BlockRef(block, hash_), place, tx, b"", _words(topics), data)
            for block, hash_, place, tx, topics, data in rows
        ]

    def advance(self, after: BlockRef | None, walk: Walk) -> None:
        oldest = walk.to.number - self._depth
        # INVARIANT: with a book go all logs from its block to the place.
        needed = min(oldest, self._book_block(oldest - 1) + 1)
        with self._store.writing():
            self._expect(after)
            self._store.write_many(
                "INSERT INTO blocks VALUES (?, ?)",
                [(ref.number, ref.hash) for ref in walk.blocks if ref.number >= oldest],
            )
            self._store.write_many(
                "INSERT INTO logs VALUES (?, ?, ?, ?, ?, ?)",
                [_row(log) for log in walk.logs if log.block.number >= needed],
            )
            self._store.write("DELETE FROM blocks WHERE number < ?", oldest)
            self._store.write("DELETE FROM logs WHERE block < ?", needed)

    def go_back(self, after: BlockRef, to: BlockRef) -> None:
        with self._store.writing():
            self._expect(after)
            self._store.write("DELETE FROM blocks WHERE number > ?", to.number)
            self._store.write("DELETE FROM logs WHERE block > ?", to.number)

    def clear(self) -> None:
        with self._store.writing():
            self._store.write("DELETE FROM blocks")
            self._store.write("DELETE FROM logs")
            self._store.write("DELETE FROM book")

    def keep_book(self, block: int, data: bytes) -> None:
        """Keep the book as of `block`, which no reorg reaches, and no logs of before."""
        with self._store.writing():
            self._store.write("DELETE FROM book")
            self._store.write("INSERT INTO book VALUES (?, ?)", block, data)
            self._store.write("DELETE FROM logs WHERE block <= ?", block)

    def book(self) -> tuple[int, bytes] | None:
        """The book that was kept, and of which block it is."""
        row = self._store.row("SELECT block, data FROM book")
        return (row[0], row[1]) if row else None

    def _book_block(self, default: int) -> int:
        row = self._store.row("SELECT block FROM book")
        return int(row[0]) if row else default

    def _expect(self, after: BlockRef | None) -> None:
        # INVARIANT: no batch is skipped, and none is kept twice.
        if self.last() != after:
            raise StoreError(f"the cursor is at {self.last()}, and the batch follows {after}")


def _row(log: Log) -> tuple[int, int, bytes, bytes, bytes, bytes]:
    topics = b"".join(log.topics)
    return log.block.number, log.index, log.block.hash, log.transaction, topics, log.data


def _words(topics: bytes) -> tuple[bytes, ...]:
    return tuple(topics[start : start + _WORD] for start in range(0, len(topics), _WORD))
