"""The market's ABI at work: logs into events, calls into bytes, refusals into names and values.

Not through web3's contracts, which search the ABI anew for each log: a market's whole history goes
through here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError
from eth_utils.abi import event_abi_to_log_topic, function_abi_to_4byte_selector
from eth_utils.address import to_checksum_address

from trainyard.chain.artifacts import load_artifact
from trainyard.chain.errors import UnknownLogError
from trainyard.protocol.ledger import Event

Parameter = Mapping[str, Any]
# Solidity's own: `require` with a text, and what the compiler checks.
_STRING_ERROR, _PANIC = bytes.fromhex("08c379a0"), bytes.fromhex("4e487b71")


class MalformedLogError(ValueError):
    """A log that no contract with this ABI can have emitted."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A custom error with its values, or the name and text of one of Solidity's own."""

    name: str
    args: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Shape:
    """An event's arguments in the order of the ABI, and which of them stand in topics."""

    name: str
    inputs: tuple[Parameter, ...]
    indexed: tuple[Parameter, ...]
    plain: tuple[Parameter, ...]
    plain_types: tuple[str, ...]


class MarketCodec:
    """The whole market: its interface, and what the contract has from its libraries."""

    def __init__(self) -> None:
        entries = [
            entry
            for name in ("TrainingMarket", "ITrainingMarket")
            for entry in load_artifact(name).abi
        ]
        self._events = {_topic(entry): _shape(entry) for entry in entries if _is(entry, "event")}
        self._errors = {_selector(entry): entry for entry in entries if _is(entry, "error")}
        self._functions = {entry["name"]: entry for entry in entries if _is(entry, "function")}

    @property
    def topics(self) -> frozenset[bytes]:
        """What the first topic of the market's logs may be."""
        return frozenset(self._events)

    @property
    def error_names(self) -> frozenset[str]:
        return frozenset(entry["name"] for entry in self._errors.values())

    def event(self, topics: Sequence[bytes], data: bytes) -> Event:
        shape = self._events.get(topics[0]) if topics else None
        if shape is None:
            named = topics[0].hex() if topics else "no topic"
            raise UnknownLogError(
                f"the market emitted {named}, which this version knows nothing of: update Trainyard"
            )
        if len(topics) != len(shape.indexed) + 1:
            raise MalformedLogError(f"{shape.name} with {len(topics)} topics")
        try:
            found = {
                parameter["name"]: _indexed(parameter["type"], topic)
                for parameter, topic in zip(shape.indexed, topics[1:], strict=True)
            }
            values = decode(shape.plain_types, data)
        except DecodingError as error:
            raise MalformedLogError(f"{shape.name} with other data: {error}") from error
        for parameter, value in zip(shape.plain, values, strict=True):
            found[parameter["name"]] = _named(parameter, value)
        return Event(shape.name, {part["name"]: found[part["name"]] for part in shape.inputs})

    def call(self, function: str, args: Sequence[Any]) -> bytes:
        entry = self._functions[function]
        return _selector(entry) + encode([_type(part) for part in entry["inputs"]], args)

    def answer(self, function: str, data: bytes) -> Any:
        """What a view returned: one value, or a tuple of them. Structs are mappings."""
        outputs = self._functions[function]["outputs"]
        values = decode([_type(part) for part in outputs], data)
        named = tuple(_named(part, value) for part, value in zip(outputs, values, strict=True))
        return named[0] if len(named) == 1 else named

    def refusal(self, data: bytes) -> Refusal | None:
        """Why a call reverted, or None if it did not say so in a way that we know."""
        try:
            if data[:4] == _STRING_ERROR:
                return Refusal("Error", {"text": decode(["string"], data[4:])[0]})
            if data[:4] == _PANIC:
                return Refusal("Panic", {"code": decode(["uint256"], data[4:])[0]})
            entry = self._errors.get(data[:4])
            if entry is None:
                return None
            values = decode([_type(part) for part in entry["inputs"]], data[4:])
        except DecodingError:
            return None
        parts = zip(entry["inputs"], values, strict=True)
        return Refusal(entry["name"], {part["name"]: _named(part, value) for part, value in parts})


@cache
def market_codec() -> MarketCodec:
    """Made once: it reads files."""
    return MarketCodec()


def _is(entry: Parameter, kind: str) -> bool:
    return bool(entry["type"] == kind)


def _shape(entry: Parameter) -> _Shape:
    indexed = tuple(part for part in entry["inputs"] if part["indexed"])
    plain = tuple(part for part in entry["inputs"] if not part["indexed"])
    types = tuple(_type(part) for part in plain)
    return _Shape(entry["name"], tuple(entry["inputs"]), indexed, plain, types)


def _topic(entry: Parameter) -> bytes:
    return event_abi_to_log_topic(entry)  # type: ignore[arg-type]


def _selector(entry: Parameter) -> bytes:
    # Custom errors are told apart like functions, by the hash of their signature.
    return function_abi_to_4byte_selector(entry)  # type: ignore[arg-type]


def _type(parameter: Parameter) -> str:
    kind: str = parameter["type"]
    if not kind.startswith("tuple"):
        return kind
    inner = ",".join(_type(component) for component in parameter["components"])
    return f"({inner}){kind.removeprefix('tuple')}"


def _named(parameter: Parameter, value: Any) -> Any:
    match parameter["type"]:
        case "tuple":
            parts = zip(parameter["components"], value, strict=True)
            return {component["name"]: _named(component, part) for component, part in parts}
        case "address":
            return _checksum(value)
        case _:
            return value


# The same few people and tasks all the time; each costs a decoder, and an address a hash.
@lru_cache(maxsize=65_536)
def _indexed(kind: str, topic: bytes) -> Any:
    return _named({"type": kind}, decode([kind], topic)[0])


@lru_cache(maxsize=65_536)
def _checksum(address: str) -> str:
    return to_checksum_address(address)
