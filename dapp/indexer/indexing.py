"""The index: batches of the cursor, each one transaction of rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import structlog
from sqlalchemy import Table, delete, insert, select
from sqlalchemy.orm import Session

from dapp.database.engine import Database
from dapp.database.models import DERIVED, TOLD, Block, Bound, EventRow
from dapp.indexer.market import MarketView, Timed, Touched
from dapp.indexer.places import SqlPlaces, log_of
from dapp.indexer.projecting import project
from dapp.live.sequence import EVERYBODY, tell
from trainyard.chain.blocks import BlockRef
from trainyard.chain.codec import market_codec
from trainyard.chain.cursor import Batch, Cursor, Found, Seen, Undone
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import ReorgTooDeepError
from trainyard.protocol.telling import task_of

_READ_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Chain:
    """Which market is indexed, and from where on."""

    chain_id: int
    market: str
    start_block: int


@dataclass(frozen=True, slots=True)
class Step:
    """What a batch did, for whoever is to be told in the same transaction."""

    session: Session
    batch: Batch
    touched: Touched
    times: dict[int, int]
    view: MarketView


Tell = Callable[[Step], None]


class Indexer:
    """For one thread. What is in the database goes on; what cannot be gone on with begins anew.

    Another process may move the index in the same database: the view then follows the rows.
    """

    def __init__(
        self,
        database: Database,
        endpoints: Endpoints,
        chain: Chain,
        *,
        depth: int = 128,
        span: int = 2_000,
        tell: Tell = lambda step: None,
    ) -> None:
        self._database, self._depth, self._tell = database, depth, tell
        self._chain = chain
        self._places = SqlPlaces(database, depth)
        self._cursor = Cursor(
            endpoints, self._places, chain.market, start=chain.start_block, depth=depth, span=span
        )
        self.view = MarketView(depth)
        # Of which block the view is.
        self._at: BlockRef | None = None
        self.reorgs = 0
        self._events = 0
        self._bind()
        self._remember()

    @property
    def place(self) -> BlockRef | None:
        return self._places.last()

    def step(self) -> bool:
        """Take the next batch, if there is one."""
        try:
            batch = self._cursor.next()
        except ReorgTooDeepError as error:
            structlog.get_logger().warning("rebuilding", reason=str(error))
            self.rebuild()
            return True
        if batch is None:
            return False
        if batch.after != self._at:
            self._follow()
        if batch.after != self._at:
            # Somebody else came first, also after this was read.
            return True
        match batch:
            case Found():
                self._take(batch)
            case Undone():
                self._undo(batch)
        return True

    def taken(self) -> int:
        """How many events were taken since this was last asked."""
        count, self._events = self._events, 0
        return count

    def catch_up(self) -> None:
        while self.step():
            pass

    def rebuild(self) -> None:
        """Forget all that the chain says; the next steps read it again from the first block."""
        with self._database.writing() as session:
            _clear(session)
            # Whatever somebody looks at may be otherwise when it is read again.
            tell(session, "reset", {}, [EVERYBODY])
        self.view, self._at = MarketView(self._depth), None

    def _take(self, batch: Found) -> None:
        times = dict(batch.walk.times)
        timed = [_timed(seen, times[seen.block.number]) for seen in batch.events]
        touched = Touched.of(one.event for one in timed)
        try:
            self.view.take(timed, batch.to.number)
            with self._database.writing() as session, self._places.within(session):
                self._cursor.keep(batch)
                _insert_events(session, batch, times)
                project(session, self.view.market, touched)
                self._tell(Step(session, batch, touched, times, self.view))
            self._at = batch.to
            self._events += len(timed)
        except BaseException:
            # The view may be ahead of the rows: what the rows say counts.
            self._remember()
            raise

    def _undo(self, batch: Undone) -> None:
        touched = Touched.of(seen.event for seen in batch.events)
        self.reorgs += 1
        structlog.get_logger().warning(
            "reorg", to=batch.to.number, after=batch.after.number, events=len(batch.events)
        )
        try:
            self.view.go_back(batch.to.number)
            with self._database.writing() as session, self._places.within(session):
                self._cursor.keep(batch)
                project(session, self.view.market, touched)
                _forget_told(session, batch)
                self._tell(Step(session, batch, touched, {}, self.view))
            self._at = batch.to
        except BaseException:
            self._remember()
            raise

    def _bind(self) -> None:
        """Rows of another market are worth nothing here."""
        wanted = (self._chain.chain_id, self._chain.market, self._chain.start_block)
        with self._database.writing() as session:
            row = session.scalar(select(Bound))
            if row is not None and (row.chain_id, row.market, row.start_block) != wanted:
                structlog.get_logger().warning("another market", was=row.market, now=wanted[1])
                _clear(session)
                for table in TOLD:
                    session.execute(delete(table))
                tell(session, "reset", {}, [EVERYBODY])
                session.execute(delete(Bound))
                row = None
            if row is None:
                session.execute(
                    insert(Bound).values(
                        chain_id=wanted[0], market=wanted[1], start_block=wanted[2]
                    )
                )

    def _remember(self) -> None:
        """The market from the events in the database."""
        self._at = None
        self._follow()

    def _follow(self) -> None:
        """Take what the rows have beyond the view, or all where it is of another chain."""
        with self._database.reading() as session, self._places.within(session):
            at, last = self._at, self._places.last()
            if at is None or self._places.at_most(at.number) != at:
                self.view, at = MarketView(self._depth), None
            # Until all is taken, the view is of no block.
            self._at = None
            for some in _stored(session, -1 if at is None else at.number):
                self.view.take(some, some[-1].block)
        if last is not None:
            self.view.take((), last.number)
        self._at = last


def _clear(session: Session) -> None:
    for table in DERIVED:
        session.execute(delete(table))


def _forget_told(session: Session, batch: Undone) -> None:
    """What was told of a task that is no more is not of the next one with its number."""
    gone = [task_of(seen.event) for seen in batch.events if seen.event.name == "TaskPosted"]
    if gone:
        for table in TOLD:
            session.execute(delete(table).where(table.task.in_(gone)))


def _timed(seen: Seen, time: int) -> Timed:
    return Timed(seen.event, seen.block.number, seen.index, time)


def _insert_events(session: Session, batch: Found, times: dict[int, int]) -> None:
    rows = [
        {
            "block": log.block.number,
            "place": log.index,
            "block_hash": log.block.hash,
            "transaction": log.transaction,
            "time": times[log.block.number],
            "name": seen.event.name,
            "task": task_of(seen.event),
            "topics": b"".join(log.topics),
            "data": log.data,
        }
        for log, seen in zip(batch.walk.logs, batch.events, strict=True)
    ]
    if rows:
        session.execute(insert(cast(Table, EventRow.__table__)), rows)


def _stored(session: Session, after: int) -> Iterator[Sequence[Timed]]:
    found = select(EventRow).where(EventRow.block > after).order_by(EventRow.block, EventRow.place)
    for some in session.scalars(found.execution_options(yield_per=_READ_AT_ONCE)).partitions():
        yield [timed_of(row) for row in some]


def timed_of(row: EventRow) -> Timed:
    log = log_of(row)
    return Timed(market_codec().event(log.topics, log.data), row.block, row.place, row.time)


def head_of_index(session: Session) -> Block | None:
    return session.scalar(select(Block).order_by(Block.number.desc()).limit(1))
