"""Taking earnings out of the market, while no agent runs: the account is the outbox's alone."""

import secrets
import time
from contextlib import closing
from dataclasses import dataclass

from eth_account.signers.local import LocalAccount

from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.journal import Entry, Journal, State
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store
from trainyard.protocol.errors import PermanentError
from worker_agent.settings import Home, Settings

WITHDRAWAL = "withdraw:"
_POLL_S = 0.2


class WithdrawalError(PermanentError):
    """There is nothing to withdraw, or the market refused it."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    # None where an earlier one was finished, whose sum the chain knows.
    amount: int | None
    entry: Entry


def withdraw_credit(
    home: Home,
    settings: Settings,
    account: LocalAccount,
    *,
    to: str,
    amount: int | None,
    timeout_s: float,
) -> Withdrawal:
    """Send the credit, or `amount` of it; one that is under way already is finished instead.

    The key must be held (`locking.held_key`).
    """
    chain = settings.chain
    endpoints = Endpoints(chain.endpoints, chain_id=chain.chain_id)
    endpoints.check()
    with closing(Store(home.chain_store, chain_id=chain.chain_id, market=chain.market)) as store:
        outbox = Outbox(
            endpoints, store, account, confirmations=chain.confirmations, fees=chain.fees
        )
        outbox.step()
        for entry in Journal(store, account.address).unfinished():
            if entry.key.startswith(WITHDRAWAL) and entry.state is State.PENDING:
                return Withdrawal(None, _wait(outbox, entry, timeout_s))
        client = MarketClient(endpoints, chain.market)
        credit = client.account(account.address).credit
        wanted = credit if amount is None else amount
        if not 0 < wanted <= credit:
            raise WithdrawalError(
                f"the credit of {account.address} is {credit}: there is nothing to withdraw"
                if amount is None
                else f"the credit of {account.address} is {credit}, less than {wanted}"
            )
        key = WITHDRAWAL + secrets.token_hex(8)
        entry = outbox.submit(key, client.calls.withdraw(to, wanted))
        return Withdrawal(wanted, _wait(outbox, entry, timeout_s))


def _wait(outbox: Outbox, entry: Entry, timeout_s: float) -> Entry:
    """Until it is in a block, or as long as one cares to wait: the journal goes on with it."""
    deadline = time.monotonic() + timeout_s
    while True:
        outbox.step()
        entry = outbox.entry(entry.key)
        if entry.state is not State.PENDING or time.monotonic() >= deadline:
            break
        time.sleep(_POLL_S)
    if entry.why and entry.state is not State.PENDING:
        raise WithdrawalError(f"the withdrawal failed: {entry.why}")
    return entry
