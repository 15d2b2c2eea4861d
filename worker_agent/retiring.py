"""Getting a bond back, while no agent runs: retire, wait until the market lets go of it, unbond.

It may be cut off at any moment. Run again, it goes on from what the market says.
"""

import secrets
import time
from contextlib import closing
from dataclasses import dataclass

from eth_account.signers.local import LocalAccount

from trainyard.chain.blocks import head_of
from trainyard.chain.calls import Call
from trainyard.chain.client import MarketClient
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import RevertedError
from trainyard.chain.journal import Entry, Journal, State
from trainyard.chain.outbox import Outbox
from trainyard.chain.store import Store
from trainyard.protocol.errors import PermanentError
from trainyard.protocol.ledger.book import Worker
from worker_agent.settings import Home, Settings
from worker_agent.withdrawing import WITHDRAWAL

RETIRE, UNBOND = "retire/", "unbond/"
_POLL_S = 0.5


class RetiringError(PermanentError):
    """The market refused what getting a bond back takes."""


@dataclass(frozen=True, slots=True)
class Retired:
    """How far it is: over, if it waits for nothing."""

    bond: int
    credit: int
    withdrawn: int
    unbonds_at: int | None
    waits_for: str | None


def retire_worker(
    home: Home, settings: Settings, account: LocalAccount, *, to: str | None, timeout_s: float
) -> Retired:
    """All that can be done within `timeout_s`. The key must be held (`locking.held_key`)."""
    chain = settings.chain
    endpoints = Endpoints(chain.endpoints, chain_id=chain.chain_id)
    endpoints.check()
    with closing(Store(home.chain_store, chain_id=chain.chain_id, market=chain.market)) as store:
        outbox = Outbox(
            endpoints, store, account, confirmations=chain.confirmations, fees=chain.fees
        )
        until = time.monotonic() + timeout_s
        one = _Retiring(MarketClient(endpoints, chain.market), endpoints, store, outbox, account)
        return one.run(to, until)


@dataclass(frozen=True, slots=True)
class _Retiring:
    client: MarketClient
    endpoints: Endpoints
    store: Store
    outbox: Outbox
    account: LocalAccount

    def run(self, to: str | None, until: float) -> Retired:
        calls, withdrawn = self.client.calls, 0
        while True:
            worker = self.client.worker(self.account.address)
            is_registered = any(worker.env_class)
            waits_for = None
            if is_registered:
                waits_for = self._send(RETIRE, calls.retire(), until)
            elif worker.unbonds_at:
                # Whether it is time the market alone knows.
                refused = self._send(UNBOND, calls.unbond(), until)
                waits_for = refused and (self._why_held(worker) or refused)
            else:
                credit = self.client.account(self.account.address).credit
                if to is None or not credit:
                    return self._found(worker, withdrawn, None)
                waits_for = self._send(WITHDRAWAL, calls.withdraw(to, credit), until)
                withdrawn += credit - self.client.account(self.account.address).credit
            if waits_for is not None and time.monotonic() >= until:
                return self._found(worker, withdrawn, waits_for)
            if waits_for is not None:
                time.sleep(_POLL_S)

    def _found(self, worker: Worker, withdrawn: int, waits_for: str | None) -> Retired:
        credit = self.client.account(self.account.address).credit
        return Retired(worker.bond, credit, withdrawn, worker.unbonds_at or None, waits_for)

    def _why_held(self, worker: Worker) -> str | None:
        """What the market asks to wait for, by the time of its last block."""
        left_s = worker.unbonds_at - self.endpoints.run(head_of).timestamp
        if left_s > 0:
            return f"the end of the time for which a bond stays, in {left_s} s"
        if worker.bond_locked:
            return f"seats that hold {worker.bond_locked} of the bond, until they are closed"
        return None

    def _send(self, what: str, call: Call, until: float) -> str | None:
        """Send it, or go on with what is under way; what it waits for, if it is in no block."""
        self.outbox.step()
        entry = self._pending(what)
        if entry is None:
            try:
                entry = self.outbox.submit(what + secrets.token_hex(8), call)
            except RevertedError as error:
                # The node that was asked may be behind the one that was asked before.
                return f"the market, which refuses now: {error}"
        while True:
            self.outbox.step()
            entry = self.outbox.entry(entry.key)
            if entry.state is not State.PENDING:
                break
            if time.monotonic() >= until:
                return f"transaction 0x{entry.newest.hash.hex()}, which is in no block yet"
            time.sleep(_POLL_S)
        if entry.why:
            raise RetiringError(f"the market refused to {what.rstrip(':/')}: {entry.why}")
        return None

    def _pending(self, what: str) -> Entry | None:
        unfinished = Journal(self.store, self.account.address).unfinished()
        pending = (one for one in unfinished if one.state is State.PENDING)
        return next((one for one in pending if one.key.startswith(what)), None)
