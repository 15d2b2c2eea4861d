"""One anvil for all tests of the layer: each begins with the market as it was deployed."""

import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

with warnings.catch_warnings():
    # It loads a part of its own that is deprecated, which is nothing that we could change.
    warnings.simplefilter("ignore", DeprecationWarning)
    import web3  # noqa: F401

from benchmarks.anvil import running_anvil
from tests.chain_layer.yard import Yard
from trainyard.chain.fees import GWEI
from trainyard.chain.store import Store


@pytest.fixture(scope="session")
def deployed() -> Iterator[Yard]:
    with running_anvil(accounts=3) as anvil:
        yield Yard(anvil)


@pytest.fixture
def yard(deployed: Yard) -> Iterator[Yard]:
    before = deployed.anvil.request("evm_snapshot")
    yield deployed
    # Of which a snapshot has nothing; first, or what waits would be mined after the way back.
    deployed.anvil.request("anvil_dropAllTransactions")
    deployed.anvil.request("evm_revert", before)
    deployed.anvil.request("anvil_dropAllTransactions")
    deployed.anvil.request("evm_setAutomine", True)
    deployed.anvil.request("anvil_setNextBlockBaseFeePerGas", hex(GWEI))


@pytest.fixture
def store(yard: Yard, tmp_path: Path) -> Iterator[Store]:
    store = yard.store(tmp_path)
    yield store
    store.close()
