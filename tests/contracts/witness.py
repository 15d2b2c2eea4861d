"""Reads what the market stores and what its events tell, to hold one against the other.

It talks to the chain without brownie's objects, which are made for people and cost far more time.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import brownie
from brownie import TrainingMarket, interface
from eth_utils.abi import event_abi_to_log_topic, function_abi_to_4byte_selector
from web3._utils.events import get_event_data

from trainyard.protocol.ledger import Book, Event
from trainyard.protocol.ledger.book import Account, Dispute, Panel, Seat, Task, Worker
from trainyard.protocol.ledger.events import python_name
from trainyard.protocol.market import OWN_PANEL

ZERO_ADDRESS = "0x" + 40 * "0"
Call = tuple[Any, ...]


class RefusedError(Exception):
    """The market refused a call, with the custom error of this name."""


class Witness:
    """Sees all events of a market, reads many views in one call, and sends calls."""

    def __init__(self, address: str) -> None:
        # The market's interface, and what the contract has from its libraries.
        abi = {
            _key(entry): entry for entry in [*TrainingMarket.abi, *interface.ITrainingMarket.abi]
        }
        self.address = address
        self._contract = brownie.web3.eth.contract(address=address, abi=list(abi.values()))
        self._events = {
            event_abi_to_log_topic(entry): entry
            for entry in abi.values()
            if entry["type"] == "event"
        }
        self._errors = {
            "0x" + function_abi_to_4byte_selector(entry).hex(): entry["name"]
            for entry in abi.values()
            if entry["type"] == "error"
        }
        self._encoded: dict[Call, str] = {}
        self._outputs = {
            entry["name"]: entry["outputs"] for entry in abi.values() if entry["type"] == "function"
        }

    def events(self, from_block: int, to_block: int | None = None) -> Iterator[tuple[int, Event]]:
        """All that the market emitted, in order, with the number of the block."""
        bounds = {"fromBlock": from_block, "toBlock": "latest" if to_block is None else to_block}
        for log in brownie.web3.eth.get_logs({"address": self.address, **bounds}):
            yield log["blockNumber"], self.decode(log)

    def decode(self, log: Any) -> Event:
        abi = self._events[bytes(log["topics"][0])]
        return Event(abi["name"], get_event_data(brownie.web3.codec, abi, log)["args"])

    def read(self, calls: Iterable[Call], block: int | str = "latest") -> dict[Call, Any]:
        """The answers of many views, each called as `(name, *arguments)`, in one `multicall`."""
        calls = list(calls)
        data = [self.encode(call) for call in calls]
        answers = self._contract.functions.multicall(data).call(block_identifier=block)
        return {
            call: self._decode_answer(call[0], answer)
            for call, answer in zip(calls, answers, strict=True)
        }

    def compare(self, book: Book, calls: Iterable[Call], block: int | str = "latest") -> None:
        """The market stores what the book has."""
        stored = self.read(calls, block)
        assert_same(stored, {call: told(book, call, answer) for call, answer in stored.items()})

    def send(self, call: Call, by: str, value: int = 0) -> list[Event]:
        """Call a function as `(name, *arguments)` and return the events that it emitted."""
        request = {
            "from": by,
            "to": self.address,
            "data": self._contract.encode_abi(call[0], args=call[1:]),
            "value": hex(value),
            "gas": hex(10_000_000),
        }
        answer = brownie.web3.provider.make_request("eth_sendTransaction", [request])
        if "error" in answer:
            # Ganache says why a call is refused only if it is not a transaction.
            reason = brownie.web3.provider.make_request("eth_call", [request, "latest"])
            data = reason["error"]["data"]
            raise RefusedError(self._errors.get(data[:10], data))
        receipt = brownie.web3.eth.get_transaction_receipt(answer["result"])
        return [self.decode(log) for log in receipt["logs"]]

    def encode(self, call: Call) -> Any:
        # The same few calls are made over and over.
        if call not in self._encoded:
            self._encoded[call] = self._contract.encode_abi(call[0], args=call[1:])
        return self._encoded[call]

    def _decode_answer(self, name: str, answer: bytes) -> Any:
        outputs = self._outputs[name]
        types = [_type(output) for output in outputs]
        values = [
            _named(output, value)
            for output, value in zip(outputs, brownie.web3.codec.decode(types, answer), strict=True)
        ]
        return values[0] if len(values) == 1 else values


def views_of(book: Book, people: Sequence[str]) -> list[Call]:
    """All views of a market that has this history, and whatever of them should still be empty."""
    calls: list[Call] = [("solvency",), ("taskCount",), ("paramsCount",)]
    calls += [("params", index) for index in range(len(book.params))]
    for who in people:
        calls += [("account", who), ("worker", who)]
    for env_class, pool in book.pools.items():
        calls.append(("poolSize", env_class))
        calls += [("poolMember", env_class, index) for index in range(len(pool))]
    for task_id, task in book.tasks.items():
        calls += [("task", task_id), ("bondOf", task_id)]
        calls += [("slot", task_id, index) for index in range(task.terms.slots)]
        calls += [("dispute", task_id, segment) for segment in range(task.terms.segments)]
        for (segment, round_), panel in task.panels.items():
            calls += [("panel", task_id, segment, round_)]
            # One more than were drawn.
            seats = range(min(len(panel.seats) + 1, 15))
            calls += [("seat", task_id, segment, round_, index) for index in seats]
            if segment == OWN_PANEL:
                calls += [("scores", task_id, index) for index in seats]
            else:
                calls += [("panel", task_id, segment, round_ + 1)]
    return calls


def views_touched(event: Event) -> set[Call]:
    """The views of whatever an event names: its accounts, and the parts of its task."""
    args = event.args
    calls: set[Call] = {("solvency",), ("taskCount",)}
    for value in args.values():
        if isinstance(value, str):
            calls |= {("account", value), ("worker", value)}
    if not args.get("id"):
        return calls
    task_id, segment, round_ = args["id"], args.get("segment", OWN_PANEL), args.get("round", 0)
    calls |= {("task", task_id), ("panel", task_id, OWN_PANEL, 0)}
    if "slot" in args:
        calls.add(("slot", task_id, args["slot"]))
    if "seat" in args:
        calls.add(("seat", task_id, segment, round_, args["seat"]))
    if round_:
        calls.add(("panel", task_id, segment, round_))
    if segment != OWN_PANEL:
        calls.add(("dispute", task_id, segment))
    return calls


def told(book: Book, call: Call, stored: Any) -> Any:
    """What the book has for a view, with the fields that the stored answer has."""
    match call:
        case ("solvency",):
            return [stored[0], book.owed]
        case ("taskCount",):
            return len(book.tasks)
        case ("paramsCount",):
            return len(book.params)
        case ("params", index):
            return _told(stored, book.params[index])
        case ("account", who):
            return _told(stored, book.accounts.get(who, Account()))
        case ("worker", who):
            return _told(stored, book.workers.get(who, Worker(bytes(32), bytes(32))))
        case ("poolSize", env_class):
            return len(book.pools[env_class])
        case ("poolMember", env_class, index):
            return book.pools[env_class][index]
        case (_, task_id, *rest):
            return _told_of_task(book, book.tasks[task_id], call[0], rest, stored)
    raise LookupError(call)


def assert_same(stored: dict[Any, Any], expected: dict[Any, Any]) -> None:
    """Name what differs, and only that."""
    differing = {
        key: (stored[key], value) for key, value in expected.items() if stored[key] != value
    }
    if differing:
        raise AssertionError(f"stored and expected: {differing}")


def _told_of_task(book: Book, task: Task, name: str, rest: Sequence[int], stored: Any) -> Any:
    match name, *rest:
        case ("task",):
            return _told(stored, task.terms, task)
        case ("bondOf",):
            return book.params[task.params_id].seat_bond
        case ("slot", index):
            return _told(stored, task.slots[index])
        case ("dispute", segment):
            return _told(stored, task.disputes.get(segment, Dispute()))
        case ("panel", segment, round_):
            panel = task.panels.get((segment, round_), Panel())
            return _told(stored, panel) | {"seats": len(panel.seats)}
        case ("seat", segment, round_, index):
            return _told(stored, _seat(task.panels[segment, round_], index))
        case ("scores", index):
            return _seat(task.own_panel, index).scores
    raise LookupError(name)


def _seat(panel: Panel, index: int) -> Seat:
    return panel.seats[index] if index < len(panel.seats) else Seat(ZERO_ADDRESS, 0, state=0)


def _told(stored: dict[str, Any], *sources: Any) -> dict[str, Any]:
    def value(name: str) -> Any:
        found = next(getattr(source, name) for source in sources if hasattr(source, name))
        return _address(found)

    return {name: value(python_name(name)) for name in stored}


def _address(value: Any) -> Any:
    return ZERO_ADDRESS if value is None else value


def _key(entry: dict[str, Any]) -> tuple[Any, ...]:
    inputs = tuple(_type(parameter) for parameter in entry.get("inputs", ()))
    return entry["type"], entry.get("name"), inputs


def _type(parameter: dict[str, Any]) -> str:
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    inner = ",".join(_type(component) for component in parameter["components"])
    return f"({inner}){kind.removeprefix('tuple')}"


def _named(parameter: dict[str, Any], value: Any) -> Any:
    match parameter["type"]:
        case "tuple":
            parts = zip(parameter["components"], value, strict=True)
            return {component["name"]: _named(component, part) for component, part in parts}
        case "address":
            return brownie.web3.to_checksum_address(value)
        case _:
            return value
