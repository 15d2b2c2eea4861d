"""Where the index is in the chain, in the same transaction as the rows themselves."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from dapp.database.engine import Database
from dapp.database.models import Block, EventRow
from trainyard.chain.blocks import BlockRef, Log
from trainyard.chain.errors import StoreError
from trainyard.chain.walking import Walk

_WORD = 32


class SqlPlaces:
    """The cursor's places. Moves are made inside `within`, together with other changes."""

    def __init__(self, database: Database, depth: int) -> None:
        self._database, self._depth = database, depth
        self._session: Session | None = None

    @contextmanager
    def within(self, session: Session) -> Iterator[None]:
        """Moves inside the block are part of `session`'s transaction."""
        self._session = session
        try:
            yield
        finally:
            self._session = None

    def last(self) -> BlockRef | None:
        with self._reading() as session:
            row = session.scalar(select(Block).order_by(Block.number.desc()).limit(1))
        return None if row is None else BlockRef(row.number, row.hash)

    def at_most(self, number: int) -> BlockRef | None:
        with self._reading() as session:
            found = select(Block).where(Block.number <= number).order_by(Block.number.desc())
            row = session.scalar(found.limit(1))
        return None if row is None else BlockRef(row.number, row.hash)

    def latest_first(self) -> list[BlockRef]:
        with self._reading() as session:
            rows = session.scalars(select(Block).order_by(Block.number.desc()))
            return [BlockRef(row.number, row.hash) for row in rows]

    def logs_after(self, number: int) -> list[Log]:
        with self._reading() as session:
            found = select(EventRow).where(EventRow.block > number)
            rows = session.scalars(found.order_by(EventRow.block, EventRow.place))
            return [log_of(row) for row in rows]

    def advance(self, after: BlockRef | None, walk: Walk) -> None:
        session = self._required()
        self._expect(after)
        oldest = walk.to.number - self._depth
        blocks = [
            {"number": ref.number, "hash": ref.hash, "time": walk.times.get(ref.number, 0)}
            for ref in walk.blocks
            if ref.number >= oldest
        ]
        session.execute(insert(Block), blocks)
        session.execute(delete(Block).where(Block.number < oldest))

    def go_back(self, after: BlockRef, to: BlockRef) -> None:
        session = self._required()
        self._expect(after)
        session.execute(delete(Block).where(Block.number > to.number))
        session.execute(delete(EventRow).where(EventRow.block > to.number))

    def clear(self) -> None:
        self._required().execute(delete(Block))

    def _expect(self, after: BlockRef | None) -> None:
        # INVARIANT: no batch is skipped, and none is kept twice.
        if self.last() != after:
            raise StoreError(f"the index is at {self.last()}, and the batch follows {after}")

    def _required(self) -> Session:
        if self._session is None:
            raise StoreError("the place of an index moves in a transaction alone")
        return self._session

    @contextmanager
    def _reading(self) -> Iterator[Session]:
        if self._session is not None:
            yield self._session
            return
        with self._database.reading() as session:
            yield session


def log_of(row: EventRow) -> Log:
    place = BlockRef(row.block, row.block_hash)
    return Log(place, row.place, row.transaction, b"", topics_of(row.topics), row.data)


def topics_of(words: bytes) -> tuple[bytes, ...]:
    """Topics as rows have them: one after the other."""
    return tuple(words[at : at + _WORD] for at in range(0, len(words), _WORD))
