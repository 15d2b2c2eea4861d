"""A market with whole lives in it, and both databases."""

import itertools
import warnings
from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import create_engine, text

with warnings.catch_warnings():
    # It loads a part of its own that is deprecated, which is nothing that we could change.
    warnings.simplefilter("ignore", DeprecationWarning)
    import web3  # noqa: F401

from benchmarks.anvil import running_anvil
from benchmarks.lives import ACCOUNTS, LiveMarket
from dapp.database.engine import Database, open_database
from tests.dapp.postgres import running_postgres
from tests.dapp.yard import Yard

_NUMBERS = itertools.count(1)
# What takes a minute by itself is begun first, so that two runners end together.
_LONG = ("test_whole_way.py", "test_openapi.py")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: _LONG.index(item.path.name) if item.path.name in _LONG else 9)


@pytest.fixture(scope="module")
def played() -> Iterator[Yard]:
    """A market in which tasks of each kind have come to their end; each file has its own."""
    with running_anvil(accounts=ACCOUNTS) as anvil:
        market = LiveMarket(anvil)
        market.audit(3)
        market.replicate(3)
        market.score(1)
        market.absence()
        market.fraud(1)
        yield Yard(market)


@pytest.fixture
def yard(played: Yard) -> Iterator[Yard]:
    """The same for each test, whatever the one before did."""
    before = played.anvil.request("evm_snapshot")
    yield played
    played.anvil.request("evm_setAutomine", True)
    played.anvil.request("evm_revert", before)
    played.anvil.request("anvil_dropAllTransactions")
    head = played.anvil.web3.eth.block_number
    found = played.anvil.request("eth_getBlockByNumber", hex(head), False)
    assert found is not None, f"anvil lost its block {head}: somebody mined while this was undone"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """Makes a new, empty database on one server, and says where it is."""
    with running_postgres() as url:

        def make() -> str:
            name = f"test_{next(_NUMBERS)}"
            engine = create_engine(url.format(name="postgres"), isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(text(f"CREATE DATABASE {name}"))
            engine.dispose()
            return url.format(name=name)

        yield make


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def make_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], str]:
    """The address of a new database, of each kind."""
    if request.param == "sqlite":
        folder = tmp_path_factory.mktemp("databases")
        return lambda: f"sqlite:///{folder / f'{next(_NUMBERS)}.sqlite'}"
    found: Callable[[], str] = request.getfixturevalue("postgres")
    return found


@pytest.fixture
def database(make_url: Callable[[], str]) -> Iterator[Database]:
    found = open_database(make_url())
    yield found
    found.close()
