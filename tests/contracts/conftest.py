"""Set-up of the contract tests, which brownie runs on a Ganache of their own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from brownie import accounts, chain

from scripts.fresh_chain import start_clock, step_clock, stop_chain_with_us, take_free_port
from tests.contracts.pace import keep_chain_in_memory, keep_pace
from tests.contracts.token_yard import TokenYard
from tests.contracts.yard import AUDITOR_BOND, Yard, deploy_market

# Before brownie connects, which it does once all tests are collected.
stop_chain_with_us()
keep_chain_in_memory()
take_free_port()
step_clock()
# Set another time to try the tests on other draws.
start_clock(os.environ.get("GENESIS", "2027-01-01T00:00:00Z"))


def staff(yard: Yard) -> Yard:
    yard.fund(yard.requester, yard.challenger, *yard.workers, *yard.auditors)
    yard.register(*yard.workers)
    yard.register(*yard.auditors, bond=AUDITOR_BOND)
    return yard


@pytest.fixture(scope="session", autouse=True)
def staffed_yards():
    """A market of each kind with its people; every module begins with both, as if it made them."""
    keep_pace()
    people = list(accounts)[:20]
    yards = staff(Yard(deploy_market(accounts[0]), people)), staff(TokenYard(people))
    # What the isolation of modules goes back to, an empty chain otherwise.
    chain._reset_id = chain._take_snapshot()
    return yards


@pytest.fixture(scope="module")
def staffed_yard(staffed_yards, module_isolation):
    return staffed_yards[0]


@pytest.fixture
def yard(staffed_yard, fn_isolation):
    """A market whose people have credit; four workers and twelve auditors of one class."""
    with hiring_undone(staffed_yard):
        yield staffed_yard


@pytest.fixture(scope="module")
def staffed_token_yard(staffed_yards, module_isolation):
    return staffed_yards[1]


@pytest.fixture
def token_yard(staffed_token_yard, fn_isolation):
    """The same people in a market of its own, whose currency is a token."""
    with hiring_undone(staffed_token_yard):
        yield staffed_token_yard


@contextmanager
def hiring_undone(yard: Yard) -> Iterator[None]:
    """Whom a test hires is known no longer than the chain knows them."""
    known = dict(yard.by_address)
    yield
    yard.by_address = known
