"""Opening the database, with its tables up to date."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from dapp.database.models import Base
from dapp.errors import SettingsError

_Result = TypeVar("_Result")
_MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations"
_BUSY_MS = 10_000
_WRITES = "trainyard_writes"
_MAPPED_BYTES = 1 << 30
_TRIES, _FIRST_WAIT_S, _LONGEST_WAIT_S = 12, 0.005, 0.2
# PostgreSQL's codes: another transaction came first, or two waited for each other.
_CAME_SECOND = ("40001", "40P01")


class Database:
    """Sessions of one database; for any thread."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._readers = sessionmaker(engine, expire_on_commit=False)
        writing = engine.execution_options(**{_WRITES: True})
        self._writers = sessionmaker(writing, expire_on_commit=False)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """One look: all that is read inside is of one moment."""
        with self._readers() as session:
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """All of the block's changes, or none."""
        with self._writers.begin() as session:
            yield session

    def write(self, work: Callable[[Session], _Result]) -> _Result:
        """What `work` answers, and all of its changes.

        Where another transaction came first it is done again, and then sees what the other did.
        """
        for tried in range(_TRIES - 1):
            try:
                with self.writing() as session:
                    return work(session)
            except DBAPIError as error:
                if not _came_second(error):
                    raise
            # Not all at the same moment once more.
            longest_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2**tried)
            time.sleep(random.uniform(0, longest_s))  # noqa: S311
        with self.writing() as session:
            return work(session)

    def close(self) -> None:
        self.engine.dispose()


def upsert(session: Session, table: type[Base], values: dict[str, Any], *key: str) -> None:
    """A row as `values` say, whether there is one with this key or not."""
    is_postgresql = session.get_bind().dialect.name == "postgresql"
    make = postgresql.insert if is_postgresql else sqlite.insert
    rest = {name: value for name, value in values.items() if name not in key}
    found = make(table).values(**values)
    session.execute(found.on_conflict_do_update(index_elements=list(key), set_=rest))


def _came_second(error: DBAPIError) -> bool:
    code = getattr(error.orig, "sqlstate", None)
    return isinstance(error, IntegrityError) or code in _CAME_SECOND


def open_database(url: str) -> Database:
    """The database at `url`, migrated to what this version needs."""
    engine = make_engine(url)
    try:
        migrate(engine)
    except SQLAlchemyError as error:
        engine.dispose()
        safe = make_url(url).render_as_string(hide_password=True)
        raise SettingsError(
            f"TRAINYARD_DAPP_DATABASE_URL: {safe} cannot be opened: {_first_line(error)}"
        ) from error
    return Database(engine)


def make_engine(url: str) -> Engine:
    found = make_url(url)
    if found.get_backend_name() != "sqlite":
        return create_engine(
            found,
            pool_size=16,
            max_overflow=32,
            pool_pre_ping=True,
            # As with SQLite: what is read together is of one moment.
            isolation_level="REPEATABLE READ",
        )
    if found.database:
        Path(found.database).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(found, pool_size=16, max_overflow=32)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def migrate(engine: Engine) -> None:
    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def _prepare_sqlite(connection: Any, _: Any) -> None:
    # Transactions are begun by SQLAlchemy: the driver would do so too late.
    connection.isolation_level = None
    for setting in (
        "journal_mode = WAL",
        # Enough for a database that can be rebuilt; what cannot is only the last moment's.
        "synchronous = NORMAL",
        "foreign_keys = ON",
        f"busy_timeout = {_BUSY_MS}",
        # Read from the system's own memory, not each page by a call of its own.
        f"mmap_size = {_MAPPED_BYTES}",
    ):
        connection.execute(f"PRAGMA {setting}")


def _begin_sqlite(connection: Connection) -> None:
    # A reader that becomes a writer later cannot wait for others: writers take the lock at once.
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _first_line(error: SQLAlchemyError) -> str:
    return (str(error).splitlines() or [""])[0][:300]
