"""Transactions that are sent once, whatever happens in between.

A transaction is signed and written to the journal before it is sent. From then on the same bytes
are sent again until they are mined, or replaced by others of the same nonce with higher fees; the
chain takes one of them at most. What a crash leaves behind is found in the journal and known by its
hash.

The account must be the outbox's alone: a transaction that somebody else signs with its key may take
a nonce that was given away here, and the one here is then reported as displaced.
"""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from types import MappingProxyType

from eth_account.signers.local import LocalAccount
from eth_typing import HexStr
from eth_utils.conversions import to_bytes

from trainyard.chain.blocks import Header, head_of
from trainyard.chain.calls import Call
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.errors import EndpointError, NodeRefusedError, NoEndpointError, RevertedError
from trainyard.chain.fees import FeePolicy, Fees
from trainyard.chain.journal import Entry, Journal, State, Version
from trainyard.chain.quantities import number_in
from trainyard.chain.receipts import (
    Receipt,
    call_request,
    count_of,
    is_mined,
    receipt_of,
    tip_of,
    user_of,
)
from trainyard.chain.rpc import Rpc
from trainyard.chain.signed import target_of
from trainyard.chain.store import Store

# What nodes say about a transaction that they have, or that is mined.
_KNOWN_WORDS = ("already known", "already imported", "known transaction", "nonce too low")

_NONE: Mapping[str, int] = MappingProxyType({})
_VOID = "what it was for is not in the chain any more: its nonce was given to one that does nothing"


class Fault(Enum):
    """Where a test may end the process."""

    BEFORE_JOURNAL = auto()
    AFTER_JOURNAL = auto()
    BEFORE_SEND = auto()
    AFTER_SEND = auto()
    # Around what else is written to the journal: what became of an intent, why it could not be
    # sent, and that it is waited for again.
    BEFORE_MOVE = auto()
    AFTER_MOVE = auto()
    BEFORE_NOTE = auto()
    AFTER_NOTE = auto()
    BEFORE_START_OVER = auto()
    AFTER_START_OVER = auto()


class Outbox:
    """Sends for one account. `step` must be called now and then, such as at every new block.

    What has its `confirmations` is looked at again only by `revive`, to be called after a reorg.
    """

    def __init__(
        self,
        endpoints: Endpoints,
        store: Store,
        account: LocalAccount,
        *,
        confirmations: int = 12,
        fees: FeePolicy | None = None,
        on_fault: Callable[[Fault], None] = lambda fault: None,
    ) -> None:
        self._endpoints, self._store, self._account = endpoints, store, account
        self._journal = Journal(store, account.address)
        self._confirmations, self._fees = confirmations, fees or FeePolicy()
        self._reach = on_fault

    def submit(self, key: str, call: Call, *, gas: int | None = None) -> Entry:
        """Send `call` once for `key`, however often this is called with it.

        A call that would be refused now is refused here with a `RevertedError`, and nothing is
        kept. What cannot be sent now is sent by a later `step`.
        """
        known = self._journal.find(key, call)
        if known is not None:
            return known
        head, fees, limit, nonce = self._endpoints.run(lambda rpc: self._prepare(rpc, call, gas))
        self._reach(Fault.BEFORE_JOURNAL)
        with self._store.writing():
            # Another process may have been faster.
            if self._journal.find(key, call) is None:
                nonce = self._journal.next_nonce(nonce)
                version = self._signed(call, nonce, limit, fees, head.ref.number)
                self._journal.add(key, nonce, call, limit, version)
        self._reach(Fault.AFTER_JOURNAL)
        entry = self.entry(key)
        self._send(entry)
        return self.entry(key)

    def entry(self, key: str) -> Entry:
        entry = self._journal.find(key)
        if entry is None:
            raise LookupError(f"nothing was submitted with the key {key!r}")
        return entry

    def revive(self) -> list[Entry]:
        """Begin again to see to what was finished, and fell out of the chain with its block.

        The same bytes are sent again, in the order of their nonces: also what nobody needs any
        more, or nothing after it could be mined. A node that is only behind does no harm.
        """
        head, count = self._endpoints.run(
            lambda rpc: (head_of(rpc), count_of(rpc, self._account.address, "latest"))
        )
        lost = self._journal.finished(count)
        for entry in lost:
            self._start_over(entry, head)
        return lost

    def unseen(self, block: int) -> list[Entry]:
        """What is signed and not mined, or in a block after `block`: who looked no further than
        that cannot know what became of it."""
        return self._journal.unseen(block)

    def pending_value(self) -> int:
        """What all that is signed and not mined yet takes with it."""
        pending = (one for one in self._journal.unfinished() if one.state is State.PENDING)
        return sum(one.call.value for one in pending)

    def counts(self) -> dict[str, int]:
        """How many intents there ever were, by what became of them."""
        return self._journal.counts()

    def succeeded(self, prefix: str) -> int:
        """How many intents whose keys begin so are in the chain."""
        return self._journal.succeeded(prefix)

    def step(
        self,
        deadlines: Mapping[str, int] = _NONE,
        is_void: Callable[[str], bool] = lambda key: False,
    ) -> list[Entry]:
        """See to all that is unfinished; those whose state changed, as they are now.

        `deadlines` are of keys, in the chain's time: near one, fees are raised at every block. What
        has a key that `is_void` must not be mined any more: its nonce is given to a transaction
        that does nothing, and it ends as displaced.
        """
        before = self._journal.unfinished()
        # What comes before it has to be mined before it.
        by: int | None = None
        hurry = dict[str, int | None]()
        for entry in reversed(before):
            by = min(
                (one for one in (by, deadlines.get(entry.key)) if one is not None), default=None
            )
            hurry[entry.key] = by
        for entry in before:
            self._see_to(entry, hurry[entry.key], is_void=is_void(entry.key))
        after = [self.entry(entry.key) for entry in before]
        return [new for old, new in zip(before, after, strict=True) if new.state is not old.state]

    def _see_to(self, entry: Entry, by: int | None, *, is_void: bool) -> None:
        head, displaced, receipt = self._endpoints.run(lambda rpc: self._look(rpc, entry))
        if receipt is not None:
            self._note_mined(entry, receipt, head)
        elif displaced:
            why = f"another transaction of {self._account.address} has nonce {entry.nonce}"
            self._move(entry, State.DISPLACED, why)
        elif entry.state is State.MINED:
            # Its block fell out of the chain, of which whoever calls may not know yet. It is sent
            # again at the next step: by then it may be void.
            self._start_over(entry, head)
        else:
            self._push(entry, head, by, is_void=is_void)

    def _look(self, rpc: Rpc, entry: Entry) -> tuple[Header, bool, Receipt | None]:
        """The head, whether the nonce is somebody else's for good, and our receipt, of one node."""
        head = head_of(rpc)
        receipt = receipt_of(rpc, entry)
        if receipt is not None or not self._is_used(rpc, entry.nonce, head):
            return head, False, receipt
        # Asked for again: ours may have been mined between the two questions.
        receipt = receipt_of(rpc, entry)
        if receipt is not None or entry.state is State.MINED:
            return head, False, receipt
        self._check_displaced(rpc, entry, head)
        return head, True, None

    def _check_displaced(self, rpc: Rpc, entry: Entry, head: Header) -> None:
        """An error if the node has no receipt of ours, and yet has it: to take that for somebody
        else's would send once more what is mined."""
        ours = {version.hash for version in entry.versions}
        try:
            found = {user_of(rpc, self._account.address, entry.nonce, self._settled(head))}
        except NodeRefusedError:
            # It keeps no states of so long ago. What it has of ours it knows by the hash.
            found = {one for one in ours if is_mined(rpc, one)}
        if ours & found:
            raise rpc.error(f"has no receipt of what is mined with nonce {entry.nonce}")

    def _note_mined(self, entry: Entry, receipt: Receipt, head: Header) -> None:
        state, why = State.MINED, ""
        mined = next(one for one in entry.versions if one.hash == receipt.transaction)
        does_nothing = self._does_nothing(mined)
        if head.ref.number - receipt.block.number + 1 >= self._confirmations:
            state = State.DONE if receipt.succeeded else State.REVERTED
            state = State.DISPLACED if does_nothing else state
        if does_nothing:
            why = _VOID
        elif not receipt.succeeded:
            known = entry.mined_in == receipt.block
            why = entry.why if known else self._find_reason(entry, receipt)
        if (entry.state, entry.mined_in, entry.why) != (state, receipt.block, why):
            self._move(entry, state, why, receipt)

    def _push(self, entry: Entry, head: Header, by: int | None, *, is_void: bool) -> None:
        waited = head.ref.number - entry.newest.since_block
        # INVARIANT: once void is void for good, for it may have been done again since.
        was_void = self._does_nothing(entry.newest)
        call = Call(self._account.address, b"") if is_void or was_void else entry.call
        is_news = is_void and not was_void
        if is_news or waited >= self._fees.patience(by, head.timestamp):
            fees = self._fees.raised(entry.newest.fees, head.base_fee, self._endpoints.run(tip_of))
            if fees is None:
                if not is_news:
                    self._send_again(entry)
                limit = f"raise {self._fees.limit_name}"
                why = f"more than {self._fees.most_wei} wei per gas would be needed: {limit}"
                self._note(entry, why)
                return
            version = self._signed(call, entry.nonce, entry.gas, fees, head.ref.number)
            self._reach(Fault.BEFORE_JOURNAL)
            with self._store.writing():
                self._journal.add_version(entry.key, version)
            self._reach(Fault.AFTER_JOURNAL)
        self._send_again(self.entry(entry.key))

    def _send_again(self, entry: Entry) -> None:
        """Send the newest bytes to a node that does not have them.

        Ganache takes what it is sent twice for two, and mines both: the same transaction, twice in
        one block.
        """
        name = f"0x{entry.newest.hash.hex()}"
        if self._endpoints.call("eth_getTransactionByHash", name) is None:
            self._send(entry)

    def _send(self, entry: Entry) -> None:
        """Send the newest bytes; what goes wrong is noted, and `step` tries again."""
        self._reach(Fault.BEFORE_SEND)
        raw, why = f"0x{entry.newest.raw.hex()}", ""
        try:
            self._endpoints.call("eth_sendRawTransaction", raw)
        except NodeRefusedError as error:
            if not any(word in error.message.lower() for word in _KNOWN_WORDS):
                why = str(error)
        except (EndpointError, NoEndpointError, RevertedError) as error:
            why = str(error)
        self._reach(Fault.AFTER_SEND)
        if why != entry.why:
            self._note(entry, why)

    def _move(self, entry: Entry, state: State, why: str, receipt: Receipt | None = None) -> None:
        mined, mined_in = (receipt.transaction, receipt.block) if receipt else (None, None)
        self._reach(Fault.BEFORE_MOVE)
        self._journal.move(entry.key, state, why=why, mined=mined, mined_in=mined_in)
        self._reach(Fault.AFTER_MOVE)

    def _note(self, entry: Entry, why: str) -> None:
        self._reach(Fault.BEFORE_NOTE)
        self._journal.note(entry.key, why)
        self._reach(Fault.AFTER_NOTE)

    def _start_over(self, entry: Entry, head: Header) -> None:
        self._reach(Fault.BEFORE_START_OVER)
        self._journal.start_over(entry, head.ref.number)
        self._reach(Fault.AFTER_START_OVER)

    def _prepare(self, rpc: Rpc, call: Call, gas: int | None) -> tuple[Header, Fees, int, int]:
        sender = self._account.address
        if gas is None:
            estimate = number_in(rpc, rpc.request("eth_estimateGas", call_request(sender, call)))
            gas = self._fees.gas(estimate)
        head = head_of(rpc)
        tip = tip_of(rpc)
        nonce = count_of(rpc, sender, "pending")
        return head, self._fees.first(head.base_fee, tip), gas, nonce

    def _signed(self, call: Call, nonce: int, gas: int, fees: Fees, since_block: int) -> Version:
        signed = self._account.sign_transaction(
            {
                "type": 2,
                "chainId": self._endpoints.chain_id,
                "nonce": nonce,
                "to": to_bytes(hexstr=HexStr(call.to)),
                "data": call.data,
                "value": call.value,
                "gas": gas,
                "maxFeePerGas": fees.max_fee,
                "maxPriorityFeePerGas": fees.tip,
            }
        )
        return Version(bytes(signed.hash), bytes(signed.raw_transaction), fees, since_block)

    def _does_nothing(self, version: Version) -> bool:
        """Whether it only uses its nonce up."""
        return target_of(version.raw) == to_bytes(hexstr=HexStr(self._account.address))

    def _is_used(self, rpc: Rpc, nonce: int, head: Header) -> bool:
        """Whether a transaction of this nonce is as deep in the chain as we ask for."""
        for number in (head.ref.number, self._settled(head)):
            if number < 0 or count_of(rpc, self._account.address, number) <= nonce:
                return False
        return True

    def _settled(self, head: Header) -> int:
        return head.ref.number - self._confirmations

    def _find_reason(self, entry: Entry, receipt: Receipt) -> str:
        return self._endpoints.run(lambda rpc: self._reason(rpc, entry, receipt))

    def _reason(self, rpc: Rpc, entry: Entry, receipt: Receipt) -> str:
        """Why it reverted: receipts do not say, so it is called again where it was mined."""
        if receipt.gas_used >= entry.gas:
            return f"it ran out of gas, of which it had {entry.gas}"
        request = call_request(self._account.address, entry.call)
        # As it was before its block, or after, if what refused it came in the same block.
        for number in (receipt.block.number - 1, receipt.block.number):
            try:
                rpc.request("eth_call", request, hex(number))
            except RevertedError as error:
                return str(error)
        return "it reverted, and does not when it is called again"
