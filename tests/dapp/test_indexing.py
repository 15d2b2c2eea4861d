"""The index: equal to the chain, whatever happens to either."""

from collections.abc import Callable

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import select
from sqlalchemy.exc import OperationalError

from dapp.database.engine import Database, open_database
from dapp.database.models import Base, EventRow, TaskRow, WorkerRow
from dapp.indexer.encoding import decode_task, encode_task
from dapp.indexer.indexing import Step
from tests.dapp.yard import Yard, rows_of
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


def _without_old_blocks(
    rows: dict[str, list[tuple[object, ...]]],
) -> dict[str, list[tuple[object, ...]]]:
    """How many blocks are remembered depends on how they came; only the last ones count."""
    return rows | {"blocks": sorted(rows["blocks"], key=lambda row: str(row))[-1:]}


def test_migrations_make_the_tables_that_the_models_are(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
