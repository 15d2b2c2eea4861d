"""The index: equal to the chain, whatever happens to either."""

from collections.abc import Callable
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from dapp.database.engine import Database, open_database
from dapp.database.models import (
    TOLD,
    Base,
    EventRow,
    FeedRow,
    LineRow,
    PointRow,
    TaskRow,
    WorkerRow,
)
from dapp.indexer.encoding import decode_task, encode_task
from dapp.indexer.indexing import Indexer, Step
from tests.dapp.yard import Yard, rows_of
from trainyard.chain.cursor import Batch
from trainyard.chain.errors import StoreError
from trainyard.chain.reading import read_market
from trainyard.protocol.market import Policy, TaskState


def test_tasks_and_workers_are_those_of_the_ledger(yard: Yard, database: Database) -> None:
    yard.indexer(database).catch_up()

    book = read_market(yard.endpoints(), yard.market, yard.start).book
    with database.reading() as session:
        tasks = {row.id: decode_task(row.ledger) for row in session.scalars(select(TaskRow))}
        workers = set(session.scalars(select(WorkerRow.address)))
    assert tasks == book.tasks
    assert workers == set(book.workers)


def test_tasks_survive_their_encoding(yard: Yard) -> None:
    book = read_market(yard.endpoints(), yard.market, yard.start).book

    assert {task.state for task in book.tasks.values()} > {TaskState.SETTLED, TaskState.FAILED}
    for task in book.tasks.values():
        assert decode_task(encode_task(task)) == task


def test_deleting_the_database_loses_nothing(yard: Yard, make_url: Callable[[], str]) -> None:
    first, second = open_database(make_url()), open_database(make_url())
    indexer = yard.indexer(first, span=3)
    yard.live.audit(1)
    indexer.catch_up()
    yard.live.replicate(3)
    indexer.catch_up()

    yard.indexer(second).catch_up()

    assert _without_old_blocks(rows_of(first)) == _without_old_blocks(rows_of(second))
    first.close()
    second.close()


def test_an_index_goes_on_where_it_was(yard: Yard, database: Database) -> None:
    yard.indexer(database).catch_up()
    before = rows_of(database)
    yard.live.score(1)

    again = yard.indexer(database)
    again.catch_up()

    with database.reading() as session:
        added = session.scalar(select(TaskRow).order_by(TaskRow.id.desc()).limit(1))
        events = len(session.scalars(select(EventRow.block)).all())
    assert added is not None
    assert TaskState(added.state) is TaskState.SETTLED
    assert events > len(before["events"])
    assert again.view.market.book == read_market(yard.endpoints(), yard.market, yard.start).book


def test_a_rebuild_ends_with_the_same_rows(yard: Yard, database: Database) -> None:
    indexer = yard.indexer(database)
    indexer.catch_up()
    before = rows_of(database)

    indexer.rebuild()
    assert not any(rows_of(database).values())
    indexer.catch_up()

    assert rows_of(database) == before


@pytest.mark.parametrize("depth", [1, 4, 12])
def test_a_reorg_leaves_nothing_behind(yard: Yard, make_url: Callable[[], str], depth: int) -> None:
    database, fresh = open_database(make_url()), open_database(make_url())
    yard.anvil.mine(2)
    indexer = yard.indexer(database)
    indexer.catch_up()
    before = yard.anvil.request("evm_snapshot")
    yard.live.post(Policy.AUDIT, 3)
    yard.anvil.mine(depth)
    indexer.catch_up()
    # The chain is another one from here on: another task has the number of the one before.
    yard.anvil.request("evm_revert", before)
    yard.live.post(Policy.REPLICATE, 3)
    yard.anvil.mine(depth + 1)

    indexer.catch_up()

    assert indexer.reorgs == 1
    yard.indexer(fresh).catch_up()
    assert _without_old_blocks(rows_of(database)) == _without_old_blocks(rows_of(fresh))
    with database.reading() as session:
        newest = session.scalar(select(TaskRow).order_by(TaskRow.id.desc()).limit(1))
    assert newest is not None
    assert Policy(newest.policy) is Policy.REPLICATE
    database.close()
    fresh.close()


def test_a_task_that_a_reorg_took_back_is_gone(yard: Yard, database: Database) -> None:
    indexer = yard.indexer(database)
    indexer.catch_up()
    with database.reading() as session:
        count = len(session.scalars(select(TaskRow.id)).all())
    before = yard.anvil.request("evm_snapshot")
    yard.live.post(Policy.AUDIT, 1)
    indexer.catch_up()
    yard.anvil.request("evm_revert", before)
    yard.anvil.mine(3)

    indexer.catch_up()

    with database.reading() as session:
        assert len(session.scalars(select(TaskRow.id)).all()) == count


def test_a_reorg_beyond_its_depth_is_read_again_from_the_first_block(
    yard: Yard, database: Database
) -> None:
    yard.anvil.mine(8)
    before = yard.anvil.request("evm_snapshot")
    yard.live.post(Policy.AUDIT, 3)
    yard.anvil.mine(6)
    indexer = yard.indexer(database, depth=3)
    indexer.catch_up()
    yard.anvil.request("evm_revert", before)
    yard.live.post(Policy.SCORE, 1)
    yard.anvil.mine(9)

    indexer.catch_up()

    assert indexer.view.market.book == read_market(yard.endpoints(), yard.market, yard.start).book


def test_a_failing_transaction_moves_nothing(yard: Yard, database: Database) -> None:
    is_full = True

    def tell(step: Step) -> None:
        if is_full:
            raise OperationalError("the disk is full", None, Exception())

    indexer = yard.indexer(database, tell=tell)
    with pytest.raises(OperationalError):
        indexer.catch_up()
    assert not any(rows_of(database).values())
    is_full = False

    indexer.catch_up()

    assert indexer.view.market.book == read_market(yard.endpoints(), yard.market, yard.start).book


def test_rows_of_another_market_are_dropped(yard: Yard, database: Database) -> None:
    yard.indexer(database).catch_up()
    other = Yard(yard.live)
    other.start += 1

    indexer = other.indexer(database)

    assert indexer.place is None
    assert not any(rows_of(database).values())


def test_two_indexes_of_one_database_follow_each_other(
    yard: Yard, make_url: Callable[[], str]
) -> None:
    url = make_url()
    first, second = open_database(url), open_database(url)
    one, other = yard.indexer(first, span=3), yard.indexer(second, span=3)
    for moving in (one, other, one, other):
        moving.step()
    one.catch_up()
    yard.live.audit(1)
    other.catch_up()
    # The other's moves on events that this view has not seen: those of the same people.
    yard.live.score(1)

    one.catch_up()

    _expect_whole(one, yard, make_url)
    before = yard.anvil.request("evm_snapshot")
    yard.live.post(Policy.AUDIT, 3)
    yard.anvil.mine(2)
    other.catch_up()
    yard.anvil.request("evm_revert", before)
    yard.live.post(Policy.REPLICATE, 3)
    yard.anvil.mine(3)
    one.catch_up()
    yard.anvil.mine(1)
    other.catch_up()
    _expect_whole(other, yard, make_url)
    first.close()
    second.close()


def test_a_batch_that_somebody_took_first_is_left_to_them(yard: Yard, database: Database) -> None:
    one, other = yard.indexer(database), yard.indexer(database)
    yard.live.audit(1)
    keep = one._cursor.keep

    def keep_late(batch: Batch) -> None:
        one._cursor.keep = keep  # type: ignore[method-assign]
        raise StoreError("somebody else was first")

    one._cursor.keep = keep_late  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        one.catch_up()
    other.catch_up()
    yard.live.score(1)
    one.catch_up()

    assert one.view.market.book == read_market(yard.endpoints(), yard.market, yard.start).book


def _expect_whole(indexer: Indexer, yard: Yard, make_url: Callable[[], str]) -> None:
    """The rows, and what the index thinks they are, are those of an index that was alone."""
    fresh = open_database(make_url())
    yard.indexer(fresh).catch_up()
    rows = rows_of(indexer._database)
    assert _without_old_blocks(rows) == _without_old_blocks(rows_of(fresh))
    assert indexer.view.market.book == read_market(yard.endpoints(), yard.market, yard.start).book
    fresh.close()


def test_what_was_told_of_a_task_goes_with_it(yard: Yard, database: Database) -> None:
    indexer = yard.indexer(database)
    indexer.catch_up()
    before = yard.anvil.request("evm_snapshot")
    gone = yard.live.post(Policy.AUDIT, 1)
    indexer.catch_up()
    for task in (gone - 1, gone):
        _tell_of(database, task)
    yard.anvil.request("evm_revert", before)
    assert yard.live.post(Policy.REPLICATE, 1) == gone
    yard.anvil.mine(3)

    indexer.catch_up()

    assert indexer.reorgs == 1
    assert _told(database) == [[gone - 1]] * len(TOLD)


def test_what_was_told_on_another_market_is_dropped(yard: Yard, database: Database) -> None:
    yard.indexer(database).catch_up()
    _tell_of(database, 1)
    yard.indexer(database)
    assert _told(database) == [[1]] * len(TOLD)
    other = Yard(yard.live)
    other.start += 1

    other.indexer(database)

    assert _told(database) == [[]] * len(TOLD)


def _tell_of(database: Database, task: int) -> None:
    about: dict[str, Any] = {"task": task, "worker": "0x" + "11" * 20, "slot": 0}
    told = {"sequence": 1, "phase": "training", "last_seen": 1, "steps": 9}
    with database.writing() as session:
        session.add(FeedRow(**about, **told, step=1, values="{}"))
        session.add(PointRow(**about, step=1, time=1.0, values="{}"))
        session.add(LineRow(**about, time=1.0, level="info", text="a line"))


def _told(database: Database) -> list[list[int]]:
    with database.reading() as session:
        return [list(session.scalars(select(table.task))) for table in TOLD]


def _without_old_blocks(
    rows: dict[str, list[tuple[object, ...]]],
) -> dict[str, list[tuple[object, ...]]]:
    """How many blocks are remembered depends on how they came; only the last ones count."""
    return rows | {"blocks": sorted(rows["blocks"], key=lambda row: str(row))[-1:]}


def test_migrations_make_the_tables_that_the_models_are(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
