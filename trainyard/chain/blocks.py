"""Blocks and logs as a node sends them, checked as far as they can be."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from eth_utils.crypto import keccak

from trainyard.chain.quantities import parse_bytes, parse_number

if TYPE_CHECKING:
    # Not loaded with web3 where only values are looked at.
    from trainyard.chain.rpc import Rpc

_BLOOM_BYTES, _BLOOM_BITS = 256, 2048
# Requests in one message: what providers commonly take.
_MESSAGE = 100


@dataclass(frozen=True, slots=True)
class BlockRef:
    """A block, told from any other of the same number."""

    number: int
    hash: bytes

    def __str__(self) -> str:
        return f"block {self.number} (0x{self.hash.hex()[:8]}…)"


@dataclass(frozen=True, slots=True)
class Header:
    ref: BlockRef
    parent: bytes
    timestamp: int
    base_fee: int
    bloom: bytes


@dataclass(frozen=True, slots=True)
class Log:
    block: BlockRef
    index: int
    transaction: bytes
    address: bytes
    topics: tuple[bytes, ...]
    data: bytes


def header_at(rpc: "Rpc", number: int | str) -> Header | None:
    """The block of this number or tag; None if the node has none."""
    tag = hex(number) if isinstance(number, int) else number
    return _checked(rpc, rpc.request("eth_getBlockByNumber", tag, False), number)


def head_of(rpc: "Rpc") -> Header:
    head = header_at(rpc, "latest")
    if head is None:
        raise rpc.error("it has no latest block")
    return head


def headers_at(rpc: "Rpc", numbers: Sequence[int]) -> list[Header]:
    """The blocks of these numbers, all of which the node must have."""
    found: list[Header] = []
    for start in range(0, len(numbers), _MESSAGE):
        some = numbers[start : start + _MESSAGE]
        answers = rpc.batch("eth_getBlockByNumber", [[hex(number), False] for number in some])
        for number, answer in zip(some, answers, strict=True):
            header = _checked(rpc, answer, number)
            if header is None:
                raise rpc.error(f"it has no block {number}, below its own head")
            found.append(header)
    return found


def logs_of(rpc: "Rpc", question: dict[str, Any]) -> list[Log]:
    answer = rpc.request("eth_getLogs", question)
    if not isinstance(answer, list):
        raise rpc.error("sent no list of logs")
    try:
        return [_log(entry) for entry in answer]
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise rpc.error(f"sent a malformed log: {error}") from error


def may_hold(bloom: bytes, value: bytes) -> bool:
    """Whether a log with this address or topic may be in the block. False is certain."""
    return all(bloom[byte] & mask for byte, mask in _bits(value))


def suspicious(
    header: Header, logs: Iterable[Log], address: bytes, topics: Iterable[bytes]
) -> bool:
    """Whether the block may hold logs of the address and these topics beside `logs`."""
    if not may_hold(header.bloom, address):
        return False
    seen = {log.topics[0] for log in logs if log.topics}
    return any(topic not in seen and may_hold(header.bloom, topic) for topic in topics)


# The market's address and topics, over and over.
@lru_cache(maxsize=256)
def _bits(value: bytes) -> tuple[tuple[int, int], ...]:
    """The three bits that a value sets: which byte, and which bit of it."""
    digest = keccak(value)
    bits = (int.from_bytes(digest[at : at + 2], "big") % _BLOOM_BITS for at in (0, 2, 4))
    return tuple((_BLOOM_BYTES - 1 - bit // 8, 1 << bit % 8) for bit in bits)


def _checked(rpc: "Rpc", answer: Any, number: int | str) -> Header | None:
    if answer is None:
        return None
    try:
        header = _header(answer)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise rpc.error(f"sent a malformed block: {error}") from error
    if isinstance(number, int) and header.ref.number != number:
        raise rpc.error(f"sent block {header.ref.number} for {number}")
    return header


def _header(answer: Any) -> Header:
    return Header(
        BlockRef(parse_number(answer["number"]), parse_bytes(answer["hash"], 32)),
        parse_bytes(answer["parentHash"], 32),
        parse_number(answer["timestamp"]),
        parse_number(answer.get("baseFeePerGas") or "0x0"),
        parse_bytes(answer["logsBloom"], _BLOOM_BYTES),
    )


def _log(entry: Any) -> Log:
    if entry.get("removed"):
        raise ValueError("it is of a block that was undone")
    return Log(
        BlockRef(parse_number(entry["blockNumber"]), parse_bytes(entry["blockHash"], 32)),
        parse_number(entry["logIndex"]),
        parse_bytes(entry["transactionHash"], 32),
        parse_bytes(entry["address"], 20),
        tuple(parse_bytes(topic, 32) for topic in entry["topics"]),
        parse_bytes(entry["data"]),
    )
