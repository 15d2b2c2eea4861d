"""Set-up of the contract tests, which brownie runs on a Ganache of their own."""

import os

import pytest
from brownie import accounts

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


@pytest.fixture(scope="session", autouse=True)
def _pace():
    keep_pace()


def staff(yard: Yard) -> None:
    yard.fund(yard.requester, yard.challenger, *yard.workers, *yard.auditors)
    yard.register(*yard.workers)
    yard.register(*yard.auditors, bond=AUDITOR_BOND)


@pytest.fixture(scope="module")
def staffed_yard(module_isolation):
    yard = Yard(deploy_market(accounts[0]), list(accounts)[:20])
    staff(yard)
    return yard


@pytest.fixture
def yard(staffed_yard, fn_isolation):
    """A market whose people have credit; four workers and twelve auditors of one class."""
    return staffed_yard


@pytest.fixture(scope="module")
def staffed_token_yard(module_isolation):
    yard = TokenYard(list(accounts)[:20])
    staff(yard)
    return yard


@pytest.fixture
def token_yard(staffed_token_yard, fn_isolation):
    """The same people in a market of its own, whose currency is a token."""
    return staffed_token_yard
