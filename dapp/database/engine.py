"""Opening the database, with its tables up to date."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session, sessionmaker

from dapp.errors import SettingsError

_MIGRATIONS = Path(__file__).resolve().parents[1] / "migrations"
_BUSY_MS = 10_000
_WRITES = "trainyard_writes"
_MAPPED_BYTES = 1 << 30


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

    def close(self) -> None:
        self.engine.dispose()


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
