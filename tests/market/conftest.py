"""One market for each module that asks for one, and nothing left of it afterwards."""

from collections.abc import Iterator

import pytest

import tests.quiet_web3  # noqa: F401
from tests.market.yard import Market, market


@pytest.fixture(scope="module")
def yard() -> Iterator[Market]:
    with market() as one:
        yield one
