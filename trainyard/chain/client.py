"""What the market stores, by the types in which the ledger has it.

For a glance at the present. Whoever follows the market reads its events instead (`cursor`), which
are in order and tell of everything.
"""

from dataclasses import dataclass
from typing import Any

from eth_abi.exceptions import DecodingError

from trainyard.chain.calls import Call, MarketCalls
from trainyard.chain.codec import market_codec
from trainyard.chain.endpoints import Endpoints
from trainyard.chain.quantities import parse_bytes
from trainyard.chain.rpc import Rpc
from trainyard.protocol.ledger.book import Account, Dispute, Panel, Seat, Slot, Worker
from trainyard.protocol.ledger.events import struct_fields
from trainyard.protocol.market import (
    NATIVE_CURRENCY,
    OWN_PANEL,
    DisputeState,
    Params,
    Policy,
    SeatState,
    TaskState,
    Terms,
)

# Kept by no market: how long it took to fill the slots does not matter afterwards.
_UNSTORED_TERMS = {"join_for": 0}


@dataclass(frozen=True, slots=True)
class StoredTask:
    """A task without its slots, panels and disputes, which are read one by one.

    `terms.join_for` is zero: the market does not store it. The event of the post has it.
    """

    requester: str
    params_id: int
    terms: Terms
    state: TaskState
    deadline: int
    locked: int
    joined: int
    answered: int
    revealed: int
    lead: int


class MarketClient:
    """Reads the market at an address. What the market refuses is a `RevertedError`."""

    def __init__(self, endpoints: Endpoints, address: str) -> None:
        self._endpoints, self.address = endpoints, address
        self.calls = MarketCalls(address)

    def task_count(self) -> int:
        return int(self._read("taskCount"))

    def task(self, task: int) -> StoredTask | None:
        found = struct_fields(self._read("task", task))
        if found["state"] == TaskState.NONE:
            return None
        found |= _UNSTORED_TERMS
        terms = {name: found[name] for name in Terms.__dataclass_fields__}
        kept = {name: found[name] for name in StoredTask.__dataclass_fields__ if name in found}
        offered = Terms(**terms | {"policy": Policy(terms["policy"])})
        return StoredTask(**kept | {"terms": offered, "state": TaskState(kept["state"])})

    def slot(self, task: int, index: int) -> Slot:
        found = struct_fields(self._read("slot", task, index))
        return Slot(**found | {"worker": _nobody(found["worker"])})

    def panel(self, task: int, segment: int = OWN_PANEL, round_: int = 0) -> Panel:
        """A panel with its seats; without a segment, the task's own."""
        found = struct_fields(self._read("panel", task, segment, round_))
        seats = [self.seat(task, segment, round_, index) for index in range(found["seats"])]
        return Panel(**found | {"seats": seats})

    def seat(self, task: int, segment: int, round_: int, index: int) -> Seat:
        found = struct_fields(self._read("seat", task, segment, round_, index))
        return Seat(**found | {"state": SeatState(found["state"])})

    def scores(self, task: int, seat: int) -> tuple[int, ...]:
        return tuple(self._read("scores", task, seat))

    def dispute(self, task: int, segment: int) -> Dispute | None:
        found = struct_fields(self._read("dispute", task, segment))
        state = DisputeState(found["state"])
        if state is DisputeState.NONE:
            return None
        return Dispute(**found | {"state": state, "accuser": _nobody(found["accuser"])})

    def bond_of(self, task: int) -> int:
        return int(self._read("bondOf", task))

    def params(self, params_id: int | None = None) -> Params:
        """Those of a version, or the present ones."""
        number = int(self._read("paramsCount")) - 1 if params_id is None else params_id
        return Params(**struct_fields(self._read("params", number)))

    def account(self, who: str) -> Account:
        return Account(**struct_fields(self._read("account", who)))

    def worker(self, who: str) -> Worker:
        return Worker(**struct_fields(self._read("worker", who)))

    def pool_size(self, env_class: bytes) -> int:
        return int(self._read("poolSize", env_class))

    def currency(self) -> str | None:
        """The token's address; None for the chain's own currency."""
        return _nobody(self._read("currency"))

    def solvency(self) -> tuple[int, int]:
        """What the market holds, and what it owes."""
        held, owed = self._read("solvency")
        return held, owed

    def try_out(self, call: Call, sender: str) -> None:
        """Raise what a call would be refused with, without sending it."""
        request = {
            "from": sender,
            "to": call.to,
            "data": f"0x{call.data.hex()}",
            "value": hex(call.value),
        }
        self._endpoints.call("eth_call", request, "latest")

    def _read(self, function: str, *args: Any) -> Any:
        data = market_codec().call(function, args)
        request = {"to": self.address, "data": f"0x{data.hex()}"}
        return self._endpoints.run(lambda rpc: _answer(rpc, function, request))


def _answer(rpc: Rpc, function: str, request: dict[str, str]) -> Any:
    answer = rpc.request("eth_call", request, "latest")
    try:
        return market_codec().answer(function, parse_bytes(answer))
    except (ValueError, DecodingError) as error:
        raise rpc.error(
            f"its answer to {function} is not that of a market at {request['to']}"
        ) from error


def _nobody(address: str) -> str | None:
    return None if address == NATIVE_CURRENCY else address
